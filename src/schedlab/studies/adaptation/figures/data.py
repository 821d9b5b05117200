"""The data of the figures: scenarios with their tables, quantities with units, the choices of policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from schedlab.config.contract import FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import read_table
from schedlab.figures import theme
from schedlab.figures.order import FITTED, kinds_of
from schedlab.figures.selection import select
from schedlab.figures.theme import Style
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.problem import OVERLAPPING, AdaptationProblem, setup_of
from schedlab.studies.adaptation.scenario import scenario_of

BEST, NEVER = "exhaustive", "never"  # the oracle and the rule that figures treat separately
PUBLISHED = re.compile(r"^published_(\w+)_convnet\d$")
LOW_IS_GOOD, HIGH_IS_GOOD = "viridis_r", "viridis"  # colour maps whose good end is light, for all figures
QUANTITIES = {  # column of the simulation tables -> its metric
    "train_loss": Metric("train_log_loss", "nat", "lower", label="training log loss"),
    "train_accuracy": Metric("train_accuracy", "fraction", "higher", label="training accuracy"),
    "validation_loss": Metric("validation_log_loss", "nat", "lower", label="validation log loss"),
    "validation_accuracy": Metric("validation_accuracy", "fraction", "higher", label="validation accuracy"),
    "test_loss": Metric("test_log_loss", "nat", "lower", label="test log loss"),
    "test_accuracy": Metric("test_accuracy", "fraction", "higher", label="test accuracy"),
}
EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}  # edges of marks that overlap others
DASHED: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (4, 2))}
REPEATED = (
    "[{seeds:seed|seeds} of each learned policy, {units:test replicate|test replicates} of {blocks:job|jobs}"
    "[{overlapping}, on which policies also learned][{bare}; with fewer than five there is no interval].]"
)


@dataclass(frozen=True)
class Shown:
    """A scenario in a figure.

    start, budget  pinned seconds at which growth becomes possible, and in total
    window         number of last epochs over which a result is averaged
    problem        the table as arrays
    table          a row for each job, replicate and sequence
    column         rewarded column of the table
    quantity       the rewarded quantity, with the sign that readers expect: a loss is positive
    sequences      all sequences in lexicographic order
    best, nothing  positions of the sequence with the best mean, and of the one without growth
    replicates     number of results of each sequence, over jobs and replicates
    action_names   each action in words; the last does nothing
    """

    name: str
    start: float
    budget: float
    window: int
    problem: AdaptationProblem
    table: pd.DataFrame
    column: str
    quantity: Metric
    sequences: tuple[str, ...]
    best: int
    nothing: int
    replicates: int
    action_names: tuple[str, ...]

    @property
    def label(self) -> str:
        """The scenario's name in words, without the part that distinguishes published tables."""
        return in_words(self.name)

    def tick(self, narrow: bool = False) -> str:
        """Return the label and, below it, the time from which growth is possible; narrow: one word in each line."""
        return f"{self.label.replace(' ', chr(10)) if narrow else self.label}\n{self.start:g} s"

    def values(self, column: str = "") -> np.ndarray:
        """Return a column of the table, by default the rewarded one: (units, sequences)."""
        return self.problem.view.metrics[column or self.column]

    def mean(self, column: str = "") -> np.ndarray:
        """Return the mean of a column over jobs and replicates, by default of the rewarded one: (sequences,)."""
        return self.values(column).mean(0)

    def better(self, column: str = "") -> np.ndarray:
        """Return the same mean with the sign that makes larger values better: (sequences,)."""
        return self.mean(column) * (1 if QUANTITIES[column or self.column].better == "higher" else -1)


def in_words(name: str) -> str:
    """Return a scenario's name in words; for a published scenario without the model, which the heading names."""
    return PUBLISHED.sub(r"\1", name).replace("_", " ")


def scenarios_of(tables: StudyTables, spec: FigureSpec, names: Iterable[str] = ()) -> list[Shown]:
    """Return the scenarios of a figure, ordered by start; with `names`, only these, in their order.

    Raises UserError for an unknown scenario.
    """
    found = []
    for name in tuple(names) or spec.scenarios or tuple(tables.scenarios):
        if name not in tables.scenarios:
            what, remedy = f"there is no scenario '{name}' here", did_you_mean(name, tables.scenarios)
            raise UserError(what, where=f"figure {spec.name}", remedy=remedy)
        scenario = scenario_of(tables.scenarios[name])
        start, table = architecture(scenario.model), read_table(tables.inputs[name]["table"])
        problem = AdaptationProblem(name, table, start, setup_of(scenario, start))
        column, tree, view = problem.setup.metric, problem.tree, problem.view
        best, actions = (
            int(view.reward.mean(0).argmax()),
            [f"{it.operation} {it.block}" for it in problem.setup.actions],
        )
        counts = best, tree.index(tree.nothing), len(view.units), (*actions, "nothing")
        facts = name, scenario.adapt_at, scenario.budget, scenario.reward.window, problem, table
        found.append(Shown(*facts, column, QUANTITIES[column], tree.sequences, *counts))
    return found if names else sorted(found, key=lambda scenario: (scenario.start, scenario.name))


