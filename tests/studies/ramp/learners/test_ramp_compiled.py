"""The compiled cluster against the exact one: the same jobs, decisions and blocks of servers over whole episodes.

In the published setting with its defects, too, whose scores the documentation reports.
"""

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.learners.afterstate.kernel import Network, summary_size
from schedlab.studies.ramp.learners.afterstate.measures import linear_actions, measures
from schedlab.studies.ramp.learners.afterstate.policy import AfterstatePolicy, Candidate, play
from schedlab.studies.ramp.learners.afterstate.rollout_kernel import block_returns, play_block_rollouts, rollout_returns
from schedlab.studies.ramp.learners.afterstate.values import draw_starts, make_outlook
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.scenario import BETAS, RampScenario, published_scenario
from schedlab.studies.ramp.simulator.cluster import RunningJob
from schedlab.studies.ramp.simulator.compiled import compiled_tables, draw_futures, episode_arrivals, fixed_table
from schedlab.studies.ramp.simulator.compiled_kernel import (
    REJECT,
    Rollouts,
    Situation,
    counts,
    occupy,
    play_actions,
    play_table,
    servers_for,
    servers_on,
    table_action,
    taken_at,
)
from schedlab.studies.ramp.simulator.simulation import Simulation

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
    return compiled_tables(simulation_of())


@pytest.fixture(scope="module")
def outlook(tables):
    return make_outlook(tables, 1000.0)


def exact_jobs(simulation, tables, seed, actions):
    """The running job of each decision (None: blocked) on the exact cluster under given actions."""
    simulation.reset(seed)
    found = []
    while simulation.waiting is not None:
        action = actions[len(found)]
        simulation.act(int(tables.actions[action]) if action != REJECT else 0)
        outcome = simulation.cluster.outcome
        found.append(outcome if isinstance(outcome, RunningJob) else None)
    return found


def both_masks(simulation, tables, seed):
    """Servers of each job (0: blocked) under drawn actions, compiled and exact; accepted jobs; exact durations over
    those of the table.
    """
    arrivals, end = episode_arrivals(simulation, tables, seed), simulation.scenario.episodes.end
    actions = generator(seed, "any action").integers(-1, len(tables.actions), size=len(arrivals.times))
    masks = np.zeros(len(actions), dtype=np.uint64)
    accepted = play_actions(tables, arrivals, end, actions, masks)
    jobs = exact_jobs(simulation, tables, seed, actions)
    ratios = [
        job.duration / tables.durations[graph, action]
        for job, graph, action in zip(jobs, arrivals.graphs, actions, strict=True)
        if job is not None
    ]
    return (
        masks.tolist(),
        [job.plan.placement.mask if job is not None else 0 for job in jobs],
        accepted,
        np.array(ratios),
    )


@pytest.mark.parametrize("seed", range(3))
def test_whole_episodes_take_the_same_servers(simulation, tables, seed):
    compiled, exact, accepted, ratios = both_masks(simulation, tables, seed)
    assert compiled == exact
    assert accepted == np.count_nonzero(exact) > 30
    assert (
        1e-4 < np.abs(ratios - 1).max() < 1e-2
    )  # the table's are those on an empty cluster; other blocks have other shapes


@pytest.mark.parametrize("seed", range(2))
def test_whole_ops_inside_hold_the_block_of_the_largest_degree_alone(seed):
    simulation = simulation_of(management={"illegal_degrees": "round_down", "whole_ops": "inside"})
    tables = compiled_tables(simulation.twin())
    compiled, exact, accepted, _ = both_masks(simulation, tables, seed)
    assert compiled == exact
    assert accepted == np.count_nonzero(exact) > 30
    record = simulation.cluster.record
    held = [(done.running.plan.split.max_degree, done.running.plan.placement.mask) for done in record.completed]
    assert all(mask in {block.mask for block in simulation.rules.blocks(degree)} for degree, mask in held)


