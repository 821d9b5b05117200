"""The ramp study through the workflow: rules and a learned policy scored, a load added with YAML alone, drawn."""

from __future__ import annotations

import re
import shutil

import pandas as pd
import pytest
import yaml
from checkouts import Checkout, copy_repository, own_source

import shipped_conf

pytestmark = pytest.mark.slow

SELDOM = """defaults:
  - _load
  - _self_

name: seldom
scales: [smoke]
jobs: {interarrival: {value: 3000.0}}
"""
FIGURES = {
    "interarrival": "[uniform, seldom]",
    "block_causes": "[uniform, seldom]",
    "characteristics": "[uniform]",
    "graph_table": "[uniform]",
}
SMOKE = ("all", "--config", "scale=smoke")
END = {"summarise ramp", "draw_ramp", "index_figures"}
LEARNED = {"learn afterstate-uniform/0", "evaluate uniform/rules", "evaluate uniform/learned"}
# the file below the checkout, old text, new text, the jobs that run again
EDITS = {
    "scenario": ("conf/scenario/ramp/seldom.yaml", "3000.0", "6000.0", {"evaluate seldom/rules", *END}),
    "graph": (
        "conf/graph/shipped.yaml",
        "source: files",
        "source: files\nmax_files: 4",
        {"trace_graphs", "evaluate seldom/rules", *LEARNED, *END},
    ),
    "graph: of no scenario": ("conf/graph/generated.yaml", "source: generated", "source: generated\nseed: 1", set()),
}


@pytest.fixture
def checkout(repository, tmp_path) -> Checkout:
    """The shipped ramp study alone, at scale smoke, with one learned policy and a scenario of its own."""
    made = copy_repository(repository, tmp_path / "ramp")
    conf, shipped = made.folder / "conf", repository / "conf"
    for name in ("config.yaml", "study/ramp.yaml", "figure/theme.yaml"):
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped / name, conf / name)
    for group in ("scale", "scenario/ramp", "policy/ramp", "learner/ramp", "graph", "gpu"):
        shutil.copytree(shipped / group, conf / group)
    for name, scenarios in FIGURES.items():
        at = ["smoke", "small", "full", "paper"]
        shipped_conf.write("figure/ramp", name, conf, scenarios=yaml.safe_load(scenarios), scales=at)
    uniform = conf / "scenario/ramp/uniform.yaml"
    uniform.write_text(
        re.sub(r"^policies: \[[^]]*\]", "policies: [afterstate-uniform]", uniform.read_text(), flags=re.M)
    )
    (conf / "scenario/ramp/seldom.yaml").write_text(SELDOM)
    shutil.rmtree(made.folder / "src")
    (made.folder / "src").symlink_to(repository / "src")  # where the compiled kernels are kept
    return made


def test_a_smoke_run_scores_rules_and_a_learned_policy_and_knows_what_runs_again(checkout):
    checkout.run(*SMOKE)
    made = checkout.hashes()
    results = checkout.folder / "results/smoke/ramp"
    scores = pd.read_parquet(results / "scores.parquet")
    policies = scores.groupby("scenario")["policy"].unique().map(set).to_dict()
    assert policies["uniform"] >= {"afterstate-uniform", "sequential", "fixed-4", "para_max", "para_min", "random"}
    assert policies["seldom"] == {"sequential", "fixed-4", "para_max", "para_min"}
    rates = scores[
        (scores["metric"] == "blocking_rate") & (scores["split"] == "test") & (scores["policy"] == "para_max")
    ]
    rates = rates.set_index("scenario")["value"].groupby("scenario").mean()
    assert rates["seldom"] <= rates["uniform"]
    jobs = pd.read_parquet(results / "details/jobs.parquet")
    assert (jobs["cause"] == "").any() and (jobs.loc[jobs["cause"] == "op_placement", "jct"].isna()).all()
    assert {f"plots/smoke/ramp/{name}.png" for name in FIGURES} <= set(made)
    assert "could not be drawn" not in (checkout.folder / "plots/smoke/INDEX.md").read_text()
    for group, (name, old, new, expected) in EDITS.items():
        checkout.edit(name, old, new)
        assert checkout.jobs(*SMOKE) == expected, group
        checkout.edit(name, new, old)
    own_source(checkout)
    assert checkout.jobs(*SMOKE) == set()
    checkout.edit("src/schedlab/studies/ramp/simulator/cluster.py", "DUE = 1e-7", "DUE = 2e-7")
    assert checkout.jobs(*SMOKE) == {"evaluate seldom/rules", *LEARNED, *END}, "all but the graphs"


def test_graphs_that_are_not_there_are_told(checkout, monkeypatch):
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    checkout.edit("conf/scenario/ramp/_published.yaml", "scales: [full, paper]", "scales: [smoke]")
    assert "not run: ramp/published_a" in checkout.run("all", "--dry-run", "--config", "scale=smoke")
