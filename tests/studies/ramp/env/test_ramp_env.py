"""The environment: checks of Gymnasium and Stable-Baselines3, observations, masks, rewards, seeds."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_for_stable_baselines

import schedlab.environments  # noqa: F401
from schedlab.config.errors import UserError
from schedlab.studies.ramp.env.env import ENVIRONMENT, RampEnv, make
from schedlab.studies.ramp.env.observation import graph_features
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.scenario import published_scenario
from schedlab.studies.ramp.simulator.jobs import REJECTED, TOO_SLOW
from schedlab.studies.ramp.simulator.simulation import Simulation

GRAPHS = read_graphs(find_graphs("resources/graphs/a100"))


def env_of(end=6e4, fixed=None, compat=False, episodes=None, **settings):
    episodes = {"end": end} | (episodes or {})
    scenario = published_scenario("A", compat=compat, management={"illegal_degrees": "round_down"}, episodes=episodes)
    return RampEnv(Simulation(scenario, GRAPHS), EnvironmentSettings(**settings), fixed_episode=fixed)


@pytest.mark.parametrize("observation", ["vector", "graph_id", "published", "durations"])
def test_it_passes_the_checks_of_gymnasium_and_stable_baselines(observation):
    settings = EnvironmentSettings(observation=observation)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(ENVIRONMENT, settings=settings).unwrapped)
        if observation == "published":
            warnings.simplefilter("ignore")  # two-dimensional boxes that are no images
        check_for_stable_baselines(make(settings=settings))


def test_the_environment_as_it_is_made_without_settings_passes_them():
    """A checker samples actions without asking for the mask; by default, invalid actions are rejections."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make_again in (lambda: gym.make(ENVIRONMENT), lambda: gym.make(f"schedlab.environments:{ENVIRONMENT}")):
            check_env(make_again().unwrapped)
            check_for_stable_baselines(make_again().unwrapped)
        env = gym.make(ENVIRONMENT)
        env.reset(seed=1)
        assert env.step(3)[4]["accepted"] is False


def episode(env, seed, choose=lambda mask, rng: int(rng.choice(np.flatnonzero(mask)))):
    rng, (observation, info) = np.random.default_rng(seed), env.reset(seed=seed)
    found, done = [], False
    while not done:
        assert env.observation_space.contains(observation)
        observation, reward, done, _, info = env.step(choose(env.action_masks(), rng))
        found.append((observation, reward, info))
    return found


def test_the_same_seed_gives_the_same_episode():
    first, again = (episode(env_of(), 4) for _ in range(2))
    assert [(reward, info) for _, reward, info in first] == [(reward, info) for _, reward, info in again]
    assert all((a[0] == b[0]).all() for a, b in zip(first, again, strict=True))


def test_a_fixed_episode_comes_again():
    env = env_of(fixed=7)
    assert [reward for _, reward, _ in episode(env, 1)] == [reward for _, reward, _ in episode(env, 1)]


def test_acceptance_counts_what_the_statistics_count():
    env = env_of()
    found = episode(env, 2, lambda mask, _: int(np.flatnonzero(mask)[-1]))
    accepted = sum(info["accepted"] for *_, info in found)
    assert sum(reward for _, reward, _ in found) == 2 * accepted - len(found)
    record = env.simulation.cluster.record
    assert accepted == len(record.completed) + len(env.simulation.cluster.running)


@pytest.mark.parametrize("compat", [False, True])
def test_a_job_that_the_end_cuts_off_is_accepted_unless_the_record_blocks_it(compat):
    """As in the recorded run c16_sim_time_end: the last decision counts -1, for its job still runs when the time is
    over.
    """
    (_, reward, info), *more = episode(env_of(end=10.0, compat=compat), 0, lambda mask, _: 4)
    assert not more
    assert (reward, info["accepted"]) == ((-1.0, False) if compat else (1.0, True))


