"""Pairs, the best pair found by trying, learned policies and a user's own, on the units of a scenario."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from small_hetero import SELECTION, first, frozen, managed_scenario, part, prepared

from schedlab.config.contract import PolicySpec, Unit
from schedlab.config.errors import UserError
from schedlab.config.files import file_hash
from schedlab.config.schema import validate
from schedlab.platforms.settings import REFERENCE as PLATFORM_REFERENCE
from schedlab.stages import evaluate as evaluate_stage
from schedlab.stages import learn as learn_stage
from schedlab.stages.policies import make_rule
from schedlab.studies.hetero import prepare
from schedlab.studies.hetero.env.settings import ALL_PAIRS, REFERENCE
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.rules import PAIRS, PairRule
from schedlab.studies.hetero.scenario import HeteroScenario
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.episode import learning_workload
from schedlab.studies.hetero.simulator.resources import ALL_JOB_POLICIES
from schedlab.studies.hetero.study import STUDY
from schedlab.workloads.batsim_file import batsim_text
from schedlab.workloads.to_batsim import REFERENCE as WORKLOAD_REFERENCE
from small_conf import SHIPPED

THREE = {"train": 2, "validation": 1, "test": 1}
BY_HAND = {
    "high_gflops": 6.363636,
    "high_mem_bw": 5.25,
    "low_power": 7.0,
}  # s, worked out by hand


def rule(problem: HeteroProblem, target: str, seed: int = 0, **params):
    return make_rule(STUDY, PolicySpec(target, "rule", target, params), problem, seed)


def learning(tmp_path: Path) -> tuple[HeteroScenario, HeteroProblem]:
    """The shipped scenario `learning`, its workload file by its whole path."""
    shipped = part("scenario/hetero/learning.yaml")
    workload = part("workload/learning.yaml")
    workload["file"] = str(SHIPPED.parent / workload["file"])
    values = {key: shipped[key] for key in ("name", "replicates", "decisions", "rules")}
    scenario = validate(
        HeteroScenario, {**values, "seed": 1, "platform": part("platform/learning.yaml"), "workload": workload}
    )
    return scenario, prepared(scenario, tmp_path)


def evaluate_part(scenario: HeteroScenario, policies: list[dict]) -> dict:
    problem = {"name": scenario.name, "mode": scenario.mode, "seed": scenario.seed, **prepare.problem_values(scenario)}
    return {"study": "hetero", "scenario": scenario.name, "seed": 1, "problem": problem, "policies": policies}


def inputs(folder: Path) -> dict[str, Path]:
    return {
        "platform": folder / "platform.xml",
        "resources": folder / "resources.json",
        "workloads": folder / "workloads.zip",
    }


def entry(name: str, kind: str = "rule", target: str = "", **params) -> dict:
    return {"name": name, "kind": kind, "target": target or name, "params": params, "seeds": [0]}


def test_the_shipped_workload_is_the_thesis_and_its_actions_too(tmp_path):
    scenario, problem = learning(tmp_path)
    assert Path(scenario.workload.file).read_text() == batsim_text(learning_workload(4.2))
    assert scenario.decisions.selection == SELECTION
    assert [unit.kind for split in ("train", "test") for unit in problem.units(split)] == ["published, overlapping"] * 2


def test_learning_case_through_the_stages_learn_and_evaluate(tmp_path):
    """Makespans and energy worked by hand, a learned policy's among them; the same bytes when scored again."""
    scenario, _ = learning(tmp_path)
    values = evaluate_part(scenario, [])
    spec = entry("reinforce", "learned", learning_rate=0.02) | {
        "train_on": [{"scenarios": [scenario.name], "steps": 400, "params": {}}]
    }
    values |= {"policy": spec, "problems": {scenario.name: values["problem"]}}
    made = [tmp_path / f"reinforce{ending}" for ending in (".zip", ".parquet", ".yaml", ".json")]
    learn_stage.learn(frozen(values, tmp_path / "learn.yaml"), {scenario.name: inputs(tmp_path)}, None, *made, seed=0)
    policies = [entry(pair) for pair in SELECTION] + [entry("reinforce", "learned")]
    policies.append(entry("best", target="best_fixed_pair", metric="makespan"))
    evaluated = frozen(evaluate_part(scenario, policies), tmp_path / "evaluate.yaml")
    hashes = []
    for folder in (tmp_path / "once", tmp_path / "again"):
        folder.mkdir()
        checkpoints = {("reinforce", 0): made[0]}
        evaluate_stage.evaluate(
            evaluated, inputs(tmp_path), checkpoints, folder / "s.parquet", folder / "details", folder / "p.json"
        )
        hashes.append([file_hash(file) for file in (folder / "s.parquet", *sorted((folder / "details").iterdir()))])
    assert hashes[0] == hashes[1]
    scores = pd.read_parquet(folder / "s.parquet")
    found = scores[scores["split"] == "test"].pivot_table(index="policy", columns="metric", values="value")
    for pair in SELECTION:
        assert found.loc[pair, "makespan"] == pytest.approx(BY_HAND[pair.partition("-")[2]], abs=1e-5)
    for best in ("best", "reinforce"):
        assert found.loc[best, "makespan"] == pytest.approx(5.25, abs=1e-5)
        assert found.loc[best, "energy"] == pytest.approx(563.182, abs=1e-3)
    decisions = pd.read_parquet(folder / "details/decisions.parquet")
    assert set(decisions["policy"]) == {"reinforce"} and decisions["action"].str.endswith("high_mem_bw").all()
    spans = pd.read_parquet(folder / "details/overuse.parquet").query(
        "policy == 'shortest-low_power' and split == 'test'"
    )
    assert spans["duration"].tolist() == [pytest.approx(7.0, abs=1e-5)]


