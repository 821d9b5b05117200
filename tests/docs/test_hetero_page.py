"""The examples of docs/reference/hetero_scenarios.md work: platform, workload, scenario, a user's scheduler."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from schedlab.cli.main import main
from small_conf import SHIPPED, write_hetero_conf


@pytest.mark.slow
def test_the_examples_are_valid_and_the_own_scheduler_is_scored(repository, tmp_path, monkeypatch, capsys):
    for name in ("workflow", "profiles", "resources"):
        shutil.copytree(repository / name, tmp_path / name)
    (tmp_path / "src").symlink_to(repository / "src")
    shutil.copy(repository / "Snakefile", tmp_path)
    conf = write_hetero_conf(tmp_path)
    shutil.copy(SHIPPED / "scenario/hetero/_decisions.yaml", conf / "scenario/hetero")
    shutil.copytree(SHIPPED / "learner/hetero", conf / "learner/hetero")
    blocks = re.findall(
        r"```(?:yaml|python)\n(# (\S+)\n.*?)```",
        (repository / "docs/reference/hetero_scenarios.md").read_text(),
        flags=re.S,
    )
    assert blocks
    for text, name in blocks:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 0
    checked = capsys.readouterr().out
    assert "hetero/evening" in checked and "hetero/narrow" in checked
    target = "results/smoke/hetero/evening/evaluation/rules.parquet"
    narrow = [f"results/smoke/hetero/narrow/evaluation/{name}.parquet" for name in ("rules", "learned")]
    command = [sys.executable, "-m", "snakemake", "--cores", "2", target, *narrow, "--config", "scale=smoke"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    scores = pd.read_parquet(target)
    energy = scores[scores["metric"] == "energy"].groupby("policy")["value"].sum()
    assert set(energy.index) == {"fcfs", "easy", "fast-first", "easy-pybatsim"}
    assert energy["fast-first"] < energy["fcfs"]
    scores = pd.concat([pd.read_parquet(name) for name in narrow])
    assert set(scores["policy"]) == {
        "shortest-high_mem_bw",
        "best_fixed_pair",
        "equal",
        "easy-high_mem_bw",
        "turns",
        "mine",
    }
