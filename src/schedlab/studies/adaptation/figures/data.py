"""The data of the figures: scenarios with their tables, quantities with units, the choices of policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from schedlab.config.contract import FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import read_table
from schedlab.config.schema import Settings
from schedlab.figures import theme
from schedlab.figures.order import FITTED, kinds_of
from schedlab.figures.theme import Style
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.problem import OVERLAPPING, AdaptationProblem, setup_of
from schedlab.studies.adaptation.scenario import scenario_of
from schedlab.studies.adaptation.simulator.table import DIGITS

S = TypeVar("S", bound=Settings)
BEST, NEVER = "exhaustive", "never"  # the oracle and the rule that figures lead with
PUBLISHED = re.compile(r"^published_(\w+)_convnet\d$")
LOW_IS_GOOD, HIGH_IS_GOOD = "viridis_r", "viridis"  # maps of colours in which the good end is light, in every figure
QUANTITIES = {  # columns of the simulation tables -> how they are scored and called
    "train_loss": Metric("train_log_loss", "nat", "lower", label="training log loss"),
    "train_accuracy": Metric("train_accuracy", "fraction", "higher", label="training accuracy"),
    "validation_loss": Metric("validation_log_loss", "nat", "lower", label="validation log loss"),
    "validation_accuracy": Metric("validation_accuracy", "fraction", "higher", label="validation accuracy"),
    "test_loss": Metric("test_log_loss", "nat", "lower", label="test log loss"),
    "test_accuracy": Metric("test_accuracy", "fraction", "higher", label="test accuracy"),
}


@dataclass(frozen=True)
class Shown:
    """A scenario in a figure. `table` has a row for each job, replicate and sequence; `problem` holds the same as
    arrays.

    start, budget  pinned seconds from which growth is possible, and in all; window: epochs at the end that a result is
                   the mean of
    """

    name: str
    start: float
    budget: float
    window: int
    problem: AdaptationProblem
    table: pd.DataFrame

    @property
    def label(self) -> str:
        """The scenario's name in words, without the part that distinguishes published tables."""
        return in_words(self.name)

    @property
    def tick(self) -> str:
        """Its name and the time from which growth is possible, on two lines."""
        return f"{self.label}\n{self.start:g} s"

    @property
    def column(self) -> str:
        """Column of the table that is learned on and ranked by."""
        return self.problem.setup.metric

    @property
    def quantity(self) -> Metric:
        """The quantity that this scenario rewards, with the sign that readers expect: a loss is positive."""
        return QUANTITIES[self.column]

    @property
    def sequences(self) -> tuple[str, ...]:
        """All sequences, in lexicographic order."""
        return self.problem.tree.sequences

    @property
    def replicates(self) -> int:
        """Results of each sequence, over jobs and replicates."""
        return len(self.problem.view.units)

    def values(self, column: str = "") -> np.ndarray:
        """Return a metric of the table, by default the one that is ranked by: (units, sequences)."""
        return self.problem.view.metrics[column or self.column]

    def mean(self, column: str = "") -> np.ndarray:
        """Return a metric's mean over jobs and replicates: (sequences,)."""
        return self.values(column).mean(0)

    def ranks(self) -> np.ndarray:
        """Return each sequence's rank by its mean over jobs and replicates: (sequences,), 1 is best."""
        return self.problem.view.ranks(self.problem.view.reward.mean(0))

    def regret(self) -> np.ndarray:
        """Return by how much each sequence's mean is worse than the best mean, over all jobs and replicates:
        (sequences,).
        """
        reward = self.problem.view.reward.mean(0)
        return reward.max() - reward

    @property
    def best(self) -> int:
        """Position of the sequence with the best mean over jobs and replicates."""
        return int(self.problem.view.reward.mean(0).argmax())

    @property
    def nothing(self) -> int:
        """Position of the sequence that never grows."""
        return self.problem.tree.index(self.problem.tree.nothing)

    @property
    def action_names(self) -> list[str]:
        """What each action does, in words; the last does nothing."""
        return [f"{action.operation} {action.block}" for action in self.problem.setup.actions] + ["nothing"]

    def moves(self, sequence: str) -> list[str]:
        """Return the actions of a sequence, in words."""
        return [self.action_names[DIGITS.index(digit)] for digit in sequence]


EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}  # of marks that lie on others
DASHED: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (4, 2))}
REPEATED = (
    "[{seeds:seed|seeds} of each learned policy, {units:test replicate|test replicates} of {blocks:job|jobs}"
    "[{overlapping}, on which policies also learned][{bare}; with fewer than five there is no interval].]"
)


def in_words(name: str) -> str:
    """Return a scenario's name in words; that of a published one without the model, which the figure's heading
    names.
    """
    return PUBLISHED.sub(r"\1", name).replace("_", " ")


def scenarios_of(tables: StudyTables, spec: FigureSpec, names: Iterable[str] = ()) -> list[Shown]:
    """Return the scenarios of a figure by their start, or those of `names` in the order of the names."""
    wanted = tuple(names) or spec.scenarios or tuple(tables.scenarios)
    found = []
    for name in wanted:
        if name not in tables.scenarios:
            where = f"figure {spec.name}"
            what = f"there is no scenario '{name}' here"
            raise UserError(what, where=where, remedy=did_you_mean(name, tables.scenarios))
        scenario = scenario_of(tables.scenarios[name])
        start = architecture(scenario.model)
        table = read_table(tables.inputs[name]["table"])
        problem = AdaptationProblem(name, table, start, setup_of(scenario, start))
        found.append(Shown(name, scenario.adapt_at, scenario.budget, scenario.reward.window, problem, table))
    return found if names else sorted(found, key=lambda scenario: (scenario.start, scenario.name))


def alike(scenarios: Sequence[Shown], trait: Callable[[Shown], Any], reason: str) -> tuple[list[Shown], dict[str, str]]:
    """Return the scenarios with the most frequent value of a trait, and those left out -> the reason.

    A figure that shows all scenarios has to stand when one is added that cannot be compared with the others.
    """
    traits = [trait(scenario) for scenario in scenarios]
    usual = max(traits, key=traits.count)
    kept = [scenario for scenario, own in zip(scenarios, traits, strict=True) if own == usual]
    return kept, {scenario.name: reason for scenario, own in zip(scenarios, traits, strict=True) if own != usual}


def alike_rewarded(scenarios: Sequence[Shown]) -> tuple[list[Shown], dict[str, str]]:
    """Return the scenarios that reward the same quantity, as `alike` does."""
    return alike(scenarios, lambda scenario: scenario.column, "rewarded by another quantity")


def start_ticks(axes: Axes, scenarios: Sequence[Shown]) -> None:
    """Write when growth becomes possible below each cell of a column, with the name where starts are equal."""
    starts = [f"{scenario.start:g}" for scenario in scenarios]
    names = [f"{start} {scenario.label}" for start, scenario in zip(starts, scenarios, strict=True)]
    apart = len(set(starts)) == len(starts)
    axes.set_xticks(
        np.arange(len(starts)) + 0.5, starts if apart else names, rotation=0 if apart and len(starts) < 7 else 90
    )


def narrow(scenario: Shown) -> str:
    """Return a scenario's name, a line a word, and its start below."""
    return "\n".join([*scenario.label.split(), f"{scenario.start:g} s"])


def scenario_colour(number: int, count: int) -> str:
    """Return a colour for a scenario in the order of time, from dark to light."""
    return to_hex(mpl.colormaps["viridis"](0.78 * number / max(count - 1, 1)))


def one_quantity(scenarios: Sequence[Shown], spec: FigureSpec) -> Metric:
    """Return the quantity that all scenarios of a figure reward. Raises UserError if they differ."""
    kinds = {scenario.quantity for scenario in scenarios}
    if len(kinds) > 1:
        what = "its scenarios are rewarded by different quantities"
        expected = f"one of {', '.join(sorted(kind.name for kind in kinds))}"
        remedy = "draw a figure for each"
        raise UserError(what, where=f"figure {spec.name}: scenarios", expected=expected, remedy=remedy)
    return next(iter(kinds))


