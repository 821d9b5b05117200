"""Results of a run as pandas tables, and comparisons of any two policies by the method of the workflow.

    import schedlab.results

    run = schedlab.results.load("results/small")
    run.headline                              # the questions of all studies, with rivals, ratios and verdicts
    run.compare("reinforce", "goodput_greedy", study="cloud")

docs/reference/tables.md describes the columns; each table has the column `study` before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import statistics, tables

if TYPE_CHECKING:
    import pandas as pd

KINDS = (tables.SCORES, tables.CURVES, tables.SUMMARY, tables.COMPARISONS, tables.HEADLINE)


@dataclass(frozen=True)
class Results:
    """The tables of a run, or of the recorded results in docs/results, each with the rows of all studies.

    Raises UserError for a table that no study has. Recorded results have no scores.
    """

    folder: Path
    studies: tuple[str, ...]

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Value of each metric for each policy, seed and unit."""
        return self._read(tables.SCORES)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Metrics during learning, with the budget used so far."""
        return self._read(tables.CURVES)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Mean of each metric for each policy, with interval and range."""
        return self._read(tables.SUMMARY)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Each policy compared with the baseline of its study, and with the rule that is best on validation units."""
        return self._read(tables.COMPARISONS)

    @cached_property
    def headline(self) -> pd.DataFrame:
        """The questions of each study, with the answers in each scenario."""
        return self._read(tables.HEADLINE)

    def compare(
        self,
        policy: str,
        rival: str,
        metric: str | None = None,
        study: str | None = None,
        split: str = "test",
        settings: StatisticsSettings | None = None,
    ) -> pd.DataFrame:
        """Return the paired difference of two policies in each scenario in which both were scored, with its interval.

        policy, rival   names of policies, or of their recipes
        metric          by default that of the study's question in these scenarios
        split           of the units: `test`, or another one that the scores have, such as `validation`

        A row has the columns study, scenario, metric, unit, better, policy, rival, value, rival_value, difference,
        ci_low, ci_high, relative, win_rate, seeds, units, blocks. There is no interval if there are fewer than 5 seeds
        (for two rules, which have no seeds: fewer than 5 blocks). A pair that is in `comparisons` has the same interval
        here, unless `settings` differ from those of the run. Raises UserError for an unknown name.
        """
        import pandas as pd

        found = self.scores
        if study is not None:
            found = found[found["study"] == _known(study, self.studies, "study")]
        found = found[found["split"] == _known(split, found["split"], "split")]
        study = self._study(study, found, (policy, rival))
        found = found[found["study"] == study]
        both = [set(_rows_of(name, found)["scenario"]) for name in (policy, rival)]
        metric = metric or self._metric(study, set.intersection(*both))
        found = found[found["metric"] == _known(metric, found["metric"], "metric")]
        ours, theirs = (_rows_of(name, found) for name in (policy, rival))
        unit, better = self._direction(study, metric)
        part = self._part(study)
        settings = settings or validate(StatisticsSettings, part.get("statistics") or {})
        rows = []
        for (scenario, mode), mine in ours.groupby(["scenario", "mode"]):
            other = theirs[(theirs["scenario"] == scenario) & (theirs["mode"] == mode)]
            for one, left in mine.groupby("policy"):
                for two, right in other.groupby("policy"):
                    names = (str(name) for name in (scenario, one, mode, split, metric, two))
                    rng = generator(part.get("seed", 0), "bootstrap", study, "comparison", *names)
                    head = {"study": study, "scenario": scenario, "metric": metric, "unit": unit, "better": better}
                    head |= {"policy": one, "rival": two}
                    pair = (_sample(left, part), _sample(right, part))
                    rows.append({**head, **_compared(*pair, better, settings, rng)})
        if not rows:
            raise UserError(f"no scenario scored both '{policy}' and '{rival}'", where=str(self.folder / study))
        return pd.DataFrame(rows)

    def _read(self, kind: tables.TableKind) -> pd.DataFrame:
        import pandas as pd

        found = []
        for study in self.studies:
            path = _file(self.folder / study, kind.name)
            if path is not None:
                table = tables.read(kind, path) if path.suffix == ".parquet" else pd.read_csv(path)
                table.insert(0, "study", study)
                found.append(table)
        if not found:
            expected = f"{kind.name}.parquet in the folder of a study"
            raise UserError(f"there is no table {kind.name}", where=str(self.folder), expected=expected)
        return pd.concat(found, ignore_index=True)

    def _part(self, study: str) -> dict[str, Any]:
        """The frozen part from which the workflow computed the comparisons of a study; empty if the part does not
        exist.
        """
        path = self.folder / study / "config/summarise.yaml"
        return dict(read_part(path)) if path.is_file() else {}

    def _study(self, study: str | None, scores: pd.DataFrame, names: Iterable[str]) -> str:
        """The given study or, without one, the only study that has both policies."""
        if study is not None:
            return _known(study, self.studies, "study")
        having = [part for part in self.studies if all(_has(scores[scores["study"] == part], name) for name in names)]
        if len(having) != 1:
            for name in names:
                _known(
                    name, [*scores["policy"], *scores["recipe"]] if "recipe" in scores else scores["policy"], "policy"
                )
            what = f"{len(having)} studies have both policies"
            raise UserError(what, where=str(self.folder), remedy="give study=..., one of " + ", ".join(self.studies))
        return having[0]

    def _metric(self, study: str, scenarios: set[str]) -> str:
        """The metric of the question that a study asks in one of the scenarios."""
        asked = self.headline[(self.headline["study"] == study) & self.headline["scenario"].isin(scenarios)]
        if asked.empty:
            raise UserError("the study asks no question in these scenarios", where=study, remedy="give metric=...")
        return str(asked["metric"].iloc[0])

    def _direction(self, study: str, metric: str) -> tuple[str, str]:
        """Unit of a metric, and whether a lower or a higher value is better."""
        found = self.comparisons
        row = found[(found["study"] == study) & (found["metric"] == metric)].iloc[0]
        return str(row["unit"]), str(row["better"])


def load(folder: Path | str) -> Results:
    """Return the results of a run (results/<scale>), or the recorded ones (docs/results). Raises UserError if no study
    has a table there.
    """
    folder = Path(folder)
    studies = sorted(path.name for path in folder.glob("*/") if any(_file(path, kind.name) for kind in KINDS))
    if not studies:
        remedy = "run `snakemake --cores all`, which writes results/small"
        raise UserError("no results of a study lie here", where=str(folder), remedy=remedy)
    return Results(folder, tuple(studies))


def _file(folder: Path, name: str) -> Path | None:
    return next((path for end in ("parquet", "csv") if (path := folder / f"{name}.{end}").exists()), None)


def _known(name: str, names: Iterable[str], what: str) -> str:
    if name not in (known := set(names)):
        raise UserError(f"there is no {what} '{name}'", where="results", remedy=did_you_mean(name, known))
    return name


def _has(scores: pd.DataFrame, name: str) -> bool:
    return bool((scores["policy"] == name).any() or ("recipe" in scores and (scores["recipe"] == name).any()))


def _rows_of(name: str, scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of a policy, or of all policies of a recipe."""
    found = scores[scores["policy"] == name]
    if found.empty and "recipe" in scores:
        found = scores[scores["recipe"] == name]
    if found.empty:
        _known(name, scores["policy"], "policy")
    return found


def _sample(rows: pd.DataFrame, part: Mapping[str, Any]) -> statistics.Sample:
    """The sample of one policy; the policies that the part calls deterministic have no seeds."""
    found = statistics.sample(rows)
    return replace(found, seeded=False) if rows["policy"].iloc[0] in (part.get("deterministic") or ()) else found


def _compared(
    policy: statistics.Sample, rival: statistics.Sample, better: str, settings: StatisticsSettings, rng: Any
) -> dict[str, Any]:
    """Values of two policies in a scenario and their difference."""
    found = statistics.compare(policy, rival, better, settings, rng)
    difference = found.difference
    return {
        "value": statistics.statistic_of(policy, settings.statistic),
        "rival_value": statistics.statistic_of(rival, settings.statistic),
        "difference": difference.value,
        "ci_low": difference.ci_low,
        "ci_high": difference.ci_high,
        "relative": found.relative,
        "win_rate": found.win_rate,
        "seeds": difference.seeds,
        "units": difference.units,
        "blocks": difference.blocks,
    }
