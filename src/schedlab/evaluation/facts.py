"""Facts of scenarios and policies as columns of the tables, so that nobody has to parse names.

Facts of a scenario are those that its study states (`Study.facts`) and the values of the keys that vary between the
members of its family. Facts of a policy are its recipe, the scenarios on which it was trained, and the varying values
of its family. Facts of units are added to the scores by the evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from schedlab.evaluation.tables import ColumnType, TableKind, fact_column, fact_type

if TYPE_CHECKING:
    import pandas as pd

Values = Mapping[str, Any]  # fact -> bool, int, float, text or None


@dataclass(frozen=True)
class Facts:
    """Facts by scenario and policy.

    scenarios  scenario -> facts
    policies   learned policy -> facts
    rules      scenario -> rule -> facts
    """

    scenarios: Mapping[str, Values]
    policies: Mapping[str, Values]
    rules: Mapping[str, Mapping[str, Values]]

    @cached_property
    def types(self) -> dict[str, ColumnType]:
        """Fact -> type of its column: the recipe, then the others by name."""
        found: dict[str, list[Any]] = {}
        for values in (*self.scenarios.values(), *self.policies.values()):
            for name, value in values.items():
                found.setdefault(name, []).append(value)
        others = {name: fact_type(found[name]) for name in sorted(found.keys() - {"recipe"})}
        return {"recipe": "text", **others}

    def extend(self, kind: TableKind) -> TableKind:
        """Return a kind of table with a column for each fact, except `trained_on` if the kind has that column."""
        there = {"trained_on"} & set(kind.names)
        return kind.with_facts({name: of_fact for name, of_fact in self.types.items() if name not in there})

    def of(self, scenario: str, policy: str) -> dict[str, Any]:
        """Return the facts of a policy in a scenario. If a rule has no other recipe, its recipe is its name."""
        given = self.policies.get(policy) or self.rules.get(scenario, {}).get(policy, {})
        return {"recipe": policy, **self.scenarios.get(scenario, {}), **given}

    def joined(self, table: pd.DataFrame, scenario: str = "scenario") -> pd.DataFrame:
        """Return a table with the facts that are not yet columns of it. scenario: the column with the name of the
        scenario.
        """
        names = [scenario, "policy"]
        rows = [self.of(*pair) for pair in table[names].drop_duplicates().itertuples(index=False)]
        which = table.groupby(names, sort=False).ngroup()
        new = {name: kind for name, kind in self.types.items() if name not in table}
        columns = {name: fact_column([row.get(name) for row in rows], kind) for name, kind in new.items()}
        return table.assign(**{name: found.take(which).set_axis(table.index) for name, found in columns.items()})