def regret_metric(quantity: Metric) -> Metric:
    """Return the regret, in the unit of the rewarded quantity."""
    return Metric("regret", quantity.unit, "lower", label=f"regret in {quantity.label}")


def policies(tables: StudyTables, spec: FigureSpec, among: Iterable[str] = ()) -> list[str]:
    """Return the policies that a figure names (or all) and that were scored in its scenarios, in its order."""
    scores = tables.scores
    scores = scores[scores["scenario"].isin(spec.scenarios)] if spec.scenarios else scores
    there = set(scores["policy"])
    return [name for name in (tuple(among) or spec.policies or sorted(there)) if name in there]


def styles(tables: StudyTables, names: Sequence[str]) -> dict[str, Style]:
    """Return the policies' usual looks, with other colours for learned ones that would look alike."""
    everywhere = theme.styles_of(tables.scores)
    known = kinds_of(tables.scores)
    lines = [(everywhere[name].colour, everywhere[name].dashes) for name in names if known[name] in FITTED]
    if len(set(lines)) == len(lines):
        return {name: everywhere[name] for name in names}
    apart = theme.policy_styles({name: known[name] for name in names if known[name] in FITTED})
    return {name: apart.get(name, everywhere[name]) for name in names}


def per_seed(tables: StudyTables, metric: str, names: Sequence[str], scenarios: Sequence[Shown]) -> pd.DataFrame:
    """Return the weighted mean over test units: a row a policy and seed, a column a scenario."""
    rows = tables.scores
    of_scenarios = rows["scenario"].isin([scenario.name for scenario in scenarios])
    rows = rows[(rows["metric"] == metric) & (rows["split"] == "test") & rows["policy"].isin(names) & of_scenarios]
    rows = rows.assign(total=rows["value"] * rows["weight"])
    sums = rows.groupby(["policy", "policy_seed", "scenario"])[["total", "weight"]].sum()
    means = (sums["total"] / sums["weight"]).unstack("scenario")
    return means.reindex(columns=[scenario.name for scenario in scenarios])


def summary_rows(table: pd.DataFrame, metric: str, scenario: str, names: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the summary or of the comparisons of one metric and scenario on the test units."""
    chosen = (
        (table["metric"] == metric)
        & (table["split"] == "test")
        & (table["scenario"] == scenario)
        & table["policy"].isin(names)
    )
    return table[chosen]


def noise_of(tables: StudyTables, scenario: str) -> float:
    """Return the standard deviation of one result in a scenario, in units of the reward; NaN where it is not known."""
    rows = tables.scores[(tables.scores["scenario"] == scenario) & (tables.scores["metric"] == "noise")]
    return float(rows["value"].mean()) if len(rows) else float("nan")


def chosen_sequences(tables: StudyTables, scenario: str, policy: str) -> dict[str, float]:
    """Return a policy's choices on a scenario's test units: sequence -> share, most frequent first."""
    rows = tables.details["sequences"]
    rows = rows[(rows["scenario"] == scenario) & (rows["policy"] == policy) & (rows["split"] == "test")]
    shares = rows.groupby("sequence")["probability"].sum()
    shares = (shares / shares.sum()).sort_values(ascending=False, kind="stable")
    return {str(name): float(share) for name, share in shares.items()}


def unit_of(quantity: Metric) -> str:
    """Return the unit of a quantity for a caption; nothing for a fraction."""
    return "" if quantity.unit == "fraction" else quantity.unit


def repetitions(tables: StudyTables, names: Sequence[str], scenarios: Sequence[Shown]) -> dict[str, Any]:
    """Return the values of REPEATED: the numbers of seeds and replicates of a comparison, and why there is no
    interval.
    """
    rows = tables.summary
    of_scenarios = rows["scenario"].isin([scenario.name for scenario in scenarios])
    rows = rows[of_scenarios & rows["policy"].isin(names) & (rows["split"] == "test")]
    counts = {name: int(rows[name].max()) if len(rows) else None for name in ("seeds", "units", "blocks")}
    overlapping = all(scenario.problem.units("test")[0].kind == OVERLAPPING for scenario in scenarios)
    return {**counts, "overlapping": overlapping, "bare": not np.isfinite(rows["ci_low"]).any()}
