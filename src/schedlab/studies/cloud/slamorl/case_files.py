"""Case files: inputs of functions of the published program, for which our functions compute the results (`schedlab
cloud replay`).

The name of the file, without its ending, is the kind of its cases. The answer is the same document, in which results
are replaced or filled in; lists keep their order and length.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.readers import read_json
from schedlab.config.schema import Settings, validate
from schedlab.studies.cloud.model.allocation import (
    ACTIONS,
    Allocation,
    ResourceConfig,
    allocation_from,
    changes,
    describe,
    moved,
)
from schedlab.studies.cloud.model.analyser import NEEDED, QUERY, OfflineDataAnalyzer, default_prediction, require_query
from schedlab.studies.cloud.model.cost import ResourceCostCalculator, check_batch, diagnose_idle_gpus
from schedlab.studies.cloud.model.logs import OPTIONAL, read_table, require_columns, require_numbers
from schedlab.studies.cloud.replay.reward import require_preference
from schedlab.studies.cloud.replay.sla import SLAConfig, forecast, gpu_utilisations, require_record
from schedlab.studies.cloud.replay.state import CHANGE, SIZE, CloudEnvironmentState, significant_change
from schedlab.studies.cloud.rules.suggestions import batch_without_records, options, options_without_records
from schedlab.studies.cloud.slamorl.published import DEFECTS, PRICES, step

MIDDLE = Allocation(4, 16, 32)  # allocation from which `from_mid` of the cases starts
LOGS = "similarity_logs.csv"
BATCHES = "GPUs, batch size, new GPUs, new batch size"
PARTS = ("cost", "performance", "efficiency", "sla", "total")


def replay(path: Path, compat: bool) -> dict[str, Any]:
    """Return the document of a case file with our results. compat: reproduce the defects of SLA-MORL's program. Raises
    UserError for an invalid file.
    """
    if path.stem not in KINDS:
        raise UserError(
            f"there is no kind of case '{path.stem}'",
            where=str(path),
            expected=f"a file named by the kind of its cases: {', '.join(f'{kind}.json' for kind in KINDS)}",
            remedy="rename it",
        )
    document = Case(read_json(path, "cases as a JSON object"), str(path), compat)
    beyond = UserError("a result is no finite number", where=str(path), expected="amounts that a job can have")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            answer = {**document.values, **KINDS[path.stem](document)}
    except OverflowError:
        raise beyond from None
    try:
        json.dumps(answer, allow_nan=False)
    except ValueError:  # of NaN and infinity
        raise beyond from None
    return answer


def print_answer(arguments: argparse.Namespace) -> int:
    """Print the answer of `schedlab cloud replay`."""
    print(json.dumps(replay(arguments.file, arguments.compat), indent=1, allow_nan=False))
    return 0


class Case:
    """A JSON object and its place in the file, which error messages name. compat: as of `replay`."""

    def __init__(self, values: Any, where: str, compat: bool = False) -> None:
        if not isinstance(values, dict):
            raise UserError("is no object", where=where, expected="keys and values in braces")
        self.values, self.where, self.compat = values, where, compat

    def get(self, key: str, kinds: type | tuple[type, ...], expected: str) -> Any:
        """Return the value of a required key. Raises UserError if it is missing or of another type."""
        if key not in self.values:
            raise UserError(f"key '{key}' is missing", where=self.where, expected=expected)
        value = self.values[key]
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise UserError(f"'{key}' is {str(value)[:60]!r}", where=self.where, expected=expected)
        return value

    def number(self, key: str) -> Any:
        """Return a number. Raises UserError."""
        return self.get(key, (int, float), "a number")

    def whole(self, key: str, least: int, most: float = math.inf) -> int:
        """Return a whole number within bounds. Raises UserError."""
        expected = f"a whole number {f'from {least} to {most}' if most < math.inf else f'of {least} or more'}"
        if not least <= (value := self.get(key, int, expected)) <= most:
            raise UserError(f"'{key}' is {value}", where=self.where, expected=expected)
        return value

    def numbers(self, key: str, count: int, expected: str) -> list[Any]:
        """Return a list of so many numbers. Raises UserError."""
        given = self.get(key, list, expected)
        if len(given) != count or not all(isinstance(value, int | float) for value in given):
            raise UserError(f"'{key}' is {given!r}", where=self.where, expected=expected)
        return given

    def inner(self, key: str) -> Case:
        """Return the object at a key. Raises UserError."""
        return Case(self.get(key, dict, "an object"), f"{self.where}: {key}")

    def list(self, key: str) -> list[Case]:
        """Return the objects of a list. Raises UserError."""
        given = self.get(key, list, "a list of objects")
        return [Case(value, f"{self.where}: {key}[{n}]") for n, value in enumerate(given)]

    def answered(self, key: str, answer: Callable[[Case], dict[str, Any]], optional: bool = False) -> dict[str, Any]:
        """Return {key: the objects of a list, each with its answer}; nothing if an optional list is missing."""
        if optional and key not in self.values:
            return {}
        return {key: [{**case.values, **answer(case)} for case in self.list(key)]}

    def settings(self, key: str, kind: type[Settings]) -> Any:
        """Return a typed section. Raises UserErrors."""
        inner = self.inner(key)
        return validate(kind, inner.values, lambda path: ".".join((inner.where, *map(str, path))))

    def resource(self) -> ResourceConfig:
        """Return the resources that can be allocated. Prices that a file does not state are ours, or with compat the
        published ones.
        """
        given: ResourceConfig = self.settings("resource", ResourceConfig)
        missing = {name: price for name, price in PRICES.items() if self.compat and name not in given.model_fields_set}
        return given.model_copy(update=missing)

    def metrics(self) -> dict[str, Any]:
        """Return the values as a record of a log. Raises UserError for a value of a wrong type."""
        return require_record(self.values, self.where)

    def query(self) -> dict[str, Any]:
        """Return the facts about a model; null counts as missing. Raises UserError."""
        asked = self.inner("model_info")
        given = {key: asked.number(key) for key in QUERY if asked.values.get(key) is not None}
        return dict(require_query(given, asked.where))


def _actions(document: Case) -> dict[str, Any]:
    limits = document.resource()
    starts = {"from_mid": MIDDLE, "from_min": limits.least, "from_max": limits.most}

    def answer(case: Case) -> dict[str, Any]:
        action = case.whole("action", 0, ACTIONS - 1)
        after = {name: moved(start, action, limits)._asdict() for name, start in starts.items()}
        return {"changes": list(changes(action)), "description": describe(action), **after}

    return document.answered("cases", answer)


def _change(document: Case) -> dict[str, Any]:
    threshold = document.number("threshold") if "threshold" in document.values else CHANGE

    def answer(case: Case) -> dict[str, Any]:
        after = [0.0] * SIZE
        after[case.whole("index", 0, SIZE - 1)] = float(case.number("delta"))
        return {"significant": significant_change([0.0] * SIZE, after, threshold)}

    return document.answered("cases", answer)


def _cost(document: Case) -> dict[str, Any]:
    rates = document.inner("rates")
    calculator = ResourceCostCalculator(*(rates.number(key) for key in ("gpu", "cpu", "gb")))

    def compared(case: Case) -> dict[str, Any]:
        base, new = case.inner("baseline").values, case.inner("optimized").values
        times = case.numbers("training_times", 2, "two numbers, in s") if case.values.get("training_times") else None
        result = calculator.compare(base, new, (times[0], times[1]) if times else None)
        return {"result": result, "hourly_baseline": calculator.hourly_cost(base)}

    def checked(case: Case) -> dict[str, Any]:
        return {"result": check_batch(*case.numbers("args", 4, BATCHES))}

    def diagnosed(case: Case) -> dict[str, Any]:
        return {"result": diagnose_idle_gpus(case.inner("metrics").metrics(), case.number("gpu_count"))}

    return {
        **document.answered("cases", compared),
        **document.answered("batch_cases", checked, optional=True),
        **document.answered("diagnose_cases", diagnosed, optional=True),
    }


def _similarity(document: Case) -> dict[str, Any]:
    analyser, logs = OfflineDataAnalyzer(), Path(document.where).with_name(LOGS)
    if document.list("cases"):
        table = read_table(logs)
        require_columns(table, ("model_name", *NEEDED), logs)
        table = require_numbers(table, NEEDED, logs)
        table = require_numbers(table, [name for name in OPTIONAL if name in table.columns], logs, optional=True)
        for model, rows in table.groupby("model_name", sort=False):
            analyser.add(rows, str(model))
    return {
        **document.answered("cases", lambda case: {"prediction": analyser.predict(case.query()), "error": None}),
        **document.answered("default_cases", lambda case: {"prediction": default_prediction(case.query())}, True),
    }


def _sla(document: Case) -> dict[str, Any]:
    limits = document.resource(), document.settings("sla", SLAConfig)
    defects = DEFECTS if document.compat else None
    lasting = CloudEnvironmentState(*limits, defects)

    def updated(state: CloudEnvironmentState, case: Case) -> dict[str, Any]:
        state.update(case.inner("metrics").metrics())
        status = {item: {"met": each.met, "severity": each.severity} for item, each in state.status.items()}
        return {"sla_status": status, "state_vector": state.vector().tolist()}

    def alone(case: Case) -> dict[str, Any]:
        state = CloudEnvironmentState(*limits, defects)
        return {**updated(state, case), "overall_compliance": state.compliance}

    def expected(case: Case) -> dict[str, Any]:
        return {"forecast": forecast([record.metrics() for record in case.list("history")])}

    return {
        **document.answered("cases", alone),
        **document.answered("stale_severity_sequence", lambda case: updated(lasting, case), optional=True),
        **document.answered("forecast_cases", expected, optional=True),
    }


def _reward(document: Case) -> dict[str, Any]:
    limits = document.resource(), document.settings("sla", SLAConfig)

    def answer(case: Case) -> dict[str, Any]:
        preference = require_preference(case.get("preference", str, "the name of a preference"), case.where)
        history = [record.metrics() for record in case.list("history")]
        held = allocation_from(case.inner("allocation").values, f"{case.where}: allocation")
        action = case.whole("action", 0, ACTIONS - 1)
        taken = step(action, held, history, preference, limits, document.compat)
        if history:
            found = options(history[-1], taken.allocation, limits[0], limits[1].throughput_min)
            suggested = [option.values() for option in found]
        else:
            suggested = _without_records(case, taken.allocation, limits[0])
        return {
            "new_allocation": taken.allocation._asdict(),
            "reward": taken.reward.total,
            "components": {f"{name}_reward": getattr(taken.reward, name) for name in PARTS},
            "done": taken.done,
            "next_state": taken.state.tolist(),
            "allocation_changed": taken.changed,
            "options": suggested,
        }

    return document.answered("cases", answer)


def _without_records(case: Case, allocation: Allocation, limits: ResourceConfig) -> list[dict[str, Any]]:
    """Return the options of a case without history, each with its batch size. They depend on `baseline`, a record of
    the log, if the case has one.
    """
    record = case.inner("baseline") if "baseline" in case.values else Case({}, case.where)
    used = gpu_utilisations(record.metrics())
    batch, gpus = (
        None if record.values.get(key) is None else record.whole(key, least)
        for key, least in (("batch_size", 1), ("gpu_count", 0))
    )
    found = options_without_records(sum(used) / max(1, len(used)), allocation, limits)
    return [
        {**each.values(), "batch_size": batch_without_records(each.allocation.gpu_count, batch, gpus or 1)}
        for each in found
    ]


KINDS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "actions": _actions,
    "change": _change,
    "cost": _cost,
    "reward": _reward,
    "similarity": _similarity,
    "sla": _sla,
}