def test_every_pair_is_a_rule_and_random_ones_draw_by_the_seed(tmp_path):
    assert set(PAIRS) == {f"{job}-{core}" for job in ALL_JOB_POLICIES for core in ALL_CORE_POLICIES} >= set(ALL_PAIRS)
    assert set(PAIRS) <= STUDY.rules.keys() and len(ALL_PAIRS) == 36
    problem = prepared(managed_scenario(), tmp_path)
    makespans = [
        problem.rollout(rule(problem, "random-random", seed), first(problem)).scores["makespan"] for seed in (0, 0, 1)
    ]
    assert makespans[0] == makespans[1] != makespans[2]


def test_a_pair_is_scored_as_the_same_pair_in_the_environment(tmp_path):
    problem = prepared(managed_scenario(decisions={"selection": ["first-low_power", "smallest-high_mem_bw"]}), tmp_path)
    env = problem.env(first(problem), 0)
    env.reset(seed=3)
    over, rewards = False, []
    while not over:
        _, reward, over, _, info = env.step(1)
        rewards.append(reward)
    outcome = problem.rollout(PairRule("smallest-high_mem_bw"), first(problem))
    assert outcome.scores["energy"] == pytest.approx(info["scores"]["consumed_joules"], rel=1e-9)
    assert outcome.details["jobs"]["finish"].max() == pytest.approx(info["time"], abs=1e-5)
    assert len(rewards) > 10


def test_the_best_fixed_pair_is_that_of_the_workloads_it_is_chosen_on(tmp_path):
    selection = ["first-random", "smallest-high_mem_bw", "shortest-high_gflops"]
    problem = prepared(managed_scenario(jobs=40, replicates=THREE, decisions={"selection": selection}), tmp_path)

    def means(split: str, metric: str) -> dict[str, float]:
        return {
            pair: np.mean([problem.rollout(PairRule(pair), unit).scores[metric] for unit in problem.units(split)])
            for pair in selection
        }

    for split in ("train", "validation"):
        found = means(split, "mean_bounded_slowdown")
        assert rule(problem, "best_fixed_pair", split=split).pair == min(found, key=found.get)
    found = means("train", "utilisation")
    assert rule(problem, "best_fixed_pair", split="train", metric="utilisation").pair == max(found, key=found.get)


@pytest.mark.parametrize(("episodes", "runs"), [(2, 2), (3, 3), (5, 3), (100, 6), (None, 6)])
def test_the_search_keeps_to_its_budget(tmp_path, episodes, runs):
    selection = ["first-low_power", "smallest-high_mem_bw", "shortest-high_gflops"]
    problem = prepared(managed_scenario(replicates=THREE, decisions={"selection": selection}), tmp_path)
    played, rollout = [], problem.rollout

    def counted(policy, unit):
        played.append((policy.pair, unit.id))
        return rollout(policy, unit)

    problem.rollout = counted
    chosen = rule(problem, "best_fixed_pair", split="train", episodes=episodes)
    assert len(played) == len(set(played)) == chosen.budget.episodes == runs
    jobs = {unit.id: len(problem.jobs(unit).workload.jobs) for unit in problem.units("train")}
    assert chosen.budget.decisions == sum(jobs[unit] for _, unit in played)
    assert chosen.pair in {pair for pair, _ in played} and {unit for _, unit in played} <= {"train-00", "train-01"}