def alike(scenarios: Sequence[Shown], trait: Callable[[Shown], Any], reason: str) -> tuple[list[Shown], dict[str, str]]:
    """Return the scenarios with the most frequent value of a trait, and scenario -> reason for those left out.

    A figure of all scenarios must still be drawn when a scenario is added that cannot be compared with the others.
    """
    traits = [trait(scenario) for scenario in scenarios]
    usual = max(traits, key=traits.count)
    kept = [scenario for scenario, own in zip(scenarios, traits, strict=True) if own == usual]
    return kept, {scenario.name: reason for scenario, own in zip(scenarios, traits, strict=True) if own != usual}


def alike_rewarded(tables: StudyTables, spec: FigureSpec) -> tuple[list[Shown], dict[str, str]]:
    """Return the scenarios of a figure that reward the same quantity, as `alike` does."""
    return alike(scenarios_of(tables, spec), lambda scenario: scenario.column, "rewarded by another quantity")


def regret_metric(quantity: Metric) -> Metric:
    """Return the regret, in the unit of the rewarded quantity."""
    return Metric("regret", quantity.unit, "lower", label=f"regret in {quantity.label}")


def unit_of(quantity: Metric) -> str:
    """Return the unit of a quantity for a caption; empty for a fraction."""
    return "" if quantity.unit == "fraction" else quantity.unit


def policies(tables: StudyTables, spec: FigureSpec) -> list[str]:
    """Return the policies that a figure names (or all) and that were scored in its scenarios, in its order."""
    scores = select(tables.scores, scenario=spec.scenarios) if spec.scenarios else tables.scores
    there = set(scores["policy"])
    return [name for name in spec.policies or sorted(there) if name in there]


def styles(tables: StudyTables, names: Sequence[str]) -> dict[str, Style]:
    """Return the policies' usual looks, with other colours for learned ones that would look alike."""
    everywhere, known = theme.styles_of(tables.scores), kinds_of(tables.scores)
    lines = [(everywhere[name].colour, everywhere[name].dashes) for name in names if known[name] in FITTED]
    unlike = len(set(lines)) == len(lines)
    apart = {} if unlike else theme.policy_styles({name: known[name] for name in names if known[name] in FITTED})
    return {name: apart.get(name, everywhere[name]) for name in names}


def tested(table: pd.DataFrame, metric: str, scenario: str, names: Sequence[str]) -> pd.DataFrame:
    """Return the rows of scores, a summary or comparisons of one metric and scenario on the test units."""
    return select(table, metric=metric, split="test", scenario=scenario, policy=names)


def per_seed(tables: StudyTables, metric: str, names: Sequence[str], scenarios: Sequence[Shown]) -> pd.DataFrame:
    """Return the weighted mean over test units: a row for each policy and seed, a column for each scenario."""
    shown = [scenario.name for scenario in scenarios]
    rows = select(tables.scores, metric=metric, split="test", policy=names, scenario=shown)
    rows = rows.assign(total=rows["value"] * rows["weight"])
    sums = rows.groupby(["policy", "policy_seed", "scenario"])[["total", "weight"]].sum()
    return (sums["total"] / sums["weight"]).unstack("scenario").reindex(columns=shown)


def repetitions(tables: StudyTables, names: Sequence[str], scenarios: Sequence[Shown]) -> dict[str, Any]:
    """Return the values of REPEATED: the seeds and replicates of a comparison, and why there is no interval."""
    rows = select(tables.summary, scenario=[scenario.name for scenario in scenarios], policy=names, split="test")
    counts = {name: int(rows[name].max()) if len(rows) else None for name in ("seeds", "units", "blocks")}
    overlapping = all(scenario.problem.units("test")[0].kind == OVERLAPPING for scenario in scenarios)
    return {**counts, "overlapping": overlapping, "bare": not np.isfinite(rows["ci_low"]).any()}
