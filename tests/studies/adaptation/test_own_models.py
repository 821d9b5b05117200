"""A scenario with a user's own model of ordinary blocks, written in YAML alone."""

from __future__ import annotations

import shutil
from pathlib import Path

from schedlab.studies.adaptation.commands.conf import load_scenario

MODEL = """
name: mine
input: {channels: 1, height: 8, width: 8}
blocks:
  - {kind: conv, out: 8, kernel: 3, padding: 1, batch_norm: true}
  - {kind: max_pool, kernel: 2}
  - {kind: conv, out: 8, kernel: 3, padding: 1, batch_norm: true}
  - {kind: flatten}
  - {kind: linear, out: 16}
  - {kind: linear, out: 10}
"""
SCENARIO = "defaults: [_base, {override /model: mine}, _self_]\nname: mine\nadapt_at: 60\n"


def test_the_blocks_of_a_mode_that_is_not_used_do_not_count(repository: Path, tmp_path: Path) -> None:
    """Mode reference has one block more, the head behind its ReLU, which the timing need not cover."""
    shutil.copytree(repository / "conf", tmp_path / "conf")
    (tmp_path / "conf/model/mine.yaml").write_text(MODEL)
    (tmp_path / "conf/scenario/adaptation/mine.yaml").write_text(SCENARIO)
    found = load_scenario(str(tmp_path / "conf"), "small", "mine")
    assert (found.model.name, found.timing.name, found.mode) == ("mine", "priced", "default")
