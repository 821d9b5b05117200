"""Case files: inputs of functions of the published program, for which our functions compute the results (`schedlab
cloud replay`).

The name of the file, without its ending, is the kind of its cases. The answer is the same document, in which results
are replaced or filled in; lists keep their order and length.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
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
from schedlab.studies.cloud.replay.state import (
    CHANGE,
    SIZE,
    CloudEnvironmentState,
    significant_change,
)
from schedlab.studies.cloud.rules.suggestions import batch_without_records, options, options_without_records
from schedlab.studies.cloud.slamorl.published import DEFECTS, PRICES, step

MIDDLE = Allocation(4, 16, 32)  # allocation from which `from_mid` of the cases starts
LOGS = "similarity_logs.csv"
NUMBER = "a number"


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
    document = Case(read_json(path, "cases as a JSON object"), str(path))
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            answer = KINDS[path.stem](document, path, compat)
    except OverflowError:
        raise _beyond(path) from None
    try:
        json.dumps(answer, allow_nan=False)
    except ValueError:
        raise _beyond(path) from None
    return answer


def print_answer(arguments: argparse.Namespace) -> int:
    """Print the answer of `schedlab cloud replay`."""
    print(json.dumps(replay(arguments.file, arguments.compat), indent=1, allow_nan=False))
    return 0


def _beyond(path: Path) -> UserError:
    return UserError("a result is no finite number", where=str(path), expected="amounts that a job can have")


class Case:
    """A JSON object and its place in the file, which error messages name."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise UserError("is no object", where=where, expected="keys and values in braces")
        self.values, self.where = values, where

    def get(self, key: str, kinds: type | tuple[type, ...], expected: str) -> Any:
        """Return the value of a required key. Raises UserError if it is missing or of another type."""
        if key not in self.values:
            raise UserError(f"key '{key}' is missing", where=self.where, expected=expected)
        value = self.values[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise UserError(f"'{key}' is {str(value)[:60]!r}", where=self.where, expected=expected)
        return value

    def number(self, key: str) -> Any:
        """Return a number. Raises UserError."""
        return self.get(key, (int, float), NUMBER)

    def count(self, key: str, least: int) -> int | None:
        """Return a whole number, or None if it is null or missing. Raises UserError."""
        if self.values.get(key) is None:
            return None
        expected = f"a whole number of {least} or more"
        if (value := self.get(key, int, expected)) < least:
            raise UserError(f"'{key}' is {value}", where=self.where, expected=expected)
        return value

    def inner(self, key: str) -> Case:
        """Return the object at a key. Raises UserError."""
        return Case(self.get(key, dict, "an object"), f"{self.where}: {key}")

    def list(self, key: str, optional: bool = False) -> list[Case]:
        """Return the objects of a list; an optional list may be missing and is then empty. Raises UserError."""
        if optional and key not in self.values:
            return []
        return [
            Case(value, f"{self.where}: {key}[{n}]") for n, value in enumerate(self.get(key, list, "a list of objects"))
        ]

    def settings(self, key: str, kind: type[Settings]) -> Any:
        """Return a typed section. Raises UserErrors."""
        inner = self.inner(key)
        return validate(kind, inner.values, lambda path: ".".join((inner.where, *map(str, path))))

    def metrics(self) -> dict[str, Any]:
        """Return the values as a record of a log. Raises UserError for a value of a wrong type."""
        return require_record(self.values, self.where)


def _action(case: Case) -> int:
    action = case.get("action", int, f"a whole number from 0 to {ACTIONS - 1}")
    if not 0 <= action < ACTIONS:
        raise UserError(f"action {action}", where=case.where, expected=f"a whole number from 0 to {ACTIONS - 1}")
    return action


def _resource(document: Case, compat: bool) -> ResourceConfig:
    """Return the resources that can be allocated. Prices that a file does not state are ours, or with compat the
    published ones.
    """
    given: ResourceConfig = document.settings("resource", ResourceConfig)
    missing = {name: price for name, price in PRICES.items() if compat and name not in given.model_fields_set}
    return given.model_copy(update=missing)


def _actions(document: Case, path: Path, compat: bool) -> dict[str, Any]:
    del path
    limits = _resource(document, compat)
    starts = {"from_mid": MIDDLE, "from_min": limits.least, "from_max": limits.most}
    answered = []
    for case in document.list("cases"):
        action = _action(case)
        after = {name: moved(start, action, limits)._asdict() for name, start in starts.items()}
        answered.append({**case.values, "changes": list(changes(action)), "description": describe(action), **after})
    return {**document.values, "cases": answered}


def _change(document: Case, path: Path, compat: bool) -> dict[str, Any]:
    del path, compat
    threshold = document.number("threshold") if "threshold" in document.values else CHANGE
    answered = []
    for case in document.list("cases"):
        index = case.get("index", int, f"a component of the state, 0 to {SIZE - 1}")
        if not 0 <= index < SIZE:
            raise UserError(
                f"'index' is {index}", where=case.where, expected=f"a component of the state, 0 to {SIZE - 1}"
            )
        after = [0.0] * SIZE
        after[index] = float(case.number("delta"))
        answered.append({**case.values, "significant": significant_change([0.0] * SIZE, after, threshold)})
    return {**document.values, "cases": answered}


def _cost(document: Case, path: Path, compat: bool) -> dict[str, Any]:
    del path, compat
    rates = document.inner("rates")
    calculator = ResourceCostCalculator(*(rates.number(key) for key in ("gpu", "cpu", "gb")))
    answered = []
    for case in document.list("cases"):
        base, new = case.inner("baseline").values, case.inner("optimized").values
        result = calculator.compare(base, new, _times(case))
        answered.append({**case.values, "result": result, "hourly_baseline": calculator.hourly_cost(base)})
    batches = [
        {**case.values, "result": check_batch(*_arguments(case))}
        for case in document.list("batch_cases", optional=True)
    ]
    diagnoses = [
        {**case.values, "result": diagnose_idle_gpus(case.inner("metrics").metrics(), case.number("gpu_count"))}
        for case in document.list("diagnose_cases", optional=True)
    ]
    found = {"cases": answered, "batch_cases": batches, "diagnose_cases": diagnoses}
    return {**document.values, **{key: value for key, value in found.items() if key in document.values}}


def _times(case: Case) -> tuple[float, float] | None:
    """Return the training times of a case, s; None if it has none."""
    given = case.values.get("training_times")
    if not given:
        return None
    if not isinstance(given, list) or len(given) != 2 or not all(isinstance(time, int | float) for time in given):
        raise UserError(f"'training_times' is {given!r}", where=case.where, expected="two numbers, in seconds")
    return given[0], given[1]


def _arguments(case: Case) -> list[Any]:
    given = case.get("args", list, "GPUs, batch size, new GPUs, new batch size")
    if len(given) != 4 or not all(isinstance(value, int | float) for value in given):
        raise UserError(f"'args' is {given!r}", where=case.where, expected="GPUs, batch size, new GPUs, new batch size")
    return given


def _similarity(document: Case, path: Path, compat: bool) -> dict[str, Any]:
    del compat

    analyser, logs = OfflineDataAnalyzer(), path.with_name(LOGS)
    cases = document.list("cases")
    if cases:
        table = read_table(logs)
        require_columns(table, ("model_name", *NEEDED), logs)
        table = require_numbers(table, NEEDED, logs)
        table = require_numbers(table, [name for name in OPTIONAL if name in table.columns], logs, optional=True)
        for model, rows in table.groupby("model_name", sort=False):
            analyser.add(rows, str(model))
    answered = [{**case.values, "prediction": analyser.predict(_query(case)), "error": None} for case in cases]
    defaults = [
        {**case.values, "prediction": default_prediction(_query(case))}
        for case in document.list("default_cases", optional=True)
    ]
    found = {**document.values, "cases": answered}
    return {**found, "default_cases": defaults} if "default_cases" in document.values else found


def _query(case: Case) -> Mapping[str, Any]:
    query = case.inner("model_info")
    # null: nothing
    return require_query({key: query.number(key) for key in QUERY if query.values.get(key) is not None}, query.where)


def _sla(document: Case, path: Path, compat: bool) -> dict[str, Any]:
    del path
    limits = _resource(document, compat), document.settings("sla", SLAConfig)
    defects = DEFECTS if compat else None
    answered = []
    for case in document.list("cases"):
        state = CloudEnvironmentState(*limits, defects)
        state.update(case.inner("metrics").metrics())
        answered.append(
            {
                **case.values,
                **_status(state),
                "overall_compliance": state.compliance,
                "state_vector": state.vector().tolist(),
            }
        )
    sequence, state = [], CloudEnvironmentState(*limits, defects)
    for case in document.list("stale_severity_sequence", optional=True):
        state.update(case.inner("metrics").metrics())
        sequence.append({**case.values, **_status(state), "state_vector": state.vector().tolist()})
    forecasts = []
    for case in document.list("forecast_cases", optional=True):
        history = [record.metrics() for record in case.list("history")]
        forecasts.append({**case.values, "forecast": forecast(history)})
    found = {"cases": answered, "stale_severity_sequence": sequence, "forecast_cases": forecasts}
    return {**document.values, **{key: value for key, value in found.items() if key in document.values}}


def _status(state: CloudEnvironmentState) -> dict[str, Any]:
    return {
        "sla_status": {
            item: {"met": verdict.met, "severity": verdict.severity} for item, verdict in state.status.items()
        }
    }


def _reward(document: Case, path: Path, compat: bool) -> dict[str, Any]:
    del path
    limits = _resource(document, compat), document.settings("sla", SLAConfig)
    return {**document.values, "cases": [_rewarded(case, limits, compat) for case in document.list("cases")]}


def _rewarded(case: Case, limits: tuple[ResourceConfig, SLAConfig], compat: bool) -> dict[str, Any]:
    preference = require_preference(case.get("preference", str, "the name of a preference"), case.where)
    history = [record.metrics() for record in case.list("history")]
    allocation = allocation_from(case.inner("allocation").values, f"{case.where}: allocation")
    taken = step(_action(case), allocation, history, preference, limits, compat)
    suggested = (
        [option.values() for option in options(history[-1], taken.allocation, limits[0], limits[1].throughput_min)]
        if history
        else []
    )
    suggested = suggested or _without_records(case, taken.allocation, limits[0])
    parts = {name: getattr(taken.reward, name) for name in ("cost", "performance", "efficiency", "sla", "total")}
    return {
        **case.values,
        "new_allocation": taken.allocation._asdict(),
        "reward": taken.reward.total,
        "components": {f"{name}_reward": value for name, value in parts.items()},
        "done": taken.done,
        "next_state": taken.state.tolist(),
        "allocation_changed": taken.changed,
        "options": suggested,
    }


def _without_records(case: Case, allocation: Allocation, limits: ResourceConfig) -> list[dict[str, Any]]:
    """Return the options of a case without history, each with its batch size. They depend on `baseline`, a record of
    the log, if the case has one.
    """
    record = case.inner("baseline") if "baseline" in case.values else Case({}, case.where)
    used = gpu_utilisations(record.metrics())
    batch, gpus = record.count("batch_size", least=1), record.count("gpu_count", least=0)
    found = options_without_records(sum(used) / max(1, len(used)), allocation, limits)
    return [
        {**each.values(), "batch_size": batch_without_records(each.allocation.gpu_count, batch, gpus or 1)}
        for each in found
    ]


KINDS: dict[str, Callable[[Case, Path, bool], dict[str, Any]]] = {
    "actions": _actions,
    "change": _change,
    "cost": _cost,
    "reward": _reward,
    "similarity": _similarity,
    "sla": _sla,
}
