"""The examples of docs/reference/batch_model.md and docs/notebook/batch.md work as they are printed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from page_parts import blocks

from schedlab.cli.main import main
from schedlab.workloads.lublin import LublinSettings, lublin
from schedlab.workloads.swf import write_swf
from small_conf import write_batch_conf


@pytest.mark.slow
def test_the_examples_are_valid_and_the_own_rule_is_scored(repository, tmp_path, monkeypatch, capsys):
    for name in ("workflow", "profiles", "resources"):
        shutil.copytree(repository / name, tmp_path / name)
    (tmp_path / "src").symlink_to(repository / "src")
    shutil.copy(repository / "Snakefile", tmp_path)
    write_batch_conf(tmp_path)
    named = re.findall(
        r"```(?:yaml|python)\n(# (\S+)\n.*?)```", (repository / "docs/reference/batch_model.md").read_text(), flags=re.S
    )
    assert named
    for text, name in named:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--scale", "smoke"]) == 0
    assert "batch/patient: 2 rules" in capsys.readouterr().out
    target = "results/smoke/batch/patient/evaluation/rules.parquet"
    run_snakemake("--cores", "1", target, "--config", "scale=smoke")
    scores = pd.read_parquet(target)
    slowdown = scores[scores["metric"] == "avg_bsld"].groupby("policy")["value"].sum()
    assert set(slowdown.index) == {"sjf", "patient"}
    assert slowdown["patient"] != slowdown["sjf"]
    learning = (repository / "docs/notebook/batch.md").read_text()
    (lines,) = [text for text in blocks(learning, "text") if "snakemake" in text and "learned:" in text]
    learn, evaluate = (shlex.split(line) for line in lines.splitlines())
    assert (learn[0], evaluate[0]) == ("snakemake", "schedlab")
    run_snakemake(*learn[1:])
    assert main(["trace", "lublin", "jobs.swf.gz", "--jobs", "300", "--processors", "64"]) == 0
    capsys.readouterr()
    assert main(evaluate[1:]) == 0
    assert [entry["policy"] for entry in json.loads(capsys.readouterr().out)["policies"]] == evaluate[-2:]


def run_snakemake(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "snakemake", *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_the_program_with_the_environment_runs(repository, tmp_path):
    write_swf(tmp_path / "jobs.swf.gz", lublin(LublinSettings(jobs=3000, processors=64), seed=0))
    (program,) = [
        text
        for text in blocks((repository / "docs/reference/batch_model.md").read_text(), "python")
        if "gymnasium" in text
    ]
    told = (
        program + 'print(mask.shape, mask.any(), info["waiting"] + info["started"] > 0, terminated, len(observations))'
    )
    command = [sys.executable, "-c", told]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["(8,)", "True", "True", "False", "64"], done.stderr[-2000:]