def test_a_search_without_workloads_is_refused(tmp_path):
    problem = prepared(managed_scenario(), tmp_path)
    with pytest.raises(UserError, match=r"best_fixed_pair.*replicates\.validation"):
        rule(problem, "best_fixed_pair")


def test_observations_of_all_units_are_scaled_by_the_training_workloads(tmp_path):
    problem = prepared(managed_scenario(replicates=THREE), tmp_path)
    limits = [problem.jobs(unit).limits for split in ("train", "validation", "test") for unit in problem.units(split)]
    assert all(one == limits[0] for one in limits)
    alone = prepared(managed_scenario(replicates={"test": 2}), tmp_path / "alone")
    assert alone.jobs(alone.units("test")[0]).limits != alone.jobs(alone.units("test")[1]).limits


def test_without_managed_pstates_there_is_no_environment(tmp_path):
    platform = part("platform/contended.yaml") | {"pstates": {"managed": False}}
    problem = prepared(managed_scenario(platform=platform), tmp_path)
    assert problem.env(first(problem), 0) is None


def test_a_users_own_class_decides(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Alternating:\n"
        "    def __init__(self, params, problem, seed):\n"
        "        self.every, self.asked = params['every'], 0\n\n"
        "    def reset(self, unit):\n"
        "        self.asked = 0\n\n"
        "    def act(self, observation, mask):\n"
        "        self.asked += 1\n"
        "        return int(self.asked % self.every == 0)\n"
    )
    problem = prepared(
        managed_scenario(decisions={"selection": ["first-low_power", "smallest-high_mem_bw"], "void": False}), tmp_path
    )
    outcome = problem.rollout(rule(problem, f"{tmp_path}/mine.py:Alternating", every=3), first(problem))
    taken = outcome.details["decisions"]["action"].tolist()
    assert taken[:6] == ["first-low_power", "first-low_power", "smallest-high_mem_bw"] * 2
    assert outcome.details["decisions"]["reward"].notna().all()


def episode_scores(arguments: tuple[HeteroProblem, Unit, int]) -> str:
    """Play an episode of drawn actions; its scores and rewards as text."""
    problem, unit, seed = arguments
    env, rng, over, rewards = problem.env(unit, seed), np.random.default_rng(seed), False, []
    env.reset()
    while not over:
        _, reward, over, _, info = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        rewards.append(reward)
    return json.dumps([info["scores"], rewards])


def test_episodes_side_by_side_are_those_one_after_another(tmp_path):
    problem = prepared(managed_scenario(), tmp_path)
    tasks = [(problem, first(problem), seed) for seed in range(6)]
    one_by_one = [episode_scores(task) for task in tasks]
    assert len(set(one_by_one)) == 6
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(episode_scores, tasks) == one_by_one


def test_mode_reference_names_every_defect():
    values = yaml.safe_load((SHIPPED / "scenario/hetero/_decisions.yaml").read_text())["reference"]
    assert values["decisions"] == {"legacy": REFERENCE}
    assert values["workload"] == {"batsim": WORKLOAD_REFERENCE}
    # routing None of the master's zone changes no number, and no current simulator takes it
    assert values["platform"] == {key: value for key, value in PLATFORM_REFERENCE.items() if key != "master_routing"}


def test_the_published_learner_is_named_value_by_value():
    assert part("learner/hetero/reinforce_published.yaml") == {
        "name": "reinforce",
        "episodes_per_update": 1,
        "standardise": "episode",
        "acting": "sample",
    }


def test_reference_mode_runs_and_differs(tmp_path):
    reference = yaml.safe_load((SHIPPED / "scenario/hetero/_decisions.yaml").read_text())["reference"]
    platform = part("platform/contended.yaml") | reference["platform"]
    workload = part("workload/lublin.yaml")
    workload["lublin"] |= {"processors": 24, "jobs": 40, "load": 3.0}
    workload["batsim"] |= reference["workload"]["batsim"]
    both = {}
    for mode, changes in (("default", {}), ("reference", {"platform": platform, "decisions": reference["decisions"]})):
        problem = prepared(managed_scenario(workload=workload, mode=mode, **changes), tmp_path / mode)
        for name in ("smallest-high_cores", "easy"):
            both[mode, name] = problem.rollout(rule(problem, name), first(problem)).scores
    for name in ("smallest-high_cores", "easy"):
        assert both["default", name]["makespan"] != both["reference", name]["makespan"]
        assert both["reference", name]["unsuccessful"] == 0
