"""The stage `evaluate`: scores every policy of a frozen part, with all its seeds, on every unit of one scenario."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Budget, Outcome, Policy, PolicySpec, Problem, Split, Study, Unit
from schedlab.config.errors import UserError
from schedlab.config.files import write_table
from schedlab.config.plugins import told_with_place
from schedlab.config.runtime.parts import configuration_hash, read_part
from schedlab.config.runtime.provenance import write_provenance
from schedlab.evaluation import tables
from schedlab.stages import studies
from schedlab.stages.policies import make_learner, make_rule, missing_input, policy_spec, policy_stream

if TYPE_CHECKING:
    import pandas as pd

SPLITS: tuple[Split, ...] = ("validation", "test")
log = logging.getLogger(__name__)


def evaluate(
    part: Path,
    inputs: Mapping[str, Path],
    policies: Mapping[tuple[str, int], Path],
    scores: Path,
    details: Path,
    provenance: Path,
) -> None:
    """Score the policies of a part.

    part        frozen evaluate part
    inputs      input name -> file, for the part's scenario
    policies    (policy, seed) -> checkpoint; a learned policy is scored with exactly these seeds, a rule with those of
                the part
    scores      table of scores to write
    details     folder for one table for each declared detail, <table>.parquet (only the key columns if no policy gives
                the detail)
    provenance  JSON file for the origin, next to the scores; with the budgets of untrained policies that state one

    Raises UserError for a missing input, ValueError for undeclared metrics and details, and for numbers that are not
    finite.
    """
    values = read_part(part)
    study = studies.of_part(values)
    checkpoints = {(name, int(seed)): Path(path) for (name, seed), path in policies.items()}
    files = {name: Path(path) for name, path in inputs.items()} | {
        f"{name}/seed-{seed}": path for (name, seed), path in checkpoints.items()
    }
    for name, path in files.items():
        if not path.exists():
            raise missing_input(name, path)
    problem = study.problem(values["problem"], inputs)
    units = [unit for split in values.get("splits") or SPLITS for unit in problem.units(split)]
    if not units:
        raise ValueError(f"scenario '{values['scenario']}' has no units to score")
    names = sorted({name for unit in units for name in unit.facts})
    facts = {name: tables.fact_type(unit.facts.get(name) for unit in units) for name in names}
    sheet = _Sheet(study, values["scenario"], configuration_hash(values), tables.SCORES.with_facts(facts))
    seeds: set[int] = set()
    budgets: dict[str, dict[str, dict[str, int]]] = {}
    for entry in values["policies"]:
        spec = policy_spec(entry)
        mode = "reference" if "reference" in (spec.mode, values["problem"].get("mode")) else "default"
        head = {"policy": spec.name, "kind": spec.kind, "trained_on": entry.get("trained_on", ""), "mode": mode}
        if head["trained_on"] and not any(name == spec.name for name, _ in checkpoints):
            raise ValueError(f"no checkpoint of the learned policy '{spec.name}' was given")
        for seed, policy in _with_seeds(study, spec, problem, checkpoints, values["seed"]):
            log.info("scoring %s, seed %d, on %d units of %s", spec.name, seed, len(units), values["scenario"])
            seeds.add(seed)
            for unit in units:
                sheet.add({**head, "policy_seed": seed}, unit, _outcome(problem, policy, unit, spec))
            if isinstance(used := getattr(policy, "budget", None), Budget) and not head["trained_on"]:
                budgets.setdefault(spec.name, {})[str(seed)] = asdict(used)
    tables.write(sheet.kind, scores, tables.build(sheet.kind, sheet.rows))
    Path(details).mkdir(parents=True, exist_ok=True)
    for name in study.details:
        write_table(Path(details) / f"{name}.parquet", join_details(sheet.details.get(name, ())))
    write_provenance(provenance, part, sorted(seeds), files, budgets=budgets)


def _outcome(problem: Problem, policy: Policy, unit: Unit, spec: PolicySpec) -> Outcome:
    """Return the outcome of a policy on a unit. A UserError, or an error in a user's file, is raised as a UserError
    that names policy and unit.
    """
    try:
        with told_with_place(spec.target, f"{spec.kind} '{spec.name}'"):
            return problem.rollout(policy, unit)
    except UserError as error:
        raise UserError(str(error), where=f"{spec.name} on {unit.id}") from error


def join_details(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return detail tables as one, sorted by the key columns. Without rows, it has only the key columns."""
    import pandas as pd

    filled = [frame for frame in frames if len(frame)]
    if not filled:
        integer = {"policy_seed": "int64"}
        return pd.DataFrame({key: pd.Series(dtype=integer.get(key, "str")) for key in tables.DETAIL_KEY})
    return pd.concat(filled, ignore_index=True).sort_values(list(tables.DETAIL_KEY), kind="stable", ignore_index=True)


