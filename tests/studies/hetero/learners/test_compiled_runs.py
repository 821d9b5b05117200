"""The simulator `compiled` scores rules as the embedded simulator does."""

from __future__ import annotations

import pytest
from small_hetero import managed_scenario, prepared

from schedlab.config.errors import UserError
from schedlab.studies.hetero.env.observation import HeadsObserver
from schedlab.studies.hetero.learners.compiled_runs import CompiledRuns
from schedlab.studies.hetero.learners.look_ahead import look_ahead
from schedlab.studies.hetero.learners.networks import build_network
from schedlab.studies.hetero.learners.policy_gradient import AgentPolicy
from schedlab.studies.hetero.learners.tried_pairs import tried_pairs
from schedlab.studies.hetero.rules import (
    EVERY_PAIR,
    PairRule,
    ReserveRule,
    SchedulerRule,
    best_fixed_pair,
    best_reserve,
)

REPLICATES = {"validation": 2, "test": 2}
RULES = [
    PairRule("saf-low_power"),
    PairRule("first-high_mem"),
    PairRule("shortest-lowest"),
    PairRule("random-random", seed=1),
    PairRule("easy_saf-high_gflops"),
    PairRule("easy_random-high_cores"),
    SchedulerRule("easy", {"priority": "fcfs"}, "lowest"),
    SchedulerRule("easy", {"priority": "sjf"}, "high_mem_bw"),
    SchedulerRule("easy", {"priority": "smallest_area"}, "low_power"),
    SchedulerRule("easy", {"priority": "f1"}, "high_mem"),
    ReserveRule(1000.0, 0.5, "high_mem_bw"),
    ReserveRule(0.0, 0.25, "low_power"),
]


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: prepared(managed_scenario(40, replicates=REPLICATES, simulator=name), folder)
        for name in ("embedded", "compiled")
    }


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_has_the_scores_of_the_embedded_simulator(problems, rule):
    for unit in problems["embedded"].units("test"):
        plain, fast = (problems[name].rollout(rule, unit) for name in ("embedded", "compiled"))
        assert CompiledRuns(problems["compiled"]).scores(rule, unit) is not None
        assert fast.scores == pytest.approx({name: plain.scores[name] for name in fast.scores}, rel=1e-5)
        assert {"mean_bounded_slowdown", "makespan", "infeasible"} <= set(fast.scores) and not fast.details


@pytest.mark.parametrize(
    "rule",
    [
        PairRule("shortest-pack_cores"),
        SchedulerRule("conservative", {}, "high_mem_bw"),
        SchedulerRule("easy", {"priority": "wfp3"}, "lowest"),
    ],
    ids=str,
)
def test_what_the_kernel_does_not_support_is_simulated(problems, rule):
    unit = problems["embedded"].units("test")[0]
    plain, fast = (problems[name].rollout(rule, unit) for name in ("embedded", "compiled"))
    assert CompiledRuns(problems["compiled"]).scores(rule, unit) is None
    assert fast.scores == {name: plain.scores[name] for name in fast.scores} and "energy" not in fast.scores


HEADS = {"observation": "heads", "objective": "avg_job_slowdown", "time_weighted": True, "void": False}


@pytest.mark.parametrize("rule", ["tried_pairs", "reinforce"])
def test_a_policy_that_decides_has_the_scores_of_the_embedded_simulator(tmp_path, rule):
    both = [
        prepared(managed_scenario(25, replicates=REPLICATES, simulator=name, decisions=HEADS), tmp_path)
        for name in ("embedded", "compiled")
    ]
    for unit in both[0].units("test"):
        found = []
        for problem in both:
            names = problem.scenario.decisions.selection
            network = build_network(HeadsObserver.size, names, 8, False, 3)
            policy = AgentPolicy(network, "greedy", problem.scenario.decisions)
            found.append(problem.rollout(policy if rule == "reinforce" else tried_pairs({}, problem, 0), unit).scores)
        plain, fast = found
        assert fast == pytest.approx({name: plain[name] for name in fast}, rel=1e-5) and "energy" not in fast


def test_look_ahead_tries_what_is_known_and_futures_by_its_seed(problems):
    problem = problems["compiled"]
    unit = problem.units("test")[0]

    def score(params, seed=0):
        return problem.rollout(look_ahead(params, problem, seed), unit).scores["mean_bounded_slowdown"]

    alone = {"window": 1, "cores": ("low_power",)}
    assert score(alone) == pytest.approx(score(alone, seed=1))  # without futures nothing is drawn
    assert score({"futures": 2}) == score({"futures": 2}) != score({"futures": 2}, seed=1)
    with pytest.raises(UserError) as caught:
        look_ahead({}, problems["embedded"], 0)
    assert caught.value.where == "rule look_ahead"


def test_the_best_of_all_pairs_is_found_on_validation(problems):
    problem = problems["compiled"]
    units = problem.units("validation")
    best = best_fixed_pair({"among": "all"}, problem, 0)
    totals = {
        pair: sum(problem.score(PairRule(pair), unit, "mean_bounded_slowdown") for unit in units) for pair in EVERY_PAIR
    }
    assert best.pair == min(totals, key=totals.__getitem__) and len(totals) == 84


def test_the_best_reserve_is_found_on_validation(problems):
    problem, tried = problems["compiled"], {"longest": (100.0, 1000.0), "free": (0.1, 0.6), "cores": ("low_power",)}
    units = problem.units("validation")
    best = best_reserve(tried, problem, 0)
    rules = [ReserveRule(longest, free, "low_power") for longest in tried["longest"] for free in tried["free"]]
    totals = {rule: sum(problem.score(rule, unit, "mean_bounded_slowdown") for unit in units) for rule in rules}
    assert totals[best] == min(totals.values())