def test_a_queue_of_no_length_leaves_nothing_to_decide():
    with pytest.raises(UserError, match=r"episodes\.queue_capacity"):
        env_of(episodes={"queue_capacity": 0})


@pytest.mark.parametrize(
    ("reward", "low", "high"),
    [("jct", -1e5, 0), ("multi_objective", -2, 0), ("demand_throughput", 0, 1e12), ("compute_throughput", 0, 1e12)],
)
def test_other_rewards_have_their_signs_and_sizes(reward, low, high):
    rewards = [reward for _, reward, _ in episode(env_of(reward=reward), 3)]
    assert all(low <= value <= high for value in rewards)
    assert len(set(rewards)) > 3
    logarithms = [value for _, value, _ in episode(env_of(reward=reward, logarithm=True), 3)]
    assert logarithms == pytest.approx([np.sign(value) * np.log10(1 + abs(value)) for value in rewards])


def test_a_rejected_job_counts_as_failed():
    reject = lambda mask, rng: 0  # noqa: E731
    assert {reward for _, reward, _ in episode(env_of(), 0, reject)} == {-1.0}
    jobs = episode(env_of(reward="jct", failure_factor=2.0, sign=1, inverse=True), 0, reject)
    whole = {1 / (2 * graph.step_time * 50) for graph in env_of().simulation.pool.graphs}
    assert {round(reward, 12) for _, reward, _ in jobs} <= {round(value, 12) for value in whole}


def test_what_a_blocked_job_counts_can_be_a_number_of_seconds():
    always = lambda mask, rng: 0  # noqa: E731
    assert {
        reward for _, reward, _ in episode(env_of(reward="jct", failure_time=700.0, failure_factor=3.0), 0, always)
    } == {-2100.0}


STATISTICS = {
    "compute_throughput": "mean_compute_throughput",
    "cluster_throughput": "mean_cluster_throughput",
    "demand_throughput": "mean_demand_total_throughput",
}


@pytest.mark.parametrize("reward", ["jct", "multi_objective", *STATISTICS])
def test_rewards_are_what_section_12_says(reward):
    """Of accepted jobs the completion time, alone or over the sequential one; of blocked ones more; else means over
    the cluster's steps.
    """
    env, rng, spans, accepted = env_of(reward=reward, failure_factor=1.5), np.random.default_rng(3), set(), 0
    env.reset(seed=3)
    wholes = [graph.step_time * 50 for graph in env.simulation.pool.graphs]
    cluster, ended = env.simulation.cluster, False
    while not ended:
        job, before = env.simulation.waiting, len(cluster.record.steps)
        _, value, ended, _, info = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        steps = cluster.record.steps[before:]
        spans.add(len(steps))
        accepted += info["accepted"]
        if reward in STATISTICS:
            assert value == pytest.approx(sum(step[STATISTICS[reward]] for step in steps) / len(steps))
        elif info["accepted"]:
            over = job.sequential_time if reward == "multi_objective" else 1.0
            assert value == pytest.approx(-cluster.outcome.duration / over)
        else:
            longer = (job.sequential_time - min(wholes)) / (max(wholes) - min(wholes))
            assert value == pytest.approx(-1.5 * (longer + 1 if reward == "multi_objective" else job.sequential_time))
    assert {1, 2, 3} <= spans
    assert 5 < accepted < len(cluster.record.steps)


@pytest.mark.parametrize(("over", "factor"), [("sequential", 1.0), ("failure", 4.0)])
def test_completion_times_can_be_told_over_the_sequential_time(over, factor):
    env, whole = env_of(reward="jct", jct_over=over, failure_factor=4.0), []

    def choose(mask, rng):
        whole.append(env.simulation.waiting.sequential_time)
        return int(rng.choice(np.flatnonzero(mask)))

    shares = [reward for _, reward, _ in episode(env, 1, choose)]
    seconds = [reward for _, reward, _ in episode(env_of(reward="jct", failure_factor=4.0), 1)]
    assert len(set(seconds)) > 3
    assert [share * time * factor for share, time in zip(shares, whole, strict=True)] == pytest.approx(seconds)


