"""The prepare rules: data, trunk, simulated replicates, table. Each reads its frozen part and writes its output."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab.config.files import read_table, write_json, write_table
from schedlab.config.plugins import load_object
from schedlab.config.runtime.parts import configuration, read_part
from schedlab.config.schema import validate
from schedlab.learning.devices import described, find_device
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.data.datasets import DataSettings
from schedlab.studies.adaptation.network.training import on_device
from schedlab.studies.adaptation.scenario import AdaptationScenario
from schedlab.studies.adaptation.simulator import simulate
from schedlab.studies.adaptation.simulator.simulate import simulate_replicate
from schedlab.studies.adaptation.simulator.table import DecisionTree, simulation_table

log = logging.getLogger(__name__)
ANY_NAME = "shared"  # a trunk belongs to every scenario with the same values of the trunk


def check_data(part: Path, data: Path, summary: Path) -> None:
    """Check a data set; write its split as arrays and a summary as JSON. Raises UserError for bad files."""
    settings = validate(DataSettings, read_part(part)["data"])
    write_json(summary, datasets.check(settings))
    datasets.save(datasets.load(settings), data)


def train_trunk(part: Path, data: Path, store: Path, trunk: Path) -> dict[str, Any]:
    """Train every job of a part to the end of its budget; write states to the store and curves to a table.

    Returns the facts about the device for the origin of the table.
    """
    import pandas as pd

    values = _values(part)
    scenario = validate(AdaptationScenario, {"name": ANY_NAME, "adapt_at": 0.0, **values})
    scenario, device = _placed(scenario)
    dataset = datasets.read(data)
    output = str(trunk)
    rows = [simulate.train_trunk(scenario, job, dataset, store, log.info, output) for job in scenario.jobs]
    write_table(trunk, pd.concat(rows))
    for job in scenario.jobs:
        simulate.note_made(scenario, job, None, dataset, store, output)
    return device


def simulate_adaptation(part: Path, job: int, data: Path, store: Path, runs: Mapping[int, Path]) -> dict[str, Any]:
    """Train all sequences of some replicates of a job; write a table for each, with a row for each epoch and
    sequence.

    Returns the facts about the device for the origin of the tables.
    """
    scenario, device = _placed(validate(AdaptationScenario, _values(part)))
    dataset = datasets.read(data)
    for replicate, path in runs.items():
        write_table(path, simulate_replicate(scenario, job, replicate, dataset, store, log.info, str(path)))
    for replicate, path in runs.items():  # once all files exist, because those of a failed job are deleted
        simulate.note_made(scenario, job, replicate, dataset, store, str(path))
    return device


def tabulate(part: Path, runs: Sequence[Path], table: Path) -> None:
    """Write a scenario's table, with a row for each job, replicate and sequence, from its runs or from the published
    record.
    """
    import pandas as pd

    values = read_part(part)
    if values["source"] == "published":
        read = load_object("schedlab.studies.adaptation.compat.published_table:import_published")
        rows = read(runs[0], values["experiment"]).assign(scenario=values["scenario"])
        write_table(table, rows.drop(columns="experiment"))
        return
    epochs = pd.concat([read_table(path) for path in runs], ignore_index=True)
    tree = DecisionTree(values["actions"], values["decisions"])
    constants = {name: values[name] for name in ("model", "data", "timing")}
    write_table(table, simulation_table(epochs, tree, values["window"], values["decision_every"], **constants))


def _placed(scenario: AdaptationScenario) -> tuple[AdaptationScenario, dict[str, Any]]:
    """Return the scenario on this machine's device, and a description of the device unless the scenario sets `cpu`."""
    asked = scenario.training.device
    if asked == "cpu":
        return scenario, {}
    device = find_device(asked, "training.device")
    return on_device(scenario, device.type), {"device": described(asked, device)}


def _values(part: Path) -> dict[str, Any]:
    """Return the scenario's values in a part, without those that only identify the part."""
    values = configuration(read_part(part))
    return {key: value for key, value in values.items() if key not in ("results_version", "files", "study")}