@pytest.mark.parametrize(
    "interarrival",
    [
        {"kind": "exponential", "mean": 1000.0},
        {"kind": "gamma", "mean": 1000.0, "variation": 1.5},
        {"kind": "day", "mean": 1000.0, "rates": [1.0] * 12 + [5.0] * 12},
    ],
)
def test_episodes_of_random_gaps_are_those_of_the_exact_cluster(interarrival):
    """The same arrivals and servers; and the futures that rollouts look ahead with have the same mean gap."""
    simulation = simulation_of(jobs={"beta": BETAS["A"], "interarrival": interarrival})
    tables = compiled_tables(simulation.twin())
    compiled, exact, accepted, _ = both_masks(simulation, tables, 1)
    assert compiled == exact
    assert accepted == np.count_nonzero(exact) > 30
    gaps = np.diff(episode_arrivals(simulation, tables, 1).times)
    assert len(np.unique(gaps)) == len(gaps)
    futures = draw_futures(simulation, tables, generator(0, "futures"), 20_000)
    assert futures.gaps.mean() == pytest.approx(1000.0, rel=0.08)


@pytest.fixture(scope="module", params=["A", "D", "D inside"])
def published(request, shared_data):
    """The setting of the published experiment with its defects, three tenths of an episode."""
    inside = {"whole_ops": "inside" if request.param[1:] else "first_free"}
    scenario = published_scenario(request.param[0], compat=True, episodes={"end": 3e5, "test": 2}, management=inside)
    return RampProblem(scenario, read_graphs(shared_data / "graphs"))


def test_published_episodes_take_the_same_servers(published):
    """A duration differs a little from the table's: published ones are those of the first job of a model and degree,
    wherever it was.
    """
    tables, furthest = published.compiled[0], []
    for seed in range(2):
        compiled, exact, accepted, ratios = both_masks(published.simulation, tables, seed)
        assert compiled == exact
        record = published.simulation.cluster.record
        assert accepted == len(record.completed) > 30
        assert np.count_nonzero(exact) > accepted  # some ran at the end, which blocks them here
        furthest.append(np.abs(ratios - 1).max())
    assert 1e-6 < max(furthest) < 5e-4


def drawn_policies(tables, outlook):
    """A table, linear values and a network, which nobody has learned."""
    draws, size, table = generator(4, "values"), summary_size(outlook), fixed_table(tables, 6)
    yield Candidate("table", table)
    yield Candidate("linear", table, weights=0.3 * draws.normal(size=size))
    shapes = (size + tables.servers, 8), (8,), (8, 8), (8,), (8,)
    yield Candidate(
        "network", table, network=Network(*(0.3 * draws.normal(size=shape).astype(np.float32) for shape in shapes))
    )


def test_published_scores_of_policies_are_those_of_the_exact_cluster(published):
    (tables, outlook), unit = published.compiled, published.units("test")[1]
    arrivals, end, rates = (
        episode_arrivals(published.simulation, tables, unit.seed),
        published.scenario.episodes.end,
        set(),
    )
    for kept in drawn_policies(tables, outlook):
        exact = published.rollout(AfterstatePolicy(kept, tables, outlook, 0), unit).scores["blocking_rate"]
        arrived = 1 + len(arrivals.times)  # the job that arrives at the end is never blocked
        assert exact == pytest.approx((arrived - 1 - play(kept, tables, outlook, arrivals, end)) / arrived), kept.form
        rates.add(exact)
    assert len(rates) == 3


def test_published_measures_of_linear_values_are_those_of_the_exact_cluster(published):
    """But for durations, which the table has of an empty cluster."""
    (tables, outlook), unit = published.compiled, published.units("test")[1]
    kept, end = list(drawn_policies(tables, outlook))[1], published.scenario.episodes.end
    arrivals = episode_arrivals(published.simulation, tables, unit.seed)
    demand = np.array([graph.total_memory + graph.total_dep_size for graph in published.simulation.pool.graphs])
    found = measures(tables, demand, arrivals, end, linear_actions(tables, outlook, arrivals, end, kept.weights))
    exact = published.rollout(AfterstatePolicy(kept, tables, outlook, 0), unit).scores
    assert found.pop("blocking_rate") == pytest.approx(exact["blocking_rate"], rel=1e-12)
    assert sorted(found) == ["demand_throughput", "jct", "speedup"]
    assert found == pytest.approx({name: exact[name] for name in found}, rel=5e-4)
    none = measures(tables, demand, arrivals, end, np.full(len(arrivals.times), REJECT))
    assert none == {"blocking_rate": len(arrivals.times) / (1 + len(arrivals.times)), "demand_throughput": 0.0}


