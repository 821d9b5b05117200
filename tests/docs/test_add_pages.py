"""The pages that say how something is added: the files they print, saved under the names they give, and the commands,
run as they stand.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from page_checkouts import Page, checkout_with

from schedlab.platforms.hierarchy import read_hierarchy
from schedlab.studies.adaptation.commands.conf import load_scenario
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.simulator.course import adaptation_course, adaptation_start, all_runs
from schedlab.studies.adaptation.simulator.timing import Timing
from schedlab.studies.adaptation.simulator.tree import Evaluation, build_tree

pytestmark = pytest.mark.slow


def test_add_a_study(repository: Path, tmp_path: Path) -> None:
    printed = Page(repository / "docs/guide/add_a_study.md").follow(tmp_path)
    assert "scenario ordering/rough: 3 rules, 1 policy" in printed and "3 passed" in printed
    folder = tmp_path / "ordering"
    summary = pd.read_parquet(folder / "results/smoke/ordering/summary.parquet")
    test = summary[summary["split"] == "test"].set_index("policy")["value"]
    assert test["bound"] <= test["oracle"] <= test["smith"] and "learned_order" in test
    for figure in ("scores", "schedule"):
        assert (folder / f"plots/smoke/ordering/{figure}.png").stat().st_size > 5000
    assert "Best\\: bound" not in (folder / "plots/smoke/ordering/scores.rst").read_text()
    assert "policy   ordering/second: dqn" in printed


def test_add_a_scenario(repository: Path, tmp_path: Path) -> None:
    checkout = checkout_with(repository, tmp_path, "adaptation")
    printed = Page(repository / "docs/guide/add_a_scenario.md").follow(checkout)
    assert "adaptation/noon: 7 rules" in printed
    scores = pd.read_parquet(checkout / "results/smoke/adaptation/noon/evaluation/rules.parquet")
    assert {"never", "exhaustive"} <= set(scores["policy"]) and set(scores["scenario"]) == {"noon"}


def test_the_timing_of_the_added_scenario_gives_growth_a_price_at_small_cost(
    repository: Path, tmp_path: Path, monkeypatch
) -> None:
    """Epochs through the tree; one takes about 15 ms of CPU."""
    checkout = checkout_with(repository, tmp_path, "adaptation")
    name = "conf/scenario/adaptation/noon.yaml"
    (checkout / name).write_text(Page(repository / "docs/guide/add_a_scenario.md").files[name])
    monkeypatch.chdir(checkout)
    scenario = load_scenario("conf", "small", "noon")
    start, timing = architecture(scenario.model), Timing(scenario.timing, 1200, 597)
    course = adaptation_course(scenario, start, timing)
    position = adaptation_start(scenario, start, timing)
    tree = build_tree(all_runs(course, position), (), Evaluation(2), ())
    assert tree.size * scenario.replicates < 800
    base, grown = (timing.epoch_seconds(network).total for network in (start, start.deepened(0)))
    assert grown > 1.5 * base


def test_add_a_policy(repository: Path, tmp_path: Path) -> None:
    checkout = checkout_with(repository, tmp_path, "adaptation")
    printed = Page(repository / "docs/guide/add_a_policy.md").follow(checkout)
    assert "adaptation/trial: 3 rules, 2 policies" in printed
    made = checkout / "results/smoke/adaptation/trial/evaluation"
    scores = pd.concat([pd.read_parquet(made / f"{name}.parquet") for name in ("rules", "learned")])
    assert set(scores["policy"]) == {"never", "always-0", "once-1", "reinforce-trial", "best-action"}
    regret = scores[scores["metric"] == "regret"].groupby("policy")["value"].mean()
    assert regret["once-1"] != regret["never"] and regret["best-action"] <= min(regret["never"], regret["always-0"])


def test_add_a_placer_and_a_rule_of_ramp(repository: Path, tmp_path: Path) -> None:
    checkout = checkout_with(repository, tmp_path, "ramp")
    Page(repository / "docs/reference/ramp_extensions.md").follow(checkout)
    summary = pd.read_parquet(checkout / "results/smoke/ramp/summary.parquet")
    blocking = summary[(summary["metric"] == "blocking_rate") & (summary["split"] == "test")]
    rates = blocking.set_index(["scenario", "policy"])["value"]
    assert set(rates.loc["placement_empty_racks"].index) == {"fixed-4", "fixed-8", "para_max"}
    assert rates["placement_empty_racks", "fixed-8"] < rates["placement_first_fit", "fixed-8"]
    assert (checkout / "plots/smoke/ramp/placement_causes.svg").stat().st_size > 5000
    scores = pd.read_parquet(checkout / "results/smoke/ramp/shares/evaluation/rules.parquet")
    assert set(scores["policy"]) == {"share-50", "fixed-8"}


def test_add_a_platform_or_trace(repository: Path, tmp_path: Path) -> None:
    checkout = checkout_with(repository, tmp_path, "hetero", "batch")
    printed = Page(repository / "docs/guide/add_a_platform_or_trace.md").follow(checkout)
    assert "hetero/ours: 3 rules" in printed and "batch/ours: 21 rules" in printed
    hetero, batch = (
        pd.read_parquet(checkout / f"results/smoke/{study}/ours/evaluation/rules.parquet")
        for study in ("hetero", "batch")
    )
    assert set(hetero["policy"]) == {"fcfs", "easy", "conservative"}
    assert len(set(hetero[hetero["split"] == "test"]["unit"])) == 3 and {"f1", "sjf"} <= set(batch["policy"])
    assert read_hierarchy(checkout / "resources.json").totals()["cores"] == 72  # 4 nodes of 8, 2 nodes of 20
