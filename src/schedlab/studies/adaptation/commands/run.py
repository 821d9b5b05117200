"""The command `schedlab adaptation run`: one real training, in which a policy or a given sequence decides on growth."""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.learning.devices import find_device
from schedlab.studies.adaptation.commands.acting import make_chooser
from schedlab.studies.adaptation.commands.conf import STUDY_NAME, load_scenario
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.network.files import SavedNetwork, check_path, layout_of, write_network
from schedlab.studies.adaptation.network.training import on_device
from schedlab.studies.adaptation.simulator.course import growth_actions
from schedlab.studies.adaptation.simulator.live import run_live
from schedlab.studies.adaptation.simulator.simulate import run_sequence
from schedlab.studies.adaptation.simulator.table import (
    METRICS,
    UNIT,
    DecisionTree,
    need_columns,
    read_simulations,
    simulation_table,
)
from schedlab.studies.adaptation.study import STUDY

if TYPE_CHECKING:
    import pandas as pd

    from schedlab.studies.adaptation.commands.acting import Chooser
    from schedlab.studies.adaptation.data.datasets import DataSet
    from schedlab.studies.adaptation.network.training import TrainState
    from schedlab.studies.adaptation.scenario import AdaptationScenario

log = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    """Train, print the result, and write the weights if requested; return 1 if --check finds no equal outcome."""
    layout = layout_of(arguments.layout)
    if arguments.weights:
        check_path(arguments.weights)  # checked first, because training may take hours
    configured = load_scenario(arguments.conf, arguments.scale, arguments.scenario, values=arguments.values)
    configured = _on_device(configured, configured.training.device, "training.device")
    scenario = _changed(configured, arguments)
    job = scenario.jobs[0] if arguments.job is None else arguments.job
    if min(arguments.seed, job, arguments.replicate) < 0:
        raise UserError("a negative number", where="--seed, --job, --replicate", expected="0, 1, 2, ...")
    chooser = make_chooser(scenario, arguments, (job, arguments.replicate), table_file(arguments))
    watcher = _Watcher(scenario)
    rows = _train(scenario, (job, arguments.replicate), chooser, datasets.load(scenario.data), watcher, arguments.clock)
    document = _document(arguments, scenario, chooser, rows)
    same = scenario.model_copy(update={"curves": configured.curves}) == configured  # more evaluations change nothing
    entry: dict[str, Any] = document["outcome"]
    held = {name: value for name, value in entry.items() if configured.curves or not name.startswith("slope_")}
    if arguments.weights:
        about = {"scenario": scenario.name, "sequence": document["sequence"]}
        about["data"] = scenario.data.model_dump(mode="json")
        _write_weights(arguments.weights, watcher.state, layout, about)
        document["weights"] = str(arguments.weights)
    document["table"] = None
    try:
        if same and arguments.clock == "pinned":
            document["table"] = compare(table_file(arguments), scenario, held)
    finally:  # a damaged table prevents only the comparison
        text = json.dumps(document, indent=2, allow_nan=False) if arguments.json else "\n".join(_summary(document))
        print(text, flush=True)
    table = document["table"]
    if table is not None and not table["equal"]:
        why = "it was made with other values, or on another machine's library"
        log.warning("the table %s holds another outcome: %s", table["file"], why)
    return int(arguments.check and not (table and table["equal"]))


def table_file(arguments: argparse.Namespace) -> Path:
    """Return the path at which the workflow writes the scenario's simulation table."""
    return arguments.results / arguments.scale / STUDY_NAME / arguments.scenario / "inputs" / "table.parquet"


def outcome(scenario: AdaptationScenario, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the entry of the simulation table that follows from the rows of one run."""
    tree = DecisionTree(len(growth_actions(scenario, architecture(scenario.model))) + 1, scenario.decisions)
    names = {"model": scenario.model.name, "data": scenario.data.name, "timing": scenario.timing.name}
    table = simulation_table(rows, tree, scenario.reward.window, scenario.decision_every, **names)
    return {name: _plain(value) for name, value in table.iloc[0].items()}


def compare(file: Path, scenario: AdaptationScenario, entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Compare an entry with that of a simulation table, bit for bit. Return None if there is no table to compare with.

    Raises UserError for a file that is no simulation table.
    """
    if "trunk" not in STUDY.inputs(scenario) or not file.is_file():  # a published table, or none
        return None
    table = read_simulations(file)
    key = {name: entry[name] for name in (*UNIT, "sequence")}
    need_columns(table, list(key), str(file))
    found = table[(table[list(key)] == list(key.values())).all(axis=1)]
    if found.empty:
        return {"file": str(file), "equal": False, "differences": {"entry": [None, key]}}
    held = {name: _plain(value) for name, value in found.iloc[0].items()}
    names = dict.fromkeys([*entry, *held])
    differences = {name: [held.get(name), entry.get(name)] for name in names if held.get(name) != entry.get(name)}
    return {"file": str(file), "equal": not differences, "differences": differences}


class _Watcher:
    """Reports each epoch on standard error and keeps the last state."""

    def __init__(self, scenario: AdaptationScenario) -> None:
        self.state: TrainState | None = None
        self._scenario = scenario

    def __call__(self, step: Any, metrics: Mapping[str, float], state: TrainState) -> None:
        self.state = state
        left = step.time_left - step.seconds.total
        told = " ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        log.info(
            "%s: epoch %d, %g of %g s left, %s", self._scenario.name, step.node.epoch, left, self._scenario.budget, told
        )


