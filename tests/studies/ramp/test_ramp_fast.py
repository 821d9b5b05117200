"""The compiled cluster against the exact one: the same jobs, decisions and blocks of servers over whole episodes."""

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.studies.ramp.afterstate import make_outlook
from schedlab.studies.ramp.cluster import RunningJob
from schedlab.studies.ramp.fast import draw_futures, episode_arrivals, fast_tables, fixed_table
from schedlab.studies.ramp.fast_kernel import REJECT, Rollouts, Situation, mount, play_actions, play_table, table_action
from schedlab.studies.ramp.graph_files import read_graphs
from schedlab.studies.ramp.graphs import find_graphs
from schedlab.studies.ramp.published import BETAS
from schedlab.studies.ramp.rollout_kernel import rollout_returns
from schedlab.studies.ramp.settings import RampScenario
from schedlab.studies.ramp.simulation import Simulation

END = 4e5


def simulation_of(**changes):
    values = {
        "name": "fast",
        "seed": 3,
        "graphs": {"source": "generated"},
        "jobs": {"beta": BETAS["A"]},
        "management": {"illegal_degrees": "round_down"},
        "episodes": {"end": END, "test": 1},
    }
    scenario = validate(RampScenario, values | changes)
    return Simulation(scenario, read_graphs(find_graphs("resources/graphs/a100")))


@pytest.fixture(scope="module")
def simulation():
    return simulation_of()


@pytest.fixture(scope="module")
def tables():
    return fast_tables(simulation_of())


@pytest.fixture(scope="module")
def outlook(tables):
    return make_outlook(tables, 1000.0)


def exact_masks(simulation, tables, seed, actions):
    """Servers of each job (0: blocked) on the exact cluster under given actions."""
    simulation.reset(seed)
    masks = []
    while simulation.waiting is not None:
        action = actions[len(masks)]
        simulation.act(int(tables.actions[action]) if action != REJECT else 0)
        outcome = simulation.cluster.outcome
        mounted = isinstance(outcome, RunningJob) and outcome.duration <= outcome.job.time_limit
        masks.append(outcome.plan.placement.mask if mounted else 0)
    return masks


@pytest.mark.parametrize("seed", range(3))
def test_whole_episodes_take_the_same_servers(simulation, tables, seed):
    arrivals = episode_arrivals(simulation, tables, seed)
    actions = generator(seed, "any action").integers(-1, len(tables.actions), size=len(arrivals.times))
    masks = np.zeros(len(actions), dtype=np.uint64)
    accepted = play_actions(tables, arrivals, END, actions, masks)
    assert masks.tolist() == exact_masks(simulation, tables, seed, actions)
    assert accepted == np.count_nonzero(masks) > 30


def test_a_fixed_table_never_splits_further(simulation, tables):
    arrivals = episode_arrivals(simulation, tables, 0)
    accepted = {degree: play_table(tables, arrivals, END, fixed_table(tables, degree)) for degree in (1, 4, 16)}
    assert accepted[1] < accepted[4]
    whole = np.where(arrivals.meets & 1, 0, REJECT)
    masks = np.zeros(len(whole), dtype=np.uint64)
    assert play_actions(tables, arrivals, END, whole, masks) == accepted[1]


def test_rollouts_know_that_a_full_cluster_only_rejects_and_that_all_actions_share_their_futures(simulation, tables, outlook):
    futures, starts = draw_futures(simulation, tables, generator(1, "futures"), 100), np.arange(0, 80, 10)
    found, rollouts = np.zeros(len(tables.actions) + 1), Rollouts(fixed_table(tables, 4), np.empty(0), futures, 12)
    every = (1 << len(tables.actions)) - 1
    full = np.full(tables.servers, 5000.0)
    rollout_returns(tables, outlook, rollouts, Situation(full, 0.0, END, 0, every), starts, found)
    assert np.isnan(found[:-1]).all()
    empty = np.zeros(tables.servers)
    rollout_returns(tables, outlook, rollouts, Situation(empty, 0.0, END, 0, every), starts, found)
    again = found.copy()
    rollout_returns(tables, outlook, rollouts, Situation(empty, 0.0, END, 0, every), starts, found)
    assert (again == found).all()
    assert (found[:-1] >= 1).all()
    assert found[-1] >= found[:-1].min() - 1
    assert (empty == 0).all()


@pytest.mark.parametrize("time", [0.0, 3000.0, END - 8000.0])
def test_rollouts_play_as_the_table_decides_and_mounts(simulation, tables, outlook, time):
    """The loop of rollouts is written out for speed; here each decision is that of table_action, each job that of mount."""
    tables = tables._replace(cut_off=True)
    draws = generator(2, "rollouts")
    futures, starts, every = draw_futures(simulation, tables, draws, 100), np.arange(0, 80, 5), (1 << len(tables.actions)) - 1
    choice = draws.integers(-1, len(tables.actions), size=(len(tables.sequential), len(tables.actions) + 1))
    ends = np.repeat(time + draws.integers(-2, 9, size=8) * 1000.0, tables.servers // 8)
    found = np.zeros(len(tables.actions) + 1)
    rollout_returns(tables, outlook, Rollouts(choice, np.empty(0), futures, 20), Situation(ends, time, END, 0, every), starts, found)
    for action in np.flatnonzero(np.isfinite(found)).tolist():
        total = 0.0
        for start in starts.tolist():
            after, clock = ends.copy(), time
            total += mount(tables, after, time, END, 0, action) if action < len(tables.actions) else 0.0
            for job in range(start, start + 20):
                clock += futures.gaps[job]
                graph = futures.graphs[job]
                chosen = table_action(tables, choice, after, clock, graph, futures.meets[job]) if clock < END else REJECT
                total += mount(tables, after, clock, END, graph, chosen) if chosen != REJECT else 0.0
        assert found[action] == pytest.approx(total / len(starts))
    assert len(set(found[np.isfinite(found)].tolist())) > 1


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"cluster": {"groups": 8, "racks": 8, "servers": 2}}, "cluster"),
        ({"cluster": {"workers": 2}}, "cluster.workers"),
        ({"cluster": {"topology": "torus"}}, "cluster.topology"),
        ({"cluster": {"speeds": [1.0, 2.0]}}, "cluster.speeds"),
        ({"management": {"placer": "random"}}, "management.placer"),
        ({"management": {"partitioner": "random"}}, "management.partitioner"),
        ({"cluster": {"memory": 1e9}, "management": {"illegal_degrees": "round_down", "most": 2}}, "cluster.memory"),
    ],
)
def test_what_the_compiled_cluster_cannot_play_is_told(changes, where):
    with pytest.raises(UserError) as error:
        fast_tables(simulation_of(**changes))
    assert error.value.where == where
