"""The examples of docs/batch.md work as they are printed: scenarios and a rule of one's own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pandas as pd

from schedlab.cli.main import main
from small_conf import write_batch_conf


def test_the_examples_are_valid_and_the_own_rule_is_scored(repository, tmp_path, monkeypatch, capsys):
    for name in ("workflow", "profiles", "resources"):
        shutil.copytree(repository / name, tmp_path / name)
    (tmp_path / "src").symlink_to(repository / "src")
    shutil.copy(repository / "Snakefile", tmp_path)
    write_batch_conf(tmp_path)
    blocks = re.findall(r"```(?:yaml|python)\n(# (\S+)\n.*?)```", (repository / "docs/batch.md").read_text(), flags=re.S)
    assert len(blocks) == 4
    for text, name in blocks:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--scale", "smoke"]) == 0
    assert "batch/patient: 2 rules" in capsys.readouterr().out
    target = "results/smoke/batch/patient/evaluation/rules.parquet"
    command = [sys.executable, "-m", "snakemake", "--cores", "1", target, "--config", "scale=smoke"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    scores = pd.read_parquet(target)
    slowdown = scores[scores["metric"] == "avg_bsld"].groupby("policy")["value"].sum()
    assert set(slowdown.index) == {"sjf", "patient"}
    assert slowdown["patient"] != slowdown["sjf"]