def _train(
    scenario: AdaptationScenario,
    place: tuple[int, int],
    chooser: Chooser,
    dataset: DataSet,
    watcher: _Watcher,
    clock: str,
) -> pd.DataFrame:
    """Return the rows of the run. A policy that does not observe the training makes all decisions beforehand."""
    if clock == "wall":
        return run_live(scenario, *place, chooser.choose, dataset, watcher, time.perf_counter)
    if chooser.reads_slope:
        return run_live(scenario, *place, chooser.choose, dataset, watcher)
    return run_sequence(scenario, *place, chooser.choose, dataset, watcher)


def _summary(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that summarise a document."""
    entry, table = document["outcome"], document["table"]
    who = f"policy {document['policy']} (seed {document['policy_seed']})" if document["policy"] else "a given sequence"
    yield f"scenario {document['scenario']} at scale {document['scale']}, mode {document['mode']}, {who}"
    yield f"job {document['job']}, replicate {document['replicate']}, {document['clock']} clock, {document['device']}"
    for asked in document["decisions"]:
        sure = asked["probabilities"][asked["action"]]
        yield f"decision {asked['decision']}: {asked['name']}, {asked['time_left']:g} s left, probability {sure:.3g}"
    epochs = f"{entry['epochs']} epochs, {entry['seconds_charged']:g} s charged"
    yield f"sequence {entry['sequence']}: {epochs}, {entry['parameters']} parameters"
    for split in ("train", "validation", "test"):
        if entry.get(f"{split}_loss") is not None:
            yield f"{split}: log loss {entry[f'{split}_loss']:.4f}, accuracy {entry[f'{split}_accuracy']:.4f}"
    if table:
        yield f"the table {table['file']} holds {'the same, bit for bit' if table['equal'] else 'another outcome'}"
    if "weights" in document:
        yield f"the network: {document['weights']}"


def _changed(scenario: AdaptationScenario, arguments: argparse.Namespace) -> AdaptationScenario:
    if arguments.compat:
        scenario = load_scenario(arguments.conf, arguments.scale, arguments.scenario, True, arguments.values)
    if arguments.curves:
        scenario = scenario.model_copy(update={"curves": True})
    return _on_device(
        scenario, arguments.device or scenario.training.device, "--device" if arguments.device else "training.device"
    )


def _on_device(scenario: AdaptationScenario, name: str, where: str) -> AdaptationScenario:
    """Return the scenario with training on a device; `auto`: on the device that this machine has."""
    if name == scenario.training.device != "auto":
        return scenario

    return on_device(scenario, find_device(name, where).type)


def _document(
    arguments: argparse.Namespace, scenario: AdaptationScenario, chooser: Chooser, rows: pd.DataFrame
) -> dict[str, Any]:
    entry = outcome(scenario, rows)
    columns = ["epoch", "action", "parameters", "time_left", "train_seconds", "eval_seconds", *METRICS]
    return {
        "scenario": scenario.name,
        "scale": arguments.scale,
        "mode": scenario.mode,
        "clock": arguments.clock,
        "device": scenario.training.device,
        "policy": arguments.policy,
        "policy_seed": arguments.seed if arguments.policy else None,
        "job": entry["job"],
        "replicate": entry["replicate"],
        "sequence": entry["sequence"],
        "decisions": chooser.decisions,
        "outcome": entry,
        "epochs": [{name: _plain(row[name]) for name in columns} for _, row in rows.iterrows()],
    }


def _write_weights(path: Path, state: TrainState | None, layout: Any, about: Mapping[str, Any]) -> None:
    if state is None:
        raise UserError("not one epoch was trained", where="--weights", remedy="raise the budget")
    tensors = {name: tensor.detach().cpu().numpy() for name, tensor in state.network.state_dict().items()}
    write_network(path, SavedNetwork(state.network.architecture, tensors, layout, about))


def _plain(value: Any) -> Any:
    """Return a cell of a table as a JSON value; missing values become null."""
    import pandas as pd

    value = value.item() if hasattr(value, "item") else value
    return None if pd.isna(value) else value
