"""The commands that the pages show work, in their order, in an empty folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from page_parts import blocks

from schedlab.cli.main import main

PAGES = ("reference/workloads", "reference/platforms", "reference/batch_model", "studies/batch", "reference/batsim")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_work_as_printed(repository: Path, tmp_path: Path, monkeypatch, capsys, name):
    page = (repository / f"docs/{name}.md").read_text()
    monkeypatch.chdir(tmp_path)
    commands = [line for block in blocks(page, "console") for line in block.splitlines()]
    assert commands
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "schedlab"
        assert main(arguments) == 0, command
        assert capsys.readouterr().out, command


def test_the_settings_of_the_pages_are_valid_and_can_be_made(repository):
    from schedlab.config.schema import validate
    from schedlab.platforms.generate import hierarchy_of
    from schedlab.platforms.settings import PlatformSettings
    from schedlab.workloads.prepare import make_trace
    from schedlab.workloads.settings import WorkloadSettings

    workloads, platforms = (
        [yaml.safe_load(text) for text in blocks((repository / f"docs/{name}.md").read_text(), "yaml")]
        for name in PAGES[:2]
    )
    assert [hierarchy_of(validate(PlatformSettings, values)).name for values in platforms] == ["gaia", "unlike"]
    drawn, log = (validate(WorkloadSettings, values) for values in workloads)
    assert len(make_trace(drawn)[0].jobs) == 5000
    assert log.file.startswith("traces/")


def test_the_page_shows_the_totals_of_the_shipped_platforms(repository):
    from schedlab.platforms.description import shipped_platforms
    from schedlab.platforms.generate import find_hierarchy

    page = (repository / "docs/reference/platforms.md").read_text()
    for name in shipped_platforms():
        totals = find_hierarchy(name).totals()
        counts = " | ".join(str(totals[key]) for key in ("clusters", "nodes", "processors", "cores"))
        assert f"| {name} | {counts} | {round(totals['reference_speed_gflops'], 4)} | {totals['power_w']:.7g} |" in page


def test_the_table_of_cleanings_is_that_of_the_code(repository):
    from schedlab.workloads.clean import PROFILES

    page = (repository / "docs/reference/workloads.md").read_text()
    words = {"largest": "use the larger number for both", "run": "use the run time", "ten_seconds": "set it to 10 s"}
    words |= {"submit": "sort by submit time, then job number", "job_id": "sort by job number"}
    for rule in PROFILES["default"]:
        row = re.search(rf"^\| `{rule}` \|(.*)\|$", page, flags=re.M).group(1).split("|")
        for cell, profile in zip(row[1:3], ("default", "rlscheduler"), strict=True):
            action = PROFILES[profile][rule]
            assert cell.strip() == words.get(action, action)
