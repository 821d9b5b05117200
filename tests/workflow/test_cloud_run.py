"""The cloud study through the workflow: jobs pinned and fitted, every rule scored against the best plan."""

from __future__ import annotations

import json
import re
import shutil

import pandas as pd
import pytest
from checkouts import Checkout, copy_repository

from schedlab.studies.cloud.rules.rules import RULES
from small_conf import without_questions

LEARNED = "reinforce-cifar10"
SCENARIOS = ("synthetic", "cifar10")
PROFILE = ("--profile", "profiles/test")  # the scale smoke
SUMMARY = "results/smoke/cloud/summary.parquet"
CIFAR10 = {
    "solve_oracle cifar10",
    "evaluate cifar10/rules",
    f"learn {LEARNED}/0",
    f"learn {LEARNED}/1",
    "evaluate cifar10/learned",
    "summarise cloud",
}
# the file below the checkout, old text, new text, the jobs that run again
EDITS = {
    "prices": (
        "conf/prices/realistic.yaml",
        "cost_per_gpu_hour: 2.5",
        "cost_per_gpu_hour: 2.6",
        {"solve_oracle synthetic", "evaluate synthetic/rules", *CIFAR10},
    ),
    "training_job": ("conf/training_job/cifar10.yaml", "a_c: 0.0174", "a_c: 0.0175", {"fit_performance", *CIFAR10}),
    "training_job: its length": ("conf/training_job/cifar10.yaml", "epochs: 20.0", "epochs: 21.0", CIFAR10),
    "code: the simulator": (
        "src/schedlab/studies/cloud/model/step_time.py",
        "2.0 + 1.5 *",
        "2.0 + 1.6 *",
        {"ingest_logs", "fit_performance", "solve_oracle synthetic", "evaluate synthetic/rules", *CIFAR10},
    ),
    "training_job: of no scenario": ("conf/training_job/squad.yaml", "epochs: ", "epochs: 1", set()),
}


@pytest.fixture
def checkout(repository, tmp_path) -> Checkout:
    """The shipped cloud study alone, with a job that is fitted and one that is pinned."""
    made = copy_repository(repository, tmp_path / "cloud")
    conf, shipped = made.folder / "conf", repository / "conf"
    scenarios = [f"scenario/cloud/{name}.yaml" for name in ("_base", *SCENARIOS)]
    learned = ["policy/cloud/reinforce.yaml", "learner/cloud/reinforce.yaml"]
    for name in ("config.yaml", "study/cloud.yaml", "figure/theme.yaml", *scenarios, *learned):
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped / name, conf / name)
    family = conf / "policy/cloud/reinforce.yaml"
    family.write_text(re.sub(r"(?s)for_each:.*?\n(?=\w)", "for_each: [cifar10]\n", family.read_text()))
    scenario = conf / "scenario/cloud/cifar10.yaml"
    scenario.write_text(re.sub(r"(?s)policies:.*?(?=\n\w|\Z)", f"policies: [{LEARNED}]", scenario.read_text()))
    study = conf / "study/cloud.yaml"
    study.write_text(without_questions(study.read_text()))  # which names scenarios that are not here
    for group in ("scale", "training_job", "prices"):
        shutil.copytree(shipped / group, conf / group)
    made.edit("conf/scenario/cloud/_base.yaml", "scales: [small,", "scales: [smoke, small,")
    made.edit("conf/study/cloud.yaml", "    seeds: [0]\n    episodes: 32\n", "    seeds: [0, 1]\n    episodes: 32\n")
    return made


@pytest.mark.slow
def test_a_run_with_the_profile_for_tests_scores_every_rule_and_knows_what_runs_again(checkout):
    checkout.run(*PROFILE, "cloud")
    folder = checkout.folder / "results/smoke/cloud"
    scores = pd.read_parquet(folder / "scores.parquet")
    assert set(scores["scenario"]) == set(SCENARIOS)
    planners = {"fitted_logs", "fitted_probes", "fitted_similar"}  # the rule fitted_constant, with each kind of logs
    assert set(scores["policy"]) == (set(RULES) - {"fixed", "fitted_constant"}) | planners | {LEARNED}
    regret = scores[scores["metric"] == "regret"]
    assert regret["value"].min() >= -1e-9
    assert regret[regret["policy"] == "oracle_dynamic"]["value"].max() < 1e-9
    assert regret[regret["policy"] == "random"].groupby("policy_seed").size().to_dict() == {0: 16, 1: 16}
    models = [json.loads(path.read_text()) for path in sorted(folder.glob("inputs/fit_performance-*/model.json"))]
    assert sorted(model["rows"] for model in models) == [0, 44]
    ingested = [json.loads(path.read_text()) for path in folder.glob("inputs/ingest_logs-*/report.json")]
    assert [report["step_times"] for report in ingested] == [44]  # of the fitted job alone
    history = pd.read_parquet(folder / "details/allocation_history.parquet")
    assert {"episode", "step", "action_description"} <= set(history.columns)
    for group, (name, old, new, expected) in EDITS.items():
        checkout.edit(name, old, new)
        assert checkout.jobs(*PROFILE, SUMMARY) == expected, group
        checkout.edit(name, new, old)


def test_mistakes_in_a_scenario_are_told_with_file_and_key(checkout):
    checkout.edit(
        "conf/scenario/cloud/synthetic.yaml", "name: synthetic", "name: synthetic\nenvironment: {interval: 7.0}"
    )
    checkout.edit("conf/training_job/cifar10.yaml", "epochs: 20.0", "epoch: 20.0")
    output = checkout.run(*PROFILE, "--dry-run", status=1)
    assert "environment.interval" in output and "no whole number of intervals" in output
    assert "unknown key 'epoch'" in output and "did you mean 'epochs'?" in output and "Traceback" not in output
