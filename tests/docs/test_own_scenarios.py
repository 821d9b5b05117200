"""Scenarios that the pages about ramp and cloud show: saved and scored as printed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import yaml
from page_checkouts import Page, checkout_with
from page_parts import blocks

from schedlab.studies.ramp.graphs.files import read_graph

pytestmark = pytest.mark.slow


def scores_of(checkout: Path, study: str, scenario: str, *names: str) -> pd.DataFrame:
    folder = checkout / f"results/smoke/{study}/{scenario}/evaluation"
    return pd.concat([pd.read_parquet(folder / f"{name}.parquet") for name in names])


def test_another_load_of_ramp(repository: Path, tmp_path: Path) -> None:
    checkout = checkout_with(repository, tmp_path, "ramp")
    page = Page(repository / "docs/reference/ramp_model.md")
    page.commands = [command for command in page.commands if "interarrival_900" in command[-1]]
    page.follow(checkout)
    scores = scores_of(checkout, "ramp", "interarrival_900", "rules")
    assert set(scores["policy"]) == {"sequential", "fixed-4", "para_max", "para_min"}
    jobs = scores_of(checkout, "ramp", "interarrival_900", "rules.details/jobs")
    end = yaml.safe_load((checkout / "conf/study/ramp.yaml").read_text())["sizes"]["smoke"]["end"]
    assert jobs["job"].max() == end // 900


def test_graphs_of_listed_models_and_of_ones_own(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    checkout = checkout_with(repository, tmp_path, "ramp")
    page = repository / "docs/reference/ramp_graphs.md"
    monkeypatch.chdir(checkout)
    (program,) = [text for text in blocks(page.read_text(), "python") if "traced_ops" in text]
    exec(compile(program, str(page), "exec"), {})
    graph = read_graph("my_graphs/mixer.txt")
    assert graph.kinds == ("Input", "Linear", "Relu", "Linear", "Add", "Linear")
    assert sorted(map(tuple, graph.edges)) == [(1, 2), (1, 4), (2, 3), (3, 5), (4, 5), (5, 6)]
    told = Page(page).follow(checkout)
    assert set(scores_of(checkout, "ramp", "mixer", "rules")["policy"]) >= {"sequential", "para_max"}
    assert all(f'"{name}": {{' in told for name in ("mixer", "resnet18", "resnet50", "alexnet", "generated-0000"))


def test_a_scenario_of_cloud(repository: Path, tmp_path: Path) -> None:
    checkout = checkout_with(repository, tmp_path, "cloud")
    Page(repository / "docs/reference/cloud_model.md").follow(checkout)
    scores = scores_of(checkout, "cloud", "short", "rules", "learned")
    assert {"reinforce-short", "oracle_dynamic", "goodput_greedy"} <= set(scores["policy"])
    regret = scores[scores["metric"] == "regret"].groupby("policy")["value"].mean()
    assert abs(regret["oracle_dynamic"]) < 1e-9 < regret["random"]