def test_a_fixed_table_never_splits_further(simulation, tables):
    arrivals = episode_arrivals(simulation, tables, 0)
    accepted = {degree: play_table(tables, arrivals, END, fixed_table(tables, degree)) for degree in (1, 4, 16)}
    assert accepted[1] < accepted[4]
    whole = np.where(arrivals.meets & 1, 0, REJECT)
    masks = np.zeros(len(whole), dtype=np.uint64)
    assert play_actions(tables, arrivals, END, whole, masks) == accepted[1]


def test_rollouts_know_that_a_full_cluster_only_rejects_and_that_all_actions_share_their_futures(
    simulation, tables, outlook
):
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


def mount(tables, ends, time, graph, action):
    """Mount a job if it finds servers, and return what it counts: the plain statement of a rollout's jobs."""
    mask = servers_for(tables, graph, action, taken_at(ends, time))
    if not mask:
        return 0.0
    until = time + tables.durations[graph, action]
    occupy(ends, mask, until)
    return counts(tables, until, END)


@pytest.mark.parametrize("time", [0.0, 3000.0, END - 8000.0])
def test_rollouts_play_as_the_table_decides_and_mounts(simulation, tables, outlook, time):
    """The loop of rollouts is written out for speed; here each decision is that of table_action, each job that of
    mount.
    """
    tables = tables._replace(cut_off=True)
    draws = generator(2, "rollouts")
    futures, starts, every = (
        draw_futures(simulation, tables, draws, 100),
        np.arange(0, 80, 5),
        (1 << len(tables.actions)) - 1,
    )
    choice = draws.integers(-1, len(tables.actions), size=(len(tables.sequential), len(tables.actions) + 1))
    ends = np.repeat(time + draws.integers(-2, 9, size=8) * 1000.0, tables.servers // 8)
    found = np.zeros(len(tables.actions) + 1)
    rollout_returns(
        tables, outlook, Rollouts(choice, np.empty(0), futures, 20), Situation(ends, time, END, 0, every), starts, found
    )
    for action in np.flatnonzero(np.isfinite(found)).tolist():
        total = 0.0
        for start in starts.tolist():
            after, clock = ends.copy(), time
            total += mount(tables, after, time, 0, action) if action < len(tables.actions) else 0.0
            for job in range(start, start + 20):
                clock += futures.gaps[job]
                graph = futures.graphs[job]
                chosen = (
                    table_action(tables, choice, after, clock, graph, futures.meets[job]) if clock < END else REJECT
                )
                total += mount(tables, after, clock, graph, chosen) if chosen != REJECT else 0.0
        assert found[action] == pytest.approx(total / len(starts))
    assert len(set(found[np.isfinite(found)].tolist())) > 1


def test_any_servers_are_the_first_free_ones_of_both_clusters():
    simulation = simulation_of(management={"placer": "any_servers", "illegal_degrees": "round_down"})
    tables = compiled_tables(simulation.twin())
    arrivals = episode_arrivals(simulation, tables, 4)
    actions = generator(5, "actions").integers(0, len(tables.actions), size=len(arrivals.times))
    masks = np.zeros(len(actions), dtype=np.uint64)
    play_actions(tables, arrivals, END, actions, masks)
    jobs = exact_jobs(simulation, tables, 4, actions)
    assert [job.plan.placement.mask if job else 0 for job in jobs] == masks.tolist()
    sizes = [tables.actions[action] for action, job in zip(actions, jobs, strict=True) if job]
    held = [job.plan.placement.mask.bit_count() for job in jobs if job]
    assert all(count <= size for count, size in zip(held, sizes, strict=True)) and max(held) == 16
    blocks = {block.mask for degree in simulation.degrees for block in simulation.rules.blocks(degree)}
    assert any(job.plan.placement.mask not in blocks for job in jobs if job)
    for degree in (4, 8):
        choice = fixed_table(tables, degree)
        accepted, chosen = 0, []
        for job in range(len(arrivals.times)):
            ends = np.zeros(tables.servers)
            for mask, until in chosen:
                occupy(ends, np.uint64(mask), until)
            time, graph = arrivals.times[job], arrivals.graphs[job]
            action = table_action(tables, choice, ends, time, graph, arrivals.meets[job])
            if action != REJECT:
                until = time + tables.durations[graph, action]
                chosen.append((int(servers_for(tables, graph, action, taken_at(ends, time))), until))
                chosen = [(mask, end) for mask, end in chosen if end > time]
                accepted += 1
        assert play_table(tables, arrivals, END, choice) == accepted


def test_rollouts_of_blocks_begin_with_first_fit_and_return_at_least_as_much(simulation, tables, outlook):
    futures, starts = draw_futures(simulation, tables, generator(1, "futures"), 200), np.arange(0, 150, 10)
    rollouts = Rollouts(fixed_table(tables, 4), np.empty(0), futures, 24)
    every, draws = (1 << len(tables.actions)) - 1, generator(7, "blocks")
    shape = len(tables.actions) + 1
    better = 0
    for _ in range(10):
        ends = draws.choice([0.0, 2000.0, 5000.0], size=tables.servers)
        now = Situation(ends, 1000.0, END, 1, every)
        plain, best, blocks = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64)
        rollout_returns(tables, outlook, rollouts, now, starts, plain)
        block_returns(tables, rollouts, now, starts, best, blocks)
        assert (np.isnan(plain) == np.isnan(best)).all() and best[-1] == plain[-1]
        valid = np.flatnonzero(np.isfinite(plain[:-1]))
        assert (best[valid] >= plain[valid]).all()
        better += int((best[valid] > plain[valid]).sum())
        taken = taken_at(ends, 1000.0)
        for action in valid.tolist():
            mask = int(servers_on(tables, 1, action, blocks[action], taken))
            assert mask and not mask & int(taken)
    assert better


