"""The examples of the documentation work as they are printed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from schedlab.cli.main import main
from schedlab.studies.adaptation.architecture import architecture
from schedlab.studies.adaptation.commands_conf import load_scenario
from schedlab.studies.adaptation.course import adaptation_course, adaptation_start, all_runs
from schedlab.studies.adaptation.timing import Timing
from schedlab.studies.adaptation.tree import Evaluation, build_tree


def files(page: str) -> dict[str, str]:
    """Code blocks of a page that begin with the name of their file."""
    blocks = re.findall(r"```(?:yaml|python)\n(.*?)```", page, flags=re.S)
    return {match.group(1): block for block in blocks if (match := re.match(r"# (\S+\.(?:ya?ml|py))\n", block))}


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """What a run needs, with every example file of docs/scenarios.md put where its first line says."""
    for name in ("conf", "workflow", "profiles", "resources"):
        shutil.copytree(repository / name, tmp_path / name)
    for group in ("scenario", "policy"):  # composing the published system's hundred files would be most of the test's time
        for pattern in ("published*", "exact-published*", "constant-published*", "convnet?_cifar10_*", "defect_*"):
            for file in (tmp_path / "conf" / group / "adaptation").glob(pattern):
                file.unlink()
    shutil.rmtree(tmp_path / "conf/figure/adaptation")
    (tmp_path / "src").symlink_to(repository / "src")
    shutil.copy(repository / "Snakefile", tmp_path)
    for name, text in files((repository / "docs/scenarios.md").read_text()).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_every_example_is_valid_and_the_users_own_rule_is_scored(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout)
    assert main(["check", "--scale", "small"]) == 0
    report = capsys.readouterr().out
    assert "adaptation/noon" in report and "adaptation/reinforce-middle" in report
    target = "results/smoke/adaptation/once/evaluation/rules.parquet"
    command = [sys.executable, "-m", "snakemake", "--cores", "2", target, "--config", "scale=smoke"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    scores = pd.read_parquet(target)
    assert set(scores["policy"]) == {"never", "once-1"}
    regret = scores[scores["metric"] == "regret"].set_index("policy")["value"]
    assert regret["once-1"] != regret["never"]


def test_the_example_of_another_timing_costs_seconds(checkout, monkeypatch):
    """Epochs through the tree; one takes about 15 ms of CPU. Growth has a price in it."""
    monkeypatch.chdir(checkout)
    scenario = load_scenario("conf", "small", "noon")
    start, timing = architecture(scenario.model), Timing(scenario.timing, 1200, 597)
    course = adaptation_course(scenario, start, timing)
    position = adaptation_start(scenario, start, timing)
    tree = build_tree(all_runs(course, position), (), Evaluation(2), ())
    assert tree.size * scenario.replicates < 800
    base, grown = (timing.epoch_seconds(network).total for network in (start, start.deepened(0)))
    assert grown > 1.5 * base


def test_the_readme_scenario_is_valid(repository, tmp_path, monkeypatch, capsys):
    block = re.search(r"conf/scenario/adaptation/noon\.yaml`:\n\n```yaml\n(.*?)```", (repository / "README.md").read_text(), flags=re.S)
    shutil.copytree(repository / "conf", tmp_path / "conf")
    (tmp_path / "conf/scenario/adaptation/noon.yaml").write_text(block.group(1))
    assert yaml.safe_load(block.group(1))["name"] == "noon"
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--scale", "small"]) == 0
    assert "adaptation/noon" in capsys.readouterr().out
