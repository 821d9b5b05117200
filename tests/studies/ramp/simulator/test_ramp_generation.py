"""Jobs drawn from a pool, and whole episodes of them under rules."""

import math
import re

import numpy as np
import pytest
from small_graphs import chain, graph

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.ramp.rules import RULES, Decision, rule_named
from schedlab.studies.ramp.scenario import JobSettings, RampScenario, published_scenario
from schedlab.studies.ramp.simulator.arrivals import JobPool
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode

GRAPHS = (chain(2000.0, 3000.0, name="long"), chain(1.0, 30.0, 20.0, name="short"))


def pool(**values):
    return JobPool(GRAPHS, validate(JobSettings, {"replication": 3, "steps": 2, **values}), seed=1)


def test_a_pool_has_each_graph_so_many_times_with_a_beta_of_its_own():
    jobs = pool().episode(5)
    assert jobs.members.tolist() == [0, 1, 0, 1, 0, 1]
    assert len(set(jobs.betas.tolist())) > 1
    assert (jobs.betas >= 0.1).all() and (jobs.betas <= 1).all()


def test_jobs_are_drawn_without_return_and_the_pool_is_filled_anew():
    jobs = pool().episode(5)
    drawn = [jobs.draw(index) for index in range(12)]
    assert sorted(job.id for job in drawn) == list(range(12))
    assert sorted(job.id for job in drawn[:6]) == list(range(6))
    again = {job.id % 6: job.beta for job in drawn[6:]}
    assert all(again[job.id] == job.beta for job in drawn[:6])
    assert [job.index for job in drawn] == list(range(12))


def test_an_empty_pool_ends_the_arrivals():
    jobs = pool(sampling="remove").episode(5)
    times = []
    for index in range(6):
        jobs.draw(index)
        times.append(jobs.next_arrival(index * 1000.0))
    assert times == [1000.0, 2000.0, 3000.0, 4000.0, 5000.0, math.inf]
    with pytest.raises(UserError, match=r"jobs.replication"):
        jobs.draw(6)


def test_jobs_that_go_back_are_drawn_again():
    jobs = pool(sampling="replace").episode(5)
    assert len({jobs.draw(index).id for index in range(200)}) == 6


def test_an_episode_hangs_from_its_seed_alone():
    def drawn(seed):
        jobs = pool().episode(seed)
        return [(job.id, job.beta) for job in map(jobs.draw, range(9))]

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beta": {"kind": "fixed", "value": 1.2}}, "jobs.beta"),
        ({"beta": {"kind": "uniform", "low": 0.0, "high": 1.0}}, "jobs.beta"),
        ({"interarrival": {"kind": "fixed", "value": -1.0}}, "jobs.interarrival"),
        ({"interarrival": {"kind": "fixed", "value": 0.0}}, "jobs.interarrival"),
    ],
)
def test_draws_that_cannot_be_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        pool(**values)


def test_a_pool_without_graphs_is_refused():
    with pytest.raises(UserError, match="graphs"):
        JobPool((), JobSettings(), seed=0)


def test_milliseconds_shorten_jobs_a_thousandfold():
    seconds, milliseconds = (pool(time_unit=unit).graphs[0].step_time for unit in ("s", "ms"))
    assert milliseconds == pytest.approx(seconds / 1000)


def decision(mask, sequential=100.0, limit=30.0):
    class SomeJob:
        sequential_time, time_limit = sequential, limit

    return Decision(SomeJob(), np.array(mask, dtype=np.int16), np.random.default_rng(0))


ALL = [1, 1, 1, 0, 1, 0, 1, 0, 1]  # 1, 2, 4, 6, 8


@pytest.mark.parametrize(
    ("name", "mask", "action"),
    [
        ("sequential", ALL, 1),
        ("none", [1, 0, 0], 0),
        ("smallest", ALL, 2),
        ("min", [1, 1, 0, 0, 0], 1),
        ("min", [1, 0, 0, 0, 0], 0),
        ("para_max", ALL, 8),
        ("max_parallelism", [1, 1, 1, 0, 0], 2),
        ("para_max", [1, 0, 0], 0),
        ("para_min", ALL, 4),
        ("acceptable_jct", [1, 1, 1, 0, 0], 2),
        ("para_min", [1, 0, 0], 0),
        ("fixed_6", ALL, 6),
        ("fixed_5", ALL, 4),
        ("fixed_1", [1, 0, 0], 0),
        ("sip_ml", ALL, 8),
    ],
)
def test_rules_choose_as_published(name, mask, action):
    assert rule_named(name)(decision(mask)) == action


