"""What learning begins with: a model of earlier logs or of short probes leads to good allocations where it knows the
gradient's noise.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from small_problems import BERT, learn, problem

from schedlab.studies.cloud.learners.preference_learner import EpisodesNeeded
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.rules.guides import guides
from schedlab.studies.cloud.rules.oracle import objective_of_staying
from schedlab.studies.cloud.rules.rules import RULES


@pytest.mark.parametrize(("mode", "intervals"), [("historical", 0), ("baseline", 5)])
def test_a_model_of_few_measurements_leads_near_the_best_constant(mode, intervals):
    here = problem(job=BERT, environment={"interval": 0.1})  # its gradient noise hardly changes
    found = guides(here, mode)
    assert found.intervals == intervals and set(found.targets) == set(here.scenario.preferences)
    for preference, target in found.targets.items():
        staying = objective_of_staying(here.replay, weights_of(preference))
        assert here.replay.fits[target] and staying[target] < 1.05 * staying.min()


def test_the_similarity_route_begins_with_the_row_of_most_throughput_for_its_money():
    """As the published predictor has it, whatever the preference: the rows of three runs of this job, by hand."""
    here = problem(job=BERT, environment={"interval": 0.1})
    replay, fits = here.replay, np.flatnonzero(here.replay.fits)
    logged = [replay.lattice.start, int(fits[0]), int(fits[-1])]
    first_cost = {
        number: replay.seconds[0, number] * replay.price[number] / 3600 for number in logged
    }  # money only grows
    best = max(logged, key=lambda number: replay.performance.throughput[number] / (first_cost[number] + 0.1))
    gpus, cores, _ = replay.lattice.allocations[best]
    found = guides(here, "similar")
    assert (
        found.intervals == 0
        and set(found.targets) == set(here.scenario.preferences)
        and len(set(found.targets.values())) == 1
    )
    target = next(iter(found.targets.values()))
    assert replay.fits[target] and replay.lattice.allocations[target, :2].tolist() == [gpus, cores]
    wanted = int(1.2 * replay.performance.memory_used[best])
    assert abs(replay.lattice.allocations[target, 2] - wanted) <= 8


def test_the_rule_goes_to_what_its_measurements_point_at():
    here = problem(job=BERT, environment={"interval": 0.1})
    rule = RULES["fitted_constant"]({"source": "historical"}, here, 0)
    unit = here.units("test")[0]
    env = here.env(unit, 0)
    env.reset(seed=0)
    rule.reset(unit)
    while not any(env.step(env.actions.index(rule.choose(env)))[2:4]):
        pass
    assert env.here == guides(here, "historical").targets[env.preference]


def test_episodes_are_noted_once_and_where_the_regret_is_small():
    here, needed = problem(), EpisodesNeeded()  # random actions are 1 above the best plan
    best = here.oracle["time"]["dynamic"]
    for episodes, objective in ((64, best + 0.06), (128, best + 0.049), (192, best)):
        needed.note(here, "time", objective, episodes)
    assert needed.first == {"time": 128}


def test_a_warm_start_is_near_the_best_after_one_update(tmp_path):
    here = problem(job=BERT, environment={"interval": 0.1}, preferences=["time"])
    found = {}
    for mode in ("cold", "historical"):
        made = learn(tmp_path / mode, {"example": here}, 64, hidden=64, episodes_per_update=64, initialisation=mode)
        found[mode] = here.rollout(ReinforceLearner().load(made, here), here.units("test")[0]).scores["objective"]
    best = here.oracle["time"]["dynamic"]
    assert found["historical"] - best < 0.1 * (found["cold"] - best)
