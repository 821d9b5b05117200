"""The console of a run in a terminal: a last line that shows how far the run is, which other messages replace."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from checkouts import Checkout

pytestmark = pytest.mark.slow

TARGET = "results/small/toy/near/inputs/targets.json"


def in_a_terminal(checkout: Checkout, *arguments: str) -> str:
    """Run snakemake in a terminal and return everything that it wrote there."""
    other, own = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    command = checkout.command(*arguments)
    with subprocess.Popen(command, cwd=checkout.folder, env=environment, stdout=own, stderr=own) as running:
        os.close(own)
        text = b""
        try:
            while block := os.read(other, 10_000):
                text += block
        except OSError:  # Linux ends the reading of a terminal that nobody writes to with an error
            pass
    os.close(other)
    assert running.returncode == 0, text.decode()
    return text.decode()


def test_a_terminal_shows_how_far_the_run_is(fresh_toy: Checkout) -> None:
    script = fresh_toy.folder / "tests/toy_study/draw_targets.py"
    script.write_text("import time\n\ntime.sleep(3)\n" + script.read_text())
    text = in_a_terminal(fresh_toy, TARGET)
    assert "\r\033[K[....................] 0 of 1 jobs done, 1 running; CPU " in text
    assert "[1/1] draw_targets near" in text and text.rpartition("\033[K")[2].count("jobs done") == 0


def test_quiet_shows_no_line(fresh_toy: Checkout) -> None:
    assert "jobs done" not in in_a_terminal(fresh_toy, TARGET, "--quiet")