def _with_seeds(
    study: Study, spec: PolicySpec, problem: Problem, checkpoints: Mapping[tuple[str, int], Path], root: int
) -> Iterator[tuple[int, Policy]]:
    """Yield (seed, policy): from the given checkpoints or, for a policy without checkpoints, as a rule with the part's
    seeds.
    """
    given = sorted(seed for name, seed in checkpoints if name == spec.name)
    for seed in given:
        with told_with_place(spec.target, f"learner of '{spec.name}'"):
            policy = make_learner(study, spec).load(checkpoints[spec.name, seed], problem)
        yield seed, policy
    for seed in () if given else spec.seeds:
        yield seed, make_rule(study, spec, problem, policy_stream(root, "rule", study.name, seed))


@dataclass
class _Sheet:
    """Collects the rows of scores and details of one job."""

    study: Study
    scenario: str
    config_hash: str
    kind: tables.TableKind
    rows: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, list[pd.DataFrame]] = field(default_factory=dict)

    def add(self, head: Mapping[str, Any], unit: Unit, outcome: Outcome) -> None:
        """Add the outcome of one rollout; `head` contains policy, kind, policy_seed, trained_on and mode."""
        where = f"policy '{head['policy']}' on unit '{unit.id}' of '{self.scenario}'"
        declared = {metric.name for metric in self.study.metrics}
        for metric, value in outcome.scores.items():
            if metric not in declared:
                raise ValueError(f"{where}: the study '{self.study.name}' declares no metric '{metric}'")
            if not math.isfinite(value):
                raise ValueError(f"{where}: {metric} is {value}; leave a metric out where it is not defined")
            self.rows.append(self._row(head, unit, outcome.weight, metric, value))
        for name, frame in outcome.details.items():
            if name not in self.study.details:
                raise ValueError(f"{where}: the study '{self.study.name}' declares no details '{name}'")
            if taken := set(tables.DETAIL_KEY) & set(frame.columns):
                raise ValueError(
                    f"{where}: the details '{name}' hold the columns {', '.join(sorted(taken))}, which the stage adds"
                )
            key = dict(
                zip(
                    tables.DETAIL_KEY,
                    (self.scenario, head["policy"], head["policy_seed"], unit.split, unit.id),
                    strict=True,
                )
            )
            self.details.setdefault(name, []).append(frame.assign(**key)[[*key, *frame.columns]])

    def _row(self, head: Mapping[str, Any], unit: Unit, weight: float, metric: str, value: float) -> dict[str, Any]:
        about_unit = {
            "split": unit.split,
            "unit_kind": unit.kind,
            "unit": unit.id,
            "block": unit.block,
            "unit_seed": unit.seed,
        }
        number = {"metric": metric, "value": float(value), "weight": float(weight)}
        facts = {column.name: unit.facts.get(column.name) for column in self.kind.columns if column.fact}
        return {"scenario": self.scenario, **head, **about_unit, **number, "config_hash": self.config_hash, **facts}
