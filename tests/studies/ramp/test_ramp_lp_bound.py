"""The bound on accepted jobs: against every way to accept jobs of small instances, and below what rules block."""

from itertools import product

import numpy as np
import pytest

from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.lp_bound import least_servers, make_bound, most_accepted
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.simulator.compiled import episode_arrivals
from schedlab.studies.ramp.simulator.compiled_kernel import REJECT, Arrivals, Tables, play_actions

SERVERS = 3


def tables_of(cut_off=True):
    """One graph on three servers: alone for 6 s, or on any two for 3 s."""
    masks = [0b001, 0b010, 0b100, 0b011, 0b101, 0b110]
    return Tables(
        actions=np.array([1, 2]),
        durations=np.array([[6.0, 3.0]]),
        sequential=np.array([6.0]),
        parts=np.array([[[0, -1], [1, -1]]]),
        degree=np.array([0, 1]),
        first=np.array([0, 3, 6]),
        masks=np.array(masks, dtype=np.uint64),
        servers=SERVERS,
        cut_off=cut_off,
    )


def arrivals_of(times, meets):
    return Arrivals(np.array(times, dtype=float), np.zeros(len(times), dtype=np.int64), np.array(meets))


def best_plan(tables, arrivals, stop):
    """The most jobs that any plan accepts, by trying all of them; every free server fits here, so that nothing
    fragments.
    """
    plans = (np.array(plan) for plan in product([REJECT, 0, 1], repeat=len(arrivals.times)))
    return max(play_actions(tables, arrivals, stop, plan, np.zeros(len(plan), dtype=np.uint64)) for plan in plans)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cut_off", [False, True])
def test_no_plan_accepts_more(seed, cut_off):
    random, tables = np.random.default_rng(seed), tables_of(cut_off)
    arrivals, stop = arrivals_of(np.arange(7.0), random.integers(1, 4, size=7)), 9.0
    assert best_plan(tables, arrivals, stop) <= most_accepted(tables, arrivals, stop) + 1e-9 < 7


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cut_off", [False, True])
def test_it_is_the_best_plan_where_every_job_takes_one_server(seed, cut_off):
    """Such a programme has a solution in whole jobs (intervals on alike machines), so that the bound is reached."""
    random, tables = np.random.default_rng(seed), tables_of(cut_off)
    arrivals, stop = arrivals_of(np.cumsum(random.integers(0, 3, size=8)), np.ones(8, dtype=np.int64)), 12.0
    best = best_plan(tables, arrivals, stop)
    assert most_accepted(tables, arrivals, stop) == pytest.approx(best)
    assert 3 <= best < 8


def test_an_instance_that_can_be_solved_by_hand():
    """Jobs at 0 and 1 want two of three servers for 3 s: one and a half of them fit; the third comes when all is
    free.
    """
    bound = most_accepted(tables_of(), arrivals_of([0, 1, 4], [0b10, 0b10, 0b01]), 100.0)
    assert bound == pytest.approx(2.5)
    assert most_accepted(tables_of(), arrivals_of([0, 1, 4], [0b10, 0b10, 0b01]), 9.0) == pytest.approx(
        1.5
    )  # it would run until 10
    assert most_accepted(tables_of(), arrivals_of([0], [0]), 9.0) == 0.0
    assert least_servers(tables_of()).tolist() == [[1, 2]]


@pytest.mark.parametrize("gap", [1000.0, 1700.0])
def test_no_rule_blocks_less(gap):
    """A job arrives just as the episode ends (1000) or not."""
    values = {
        "name": "bounded",
        "seed": 3,
        "graphs": {"source": "generated"},
        "jobs": {"interarrival": {"kind": "fixed", "value": gap}},
        "management": {"illegal_degrees": "round_down"},
        "episodes": {"end": 1.5e5, "test": 1},
    }
    problem = RampProblem(validate(RampScenario, values), read_graphs(find_graphs("resources/graphs/a100")))
    unit = problem.units("test")[0]
    bound = problem.rollout(make_bound({}, problem, 0), unit)
    assert set(bound.scores) == {"blocking_rate"} and not bound.details
    found = [
        problem.rollout(RULE_MAKERS["fixed"]({"degree": degree}, problem, 0), unit).scores["blocking_rate"]
        for degree in (4, 8, 16)
    ]
    assert 0 <= bound.scores["blocking_rate"] < min(found)
    arrived = problem.simulation.cluster.record.arrived
    accepted = most_accepted(
        problem.compiled[0], episode_arrivals(problem.simulation, problem.compiled[0], unit.seed), 1.5e5
    )
    undecided = 1 if gap == 1000.0 else 0
    assert bound.scores["blocking_rate"] == pytest.approx((arrived - undecided - accepted) / arrived, rel=1e-12)
