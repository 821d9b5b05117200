"""The data of the figures: the rows of one workload, its platform, policies and their styles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from schedlab.config.contract import FigureSpec, StudyTables
from schedlab.config.errors import UserError, did_you_mean
from schedlab.figures import theme
from schedlab.figures.order import kinds_of, policy_order
from schedlab.figures.selection import select
from schedlab.figures.theme import Style
from schedlab.platforms.hierarchy import Hierarchy, read_hierarchy
from schedlab.studies.hetero.outcomes import METRICS

BY_NAME = {metric.name: metric for metric in METRICS}
HEADLINE = next(metric for metric in METRICS if metric.headline)


@dataclass(frozen=True)
class Workload:
    """One workload of the first scenario of a figure under the policies that the figure shows."""

    tables: StudyTables
    scenario: str
    unit: str
    policies: tuple[str, ...]

    def facts(self) -> dict[str, str]:
        """Return the names of workload and scenario for the caption."""
        return {"unit": self.unit, "scenario": self.scenario}

    def detail(self, table: str) -> dict[str, pd.DataFrame]:
        """Return policy -> the rows of a detail table for the workload and the policy's lowest seed."""
        rows = select(self.tables.details[table], scenario=self.scenario, unit=self.unit)
        found = {policy: rows[rows["policy"] == policy] for policy in self.policies}
        return {policy: own[own["policy_seed"] == own["policy_seed"].min()] for policy, own in found.items()}

    def machine(self) -> Hierarchy:
        """Return the platform."""
        return read_hierarchy(self.tables.inputs[self.scenario]["resources"])

    def looks(self) -> dict[str, Style]:
        """Return the styles of the policies; if all are rules, they get colours in their order in the figure."""
        styles, kinds = theme.styles_of(self.tables.scores), kinds_of(self.tables.scores)
        if any(kinds[name] not in ("rule", "planner") for name in self.policies):
            return styles
        numbered, dashes = enumerate(self.policies), theme.DASHES
        return {name: Style(theme.colour(n), styles[name].marker, dashes[n % len(dashes)]) for n, name in numbered}


def workload(tables: StudyTables, spec: FigureSpec, unit: str) -> Workload:
    """Return the workload of a figure: `unit`, or the first of the test split. Raises UserError for no such unit."""
    scenario = scenarios(tables, spec)[0]
    rows = tables.scores[tables.scores["scenario"] == scenario]
    known = sorted(set(rows["unit"]))
    wanted = unit or min(rows.loc[rows["split"] == "test", "unit"])
    if wanted not in known:
        where, remedy = f"figure {spec.name}: params.unit", did_you_mean(wanted, known)
        raise UserError(f"there is no workload '{wanted}'", where=where, remedy=remedy)
    return Workload(tables, scenario, wanted, tuple(policies(tables, spec, [scenario])))


def scenarios(tables: StudyTables, spec: FigureSpec) -> list[str]:
    """Return the scenarios that a figure shows, in its order; all if it names none."""
    return list(spec.scenarios or sorted(tables.scenarios))


def policies(tables: StudyTables, spec: FigureSpec, shown: Sequence[str]) -> list[str]:
    """Return the policies that a figure shows, in its order; if it names none, all from best to worst."""
    ranked = policy_order(select(tables.summary, scenario=shown, split="test"), HEADLINE)
    return [name for name in spec.policies if name in ranked] if spec.policies else ranked


def split_means(summary: pd.DataFrame, metric: str, scenario: str) -> Mapping[str, float]:
    """Return policy -> value of a metric on the test workloads of a scenario."""
    rows = select(summary, metric=metric, scenario=scenario, split="test")
    return dict(zip(rows["policy"], rows["value"], strict=True))