def test_a_cap_that_is_no_action_rejects():
    from schedlab.studies.ramp.rules import capped

    assert capped(5)(decision(ALL)) == 0
    assert capped(4)(decision(ALL)) == 4


def test_random_takes_each_valid_action():
    drawn = decision(ALL)
    assert {RULES["random"](drawn) for _ in range(100)} == {1, 2, 4, 6, 8}
    assert RULES["random"](decision([1, 0])) == 0


@pytest.mark.parametrize("name", ["para_mx", "fixed_0", "fixed_two", ""])
def test_a_rule_that_is_none_is_refused(name):
    with pytest.raises(UserError, match=re.escape(f"'{name}'")):
        rule_named(name)


def small_scenario(**values):
    settings = {"name": "small", "seed": 1, "graphs": {"source": "generated"}, "episodes": {"end": 40000.0}, **values}
    return validate(RampScenario, settings)


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_ends_its_episode_and_counts_each_job_once(name):
    simulation = Simulation(small_scenario(management={"illegal_degrees": "round_down"}), GRAPHS)
    found = run_episode(simulation, RULES[name], 3)
    running, waiting = len(simulation.cluster.running), len(simulation.cluster.queue)
    assert (
        found["num_jobs_completed"] + found["num_jobs_blocked"] + running + waiting == found["num_jobs_arrived"] == 41
    )
    assert run_episode(simulation, RULES[name], 3) == found  # what is kept of durations changes nothing
    assert run_episode(Simulation(simulation.scenario, GRAPHS), RULES[name], 3) == found


def test_a_mask_of_free_blocks_rejects_what_could_not_be_placed():
    causes = {}
    for mask in ("degrees", "blocks"):
        simulation = Simulation(small_scenario(management={"illegal_degrees": "round_down", "mask": mask}), GRAPHS)
        run_episode(simulation, RULES["random"], 4)
        causes[mask] = [blocked.cause for blocked in simulation.cluster.record.blocked]
    assert "op_placement" in causes["degrees"]
    assert "op_placement" not in causes["blocks"]


def test_illegal_degrees_are_kept_or_rounded_down():
    """Some 12 shards have no block on 4 x 4 x 2 servers: kept, such a job is never placed."""
    for illegal, blocked in (("keep", True), ("round_down", False)):
        scenario = small_scenario(
            management={"illegal_degrees": illegal}, jobs={"beta": {"kind": "fixed", "value": 1.0}}
        )
        simulation = Simulation(scenario, (graph([], [0.115], name="one"),))
        run_episode(simulation, RULES["para_max"], 0)
        assert bool(simulation.cluster.record.blocked) == blocked


def test_ops_can_be_split_at_random():
    management = {"partitioner": "random", "illegal_degrees": "round_down"}
    simulation = Simulation(small_scenario(management=management), GRAPHS)
    found = run_episode(simulation, RULES["para_max"], 3)
    assert run_episode(Simulation(simulation.scenario, GRAPHS), RULES["para_max"], 3) == found
    simulation.reset(3)
    legal = {degree for degree in range(1, 17) if simulation.rules.is_legal(degree)}
    drawn = [set(simulation.plan(16).split.degrees.tolist()) for _ in range(3)]
    assert all(degrees <= legal for degrees in drawn)
    assert len(set().union(*drawn)) > 3
    assert set(simulation.plan(2).split.degrees.tolist()) == {1, 2}


def test_the_published_setting_has_its_defects_only_where_asked_for():
    assert not any(published_scenario("A", compat=False).legacy.model_dump().values())
    assert all(published_scenario("D", compat=True).legacy.model_dump().values())
    assert published_scenario("A", False, episodes={"end": 5.0}).episodes.end == 5.0