@pytest.mark.parametrize("whole_ops", ["first_free", "inside"])
def test_rollouts_of_blocks_play_the_same_episode_on_both_clusters(whole_ops):
    simulation = simulation_of(
        management={"illegal_degrees": "round_down", "whole_ops": whole_ops}, episodes={"end": 5e4, "test": 1}
    )
    problem = RampProblem(simulation.scenario, read_graphs(find_graphs("resources/graphs/a100")))
    tables, outlook = problem.compiled
    policy = AfterstatePolicy(
        Candidate("block_rollouts", fixed_table(tables, 4), samples=8, jobs=12), tables, outlook, 0
    )
    unit = problem.units("test")[0]
    exact = problem.rollout(policy, unit).details["jobs"]
    again = problem.rollout(policy, unit).details["jobs"]
    assert exact["action"].tolist() == again["action"].tolist() and exact["action"].gt(0).any()
    futures = draw_futures(problem.simulation, tables, generator(0, "ramp", "futures"), 1000)
    arrivals = episode_arrivals(problem.simulation, tables, unit.seed)
    rollouts = Rollouts(fixed_table(tables, 4), np.empty(0), futures, 12)
    starts = draw_starts(generator(3, "starts"), rollouts, len(arrivals.times), 8)
    accepted, played = play_block_rollouts(tables, rollouts, arrivals, 5e4, starts)
    assert 0 < accepted <= len(arrivals.times) < played


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"cluster": {"groups": 8, "racks": 8, "servers": 2}}, "cluster"),
        ({"cluster": {"workers": 2}}, "cluster.workers"),
        ({"cluster": {"topology": "torus"}}, "cluster.topology"),
        ({"cluster": {"speeds": [1.0, 2.0]}}, "cluster.speeds"),
        ({"cluster": {"memories": [80e9, 40e9]}}, "cluster.memories"),
        ({"management": {"placer": "random"}}, "management.placer"),
        ({"management": {"partitioner": "random"}}, "management.partitioner"),
        ({"cluster": {"memory": 1e9}, "management": {"illegal_degrees": "round_down", "most": 2}}, "cluster.memory"),
    ],
)
def test_what_the_compiled_cluster_cannot_play_is_told(changes, where):
    with pytest.raises(UserError) as error:
        compiled_tables(simulation_of(**changes))
    assert error.value.where == where