@pytest.mark.parametrize("reward", ["compute_throughput", "cluster_throughput", "demand_throughput"])
def test_throughputs_can_be_shares_of_what_the_cluster_could_do(reward):
    env = env_of(reward=reward, of_most=True)
    shares = [value for _, value, _ in episode(env, 3)]
    plain = [value for _, value, _ in episode(env_of(reward=reward), 3)]
    fastest = max(
        (graph.memory[graph.cost > 0] / graph.cost[graph.cost > 0]).max() for graph in env.simulation.pool.graphs
    )
    most = 32 * fastest + (0 if reward == "compute_throughput" else 32 * 4e11)  # a node's 1.6e12 over four groups
    assert max(shares) > 0
    assert [value * most for value in shares] == pytest.approx(plain)


def test_the_mask_of_blocks_leaves_no_failed_placement():
    env = env_of(mask="blocks")
    episode(env, 5)
    assert "op_placement" not in {blocked.cause for blocked in env.simulation.cluster.record.blocked}
    parity = env_of()
    episode(parity, 5)
    assert "op_placement" in {blocked.cause for blocked in parity.simulation.cluster.record.blocked}


@pytest.mark.parametrize(
    ("drawn", "end"), [({"partitioner": "random"}, 6e4), ({"placer": "random"}, 2e4), ({"shaper": "random"}, 2e4)]
)
def test_a_mask_draws_nothing_and_tells_what_the_choice_would_draw(drawn, end):
    """Looking twice changes no episode, and no degree that was told to have a block fails."""
    scenario = published_scenario(
        "A", compat=False, management={"illegal_degrees": "round_down"} | drawn, episodes={"end": end}
    )
    simulation, logs = Simulation(scenario, GRAPHS), []
    for looks in (1, 3):
        simulation.reset(5)
        while simulation.waiting is not None:
            masks = [simulation.mask(blocks=True) for _ in range(looks)]
            assert all((mask == masks[0]).all() for mask in masks)
            simulation.act(int(np.flatnonzero(masks[0])[-1]))
        logs.append(simulation.cluster.statistics())
        assert {blocked.cause for blocked in simulation.cluster.record.blocked} <= {TOO_SLOW, REJECTED}
    assert logs[0] == logs[1]
    assert logs[0]["num_jobs_completed"] > 0


def test_static_graphs_are_stored_once():
    env = env_of(observation="graph_id")
    observation, _ = env.reset(seed=0)
    assert len(env.graphs) == 5
    assert env.graphs[observation["graph"].item()] is env.simulation.observer.graph(env.simulation.waiting.graph)


