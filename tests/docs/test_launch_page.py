"""docs/reference/hetero_launch.md: its commands work as printed, its agents run and learn, its tables miss nothing."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from small_launch import contents, numbers

from schedlab.cli.main import main
from schedlab.studies.hetero.hdeeprm import agent as base
from schedlab.studies.hetero.hdeeprm import launch_outputs
from schedlab.studies.hetero.hdeeprm.figures import KINDS
from schedlab.studies.hetero.hdeeprm.launch_inputs import GENERATED, STAMP
from schedlab.studies.hetero.hdeeprm.run_files import FIELDS, STATISTICS

BEST = (1, 4)


@pytest.fixture
def page(repository) -> str:
    """The text of the page."""
    return (repository / "docs/reference/hetero_launch.md").read_text()


@pytest.fixture
def here(page, tmp_path, monkeypatch) -> Path:
    """A directory with the page's options, workload and agents."""
    monkeypatch.chdir(tmp_path)
    for name, text in zip(
        ("options.json", "custom.json"), re.findall(r"```json\n(.*?)```", page, flags=re.S), strict=True
    ):
        Path(name).write_text(text)
    for text, name in re.findall(r"```python\n(# (\S+)\n.*?)```", page, flags=re.S):
        Path(name).write_text(text)
    return tmp_path


@pytest.mark.slow
def test_the_commands_work_as_printed_and_the_agent_learns(here, page, capsys):
    commands = [line for block in re.findall(r"```console\n(.*?)```", page, flags=re.S) for line in block.splitlines()]
    assert commands
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "schedlab"
        assert main(arguments) == 0, command
        assert capsys.readouterr().out, command
    assert {"model.pt", "action_preferences.svg", "rewards.pdf", "gantt.png", "metrics.svg"} <= set(contents(here))
    rows = json.loads(Path("probs.json").read_text())
    assert len(rows) == 300
    assert sum(rows[299][action] for action in BEST) > 0.95


def test_the_rule_of_the_page_runs(here):
    options = json.loads(Path("options.json").read_text())
    options["pybatsim"]["agent"]["run"] = "test"
    Path("options.json").write_text(json.dumps(options))
    assert main(["hetero", "launch", "options.json", "-cw", "custom.json", "-a", "by_queue.py"]) == 0
    assert numbers("makespans.log") == pytest.approx([5.25])
    assert (here / "insights.log").read_text().count("shortest-high_mem_bw") == 1


FILES = [value for name, value in vars(launch_outputs).items() if name.isupper() and value.endswith((".log", ".json"))]
CLASSES = [name for name, value in vars(base).items() if isinstance(value, type) and issubclass(value, base.Agent)]


def test_tables_name_everything(page):
    names = [*KINDS, *FIELDS, *STATISTICS, *GENERATED, STAMP, *FILES, *CLASSES]
    assert [name for name in names if f"`{name}`" not in page] == []
