"""Fixtures of the tests of the adaptation study."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_figures import study_tables

from schedlab.cli.main import main
from schedlab.config import experiment
from schedlab.config.contract import StudyTables
from schedlab.config.runtime import freeze
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.stages.learn import learn
from schedlab.stages.studies import find_study
from schedlab.studies.adaptation import prepare
from small_conf import write_conf


@pytest.fixture
def themed() -> Iterator[None]:
    """The default theme while a test draws."""
    with theme.applied(ThemeSettings()):
        yield


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> StudyTables:
    """All that figures are drawn from."""
    return study_tables(tmp_path_factory.mktemp("figures"))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the table of `tiny`, made by the prepare rules' functions, and two policies learned on it."""
    folder = tmp_path_factory.mktemp("workplace")
    loaded = experiment.load(write_conf(folder), "small", find_study)
    freeze.write_parts(loaded, folder)
    place = {
        part: folder / loaded.part_folder("adaptation", "tiny", part)
        for part in loaded.scenario("adaptation", "tiny")["parts"]
    }
    config = {part: folder / loaded.part_file("adaptation", "tiny", part) for part in place}
    data = place["check_data"] / "data.npz"
    prepare.check_data(config["check_data"], data, place["check_data"] / "summary.json")
    runs = [folder / f"run-{replicate}.parquet" for replicate in (0, 1)]
    prepare.simulate_adaptation(config["simulate_adaptation"], 0, data, folder / "store", dict(enumerate(runs)))
    table = place["tabulate"] / "table.parquet"
    prepare.tabulate(config["tabulate"], runs, table)
    for policy in ("exact-tiny", "constant-tiny"):
        own = folder / "results/small/adaptation/policies" / policy
        made = {"checkpoint": own / "seed-0" / "policy.zip", "curve": own / "seed-0" / "curve.parquet"}
        made |= {"config_copy": own / "seed-0" / "config.yaml", "provenance": own / "seed-0" / "provenance.json"}
        learn(own / "config" / "learn.yaml", {"tiny": {"table": table}}, None, seed=0, **made)
    return folder


@pytest.fixture
def here(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder as the working directory."""
    monkeypatch.chdir(workplace)
    return workplace


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture, caplog: pytest.LogCaptureFixture):
    """Runs a command in that folder; returns exit status, the JSON document (`run`: its --json), and messages."""
    assert Path.cwd() == here

    def call(*arguments: object) -> tuple[int, dict, str]:
        caplog.clear()
        status = main(["adaptation", *map(str, arguments), *(["--json"] if arguments[0] == "run" else [])])
        told = capsys.readouterr()
        return status, json.loads(told.out) if told.out else {}, told.err + caplog.text

    return call