def test_graphs_are_padded_to_the_largest_or_as_published_to_a_number_of_ops():
    most = max(2 * len(graph.ids) for graph in GRAPHS)
    for max_nodes, ops in ((None, most), (400, 400)):
        env = env_of(observation="published", max_nodes=max_nodes)
        observation, _ = env.reset(seed=0)
        assert env.observation_space.contains(observation)
        assert observation["node_features"].shape == (ops, 5)
        assert not observation["node_features"][int(observation["node_split"].item()) :].any()
    assert observation["edge_features"].shape == (400 * 399 // 2, 2)
    with pytest.raises(UserError, match="max_nodes"):
        env_of(observation="published", max_nodes=20)


def test_ranges_of_ops_and_deps_have_room_for_shards():
    """Feature 1, ops: (ops - least) over (P x most - least); feature 8, dep sizes, over largest x N (N - 1) / 2 for
    N = P x most.
    """
    one, four = (env_of(partitions=partitions) for partitions in (1, 4))
    seen = [env.reset(seed=0)[0] for env in (one, four)]
    ranges, job = one.simulation.observer.ranges, one.simulation.waiting
    for found, partitions in zip(seen, (1, 4), strict=True):
        least, most = ranges.ops[0], partitions * ranges.ops[1]
        assert found[0] == pytest.approx((job.graph.num_ops - least) / (most - least))
        lowest, highest = ranges.dep_size[0], ranges.dep_size[1] * most * (most - 1) / 2
        assert found[7] == pytest.approx((job.graph.total_dep_size - lowest) / (highest - lowest))
    assert (seen[0][8:] == seen[1][8:]).all()


def test_absolute_features_mean_the_same_in_every_pool():
    scenario = published_scenario("A", compat=False, jobs={"replication": 5})
    seen = {}
    for count in (2, 5):
        simulation = Simulation(scenario, GRAPHS[:count])
        simulation.reset(0)
        while simulation.waiting.graph.name != GRAPHS[0].name:
            simulation.act(0)
        for absolute in (False, True):
            job = simulation.waiting
            features = simulation.observer.features(job, simulation.mask(), 0, 0, absolute)
            seen[count, absolute] = features[[0, 1, 2, 6, 7]]
            expected = np.log1p(
                [job.graph.num_ops, len(job.graph.edges), job.sequential_time / 0.1, job.graph.total_memory / 1e6]
            )
            assert np.allclose(features[[0, 1, 2, 6]], expected / 5, rtol=1e-6) == absolute
    assert (seen[2, True] == seen[5, True]).all()
    assert (seen[2, False] != seen[5, False]).any()


def test_a_graph_looks_the_same_in_seconds_and_milliseconds_unless_on_an_absolute_scale():
    for absolute in (False, True):
        seconds, thousandths = (
            graph_features(training_graph(GRAPHS[0], unit), absolute=absolute).nodes for unit in (1.0, 1e-3)
        )
        assert np.allclose(seconds, thousandths) != absolute


def test_durations_tell_the_speedups_and_what_meets_the_limit():
    env = env_of(observation="durations", scale="absolute")
    env.reset(seed=3)
    for _ in range(6):
        observation, job, simulation = env._observation(), env.simulation.waiting, env.simulation
        assert env.observation_space.contains(observation)
        speedups, meets = observation[-32:-16] * 16, observation[-16:]
        plan = simulation.plan(4)
        duration = job.steps * simulation.cluster.times.lookahead(plan.split, plan.placement)[1].time
        assert speedups[3] == pytest.approx(job.sequential_time / duration, rel=1e-3)
        assert speedups[2] == meets[2] == 0  # no block of three
        assert meets[3] == (duration <= job.time_limit)
        env.step(0)


@pytest.mark.parametrize("compat", [False, True])
def test_twins_share_durations_and_nothing_else(compat):
    first = Simulation(published_scenario("A", compat=compat, episodes={"end": 6e4}), GRAPHS)
    first.reset(1)
    first.act(4)
    twin, alone = first.twin(), Simulation(first.scenario, GRAPHS)
    envs = [RampEnv(one, EnvironmentSettings(reward="jct"), fixed_episode=7) for one in (twin, alone)]
    rewards = [[reward for _, reward, _ in episode(env, 1)] for env in envs]
    assert rewards[0] == rewards[1]
    assert len(first.cluster.record.steps) == 1
    assert twin._times is first._times


@pytest.mark.parametrize("degree", [3, 15, -2])
def test_numbers_of_shards_that_are_no_action_are_told_below_the_environment_too(degree):
    simulation = env_of().simulation
    simulation.reset(0)
    for ask in (simulation.plan, simulation.act):
        with pytest.raises(UserError, match=f"job 0: {degree} "):
            ask(degree)
    assert simulation.waiting.index == 0  # nothing was decided


def test_actions_that_are_not_valid_are_told_or_reject():
    env = env_of(invalid="raise")
    env.reset(seed=0)
    with pytest.raises(UserError, match="action 3"):
        env.step(3)
    lenient = env_of()
    lenient.reset(seed=0)
    assert lenient.step(3)[4]["accepted"] is False
