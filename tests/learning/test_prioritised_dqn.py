"""The prioritised DQN: its parts by hand, what it learns, and the same bytes however a job is cut or spread over
processes.
"""

import multiprocessing
import os
import signal

import gymnasium as gym
import numpy as np
import pytest
import torch
from toy_problems import InDict, MaskedBandit, NoMask, Several, Target, learn, mean_return

from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.learning.prioritised_dqn.learner import (
    NStep,
    PrioritisedDQNLearner,
    QNetwork,
    errors,
    share_of_random_actions,
    targets,
    vector_reader,
)
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings

QUICK = {
    "learning_rate": 3e-3,
    "net_arch": [16],
    "actors": 3,
    "train_freq": 4,
    "gradient_steps": 3,
    "batch_size": 16,
    "learning_starts": 24,
    "target_update_interval": 48,
    "exploration_steps": 300,
    "buffer_size": 200,
    "record_every": 24,
}


def settings_of(**values):
    return validate(PrioritisedDQNSettings, values)


# ------------------------------------------------------------------ parts by hand


def played(n, gamma, rewards, terminated=True, over=True):
    """What n-step returns give out for decisions 0, 1, ... whose observation is their number."""
    window, found = NStep(n, gamma), []
    for number, reward in enumerate(rewards):
        last = over and number == len(rewards) - 1
        mask = np.array([number % 2 == 0, True])
        found.append(
            window.add(np.array([number]), number, reward, np.array([number + 1]), mask, terminated and last, last)
        )
    return found


def told(row):
    return (
        row["observation/whole"].item(),
        int(row["action"]),
        float(row["reward"]),
        float(row["discount"]),
        row["following/whole"].item(),
    )


def test_n_step_returns_by_hand():
    given = played(3, 0.5, [1.0, 2.0, 4.0, 8.0, 16.0])
    assert [len(rows) for rows in given] == [0, 0, 1, 1, 3]
    found = [told(row) for rows in given for row in rows]
    assert found == [
        (0, 0, 1 + 1 + 1, 0.125, 3),
        (1, 1, 2 + 2 + 2, 0.125, 4),
        (2, 2, 4 + 4 + 4, 0.0, 5),  # the end: nothing follows
        (3, 3, 8 + 8, 0.0, 5),
        (4, 4, 16.0, 0.0, 5),
    ]
    assert given[2][0]["mask"].tolist() == [True, True]  # that of what follows


def test_an_episode_that_is_cut_off_goes_on_after_fewer_rewards():
    found = [told(row) for rows in played(3, 0.5, [1.0, 2.0], terminated=False) for row in rows]
    assert found == [(0, 0, 2.0, 0.25, 2), (1, 1, 2.0, 0.5, 2)]


def test_one_step_returns_are_given_out_at_once():
    assert [told(row) for rows in played(1, 0.9, [1.0, 2.0], over=False) for row in rows] == [
        (0, 0, 1.0, pytest.approx(0.9), 1),
        (1, 1, 2.0, pytest.approx(0.9), 2),
    ]


COLUMNS = {
    "observation/whole": np.zeros((3, 1), np.float32),
    "following/whole": np.ones((3, 1), np.float32),
    "action": np.array([0, 1, 2]),
    "reward": np.array([1.0, 2.0, 3.0], np.float32),
    "discount": np.array([0.5, 0.5, 0.0], np.float32),
    "mask": np.array([[True, True, True], [True, False, True], [True, True, True]]),
}


def tabled(now, following):
    """A network whose values are `now` for the observation 0 and `following` for 1."""
    return lambda seen: torch.where(seen["whole"] == 0, torch.tensor(now), torch.tensor(following))


def test_double_targets_by_hand():
    online = tabled([10.0, 20.0, 30.0], [1.0, 9.0, 5.0])
    target = tabled([0.0, 0.0, 0.0], [100.0, 10.0, 40.0])
    doubled = [
        1 + 0.5 * 10,
        2 + 0.5 * 40,
        3.0,
    ]  # the learning network's best: 1, where that is not valid 2; nothing follows
    assert targets(online, target, COLUMNS, double=True).tolist() == doubled
    assert targets(online, target, COLUMNS, double=False).tolist() == [51.0, 52.0, 3.0]
    found, wrong = errors(online, target, COLUMNS, double=True)
    assert found.tolist() == [10.0, 20.0, 30.0]
    assert wrong.tolist() == [4.0, -2.0, 27.0]


def network_of(**values):
    space = gym.spaces.Box(-1, 1, (2,), np.float32)
    settings = settings_of(net_arch=[5], **values)
    return QNetwork(vector_reader(settings, space), 4, settings)


def test_dueling_heads_take_the_mean_advantage_off():
    torch.manual_seed(0)
    network, seen = network_of(), {"whole": torch.randn(7, 2)}
    hidden = network.shared(seen["whole"])
    np.testing.assert_allclose(network(seen).mean(dim=1).tolist(), network.value(hidden)[:, 0].tolist(), atol=1e-6)
    differences = (network(seen) - network.advantage(hidden)).detach().numpy()
    np.testing.assert_allclose(differences, np.repeat(differences[:, :1], 4, axis=1), atol=1e-6)
    plain = network_of(dueling=False)
    assert torch.equal(plain(seen), plain.advantage(plain.shared(seen["whole"])))
    assert sum(parameter.numel() for parameter in plain.parameters()) == 2 * 5 + 5 + 5 * 4 + 4


def test_shares_of_random_actions():
    falling = settings_of(initial_epsilon=1.0, final_epsilon=0.05, exploration_steps=100, actors=2)
    assert [share_of_random_actions(falling, 1, step) for step in (0, 50, 100, 1000)] == [
        1.0,
        0.525,
        pytest.approx(0.05),
        pytest.approx(0.05),
    ]
    by_actor = settings_of(exploration="by_actor", actors=8)  # Horgan et al. 2018: 0.4^(1 + 7 i / (N - 1))
    assert [share_of_random_actions(by_actor, actor, 10**6) for actor in (0, 7)] == [0.4, pytest.approx(0.4**8)]
    assert share_of_random_actions(settings_of(exploration="by_actor", actors=1), 0, 0) == 0.4


# ------------------------------------------------------------------ learning


class Corridor(gym.Env):
    """Five places; to the right of the last lies 1, but each step to the left pays 0.05 at once. Cut off after 12
    steps.

    From the first place the optimum, 5 steps to the right, is worth 0.9^4 = 0.656; to the left for ever 0.05 / (1 -
    0.9) = 0.5.
    """

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0.0, 1.0, (5,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.place, self.steps = int(self.np_random.integers(2)), 0
        return self._see(), {}

    def step(self, action):
        self.place, self.steps = self.place + (1 if action else -1), self.steps + 1
        reward = 1.0 if self.place == 5 else 0.0 if action else 0.05
        over = self.place == 5
        self.place = min(max(self.place, 0), 4)
        return self._see(), reward, over, not over and self.steps == 12, {}

    def _see(self) -> np.ndarray:
        return np.eye(5, dtype=np.float32)[self.place]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_finds_the_optimum_of_a_small_mdp(seed, tmp_path):
    learner, problem = PrioritisedDQNLearner(), Several(Corridor, 4)
    values = {**QUICK, "gamma": 0.9, "buffer_size": 2000, "exploration_steps": 1500, "final_epsilon": 0.2, "beta": 1.0}
    checkpoint, points = learn(learner, problem, tmp_path, 3000, seed=seed, **values)
    policy = learner.load(checkpoint, problem)
    places = np.eye(5, dtype=np.float32)
    assert [policy.act(place) for place in places] == [1] * 5
    values = [float(policy.network.values({"whole": place[None]})[1]) for place in places]
    np.testing.assert_allclose(values, [0.9 ** (4 - place) for place in range(5)], atol=0.1)
    assert mean_return(policy, problem) == 1.0
    assert {metric for metric, _ in points} == {"return", "episode_length", "loss", "value", "exploration_rate"}


@pytest.mark.parametrize("keep_to_masks", [True, False])
def test_it_learns_with_masks_and_without(keep_to_masks, tmp_path):
    learner, problem = PrioritisedDQNLearner(), Several(MaskedBandit, 20)
    values = {**QUICK, "gamma": 0.0, "keep_to_masks": keep_to_masks, "buffer_size": 2000}
    checkpoint, _ = learn(learner, problem, tmp_path, 2000, **values)
    assert mean_return(learner.load(checkpoint, problem), problem) > 4.9
    forbidden = sum(env.forbidden for _, env in problem.made)
    assert (forbidden == 0) == keep_to_masks
    untrained, _ = learn(learner, problem, tmp_path / "untrained", 12, **values)
    assert mean_return(learner.load(untrained, problem), problem) < 4


# ------------------------------------------------------------------ the same bytes


class Cut(gym.Wrapper):
    """Counts the decisions of all environments of a problem and stops the job at one of them."""

    def __init__(self, env, counter, at):
        super().__init__(env)
        self.counter, self.at = counter, at

    def step(self, action):
        self.counter[0] += 1
        if self.counter[0] == self.at:
            raise KeyboardInterrupt
        return super().step(action)


PHASES = Phase(("one",), 100), Phase(("one",), 70, {"gamma": 0.5, "n_steps": 1, "learning_rate_schedule": "linear"})


def job(folder, seed=1, at=0, **values):
    """Learn in two phases; (checkpoint or None where it was stopped, points, decisions)."""
    counter = [0]
    problem = Several(lambda: Cut(MaskedBandit(), counter, at))
    more = {"validate_every": 40, "validation_units": 2, "save_every": 1, "buffer_size": 60, **values}
    return *learn(PrioritisedDQNLearner(), problem, folder, *PHASES, seed=seed, **{**QUICK, **more}), counter[0]


def test_same_seed_same_bytes_and_an_interrupted_job_goes_on(tmp_path):
    whole, again, other = job(tmp_path / "whole"), job(tmp_path / "again"), job(tmp_path / "other", seed=2)
    assert whole[0].read_bytes() == again[0].read_bytes() != other[0].read_bytes()
    assert whole[1] == again[1]
    for places in ((70,), (33, 150), (whole[2] - 5, 7)):
        folder, seen = tmp_path / f"cut-{places[0]}", {}
        for at in (*places, 0):
            checkpoint, points, decisions = job(folder, at=at)
            assert (checkpoint is None) == bool(at)
            assert all(seen.get(place, value) == value for place, value in points.items())
            seen |= points
        assert decisions < whole[2]  # it did not begin anew
        assert checkpoint.read_bytes() == whole[0].read_bytes()
        assert seen == whole[1]


def test_processes_change_no_byte(tmp_path):
    one, two, three = (job(tmp_path / str(count), processes=count) for count in (1, 2, 3))
    assert one[0].read_bytes() == two[0].read_bytes() == three[0].read_bytes()
    assert one[1] == two[1] == three[1]


def test_a_job_that_was_cut_in_one_process_goes_on_in_two(tmp_path):
    whole, _, _ = job(tmp_path / "whole")
    assert job(tmp_path / "cut", at=60)[0] is None
    assert job(tmp_path / "cut", processes=2)[0].read_bytes() == whole.read_bytes()


class Killed(Cut):
    """Kills the process that it is stepped in at the step of a number, unless that is the learner's own."""

    def step(self, action):
        self.counter[0] += 1
        if self.counter[0] == self.at and multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return super(Cut, self).step(action)


@pytest.mark.parametrize("at", [5, 33])
def test_a_killed_process_of_actors_ends_the_job_which_then_goes_on(at, tmp_path):
    whole, _, _ = job(tmp_path / "whole")
    counter = [0]
    dying = Several(lambda: Killed(MaskedBandit(), counter, at))
    values = {**QUICK, "validate_every": 40, "validation_units": 2, "save_every": 1, "buffer_size": 60, "processes": 2}
    with pytest.raises(RuntimeError, match="a process of actors ended without an answer"):
        learn(PrioritisedDQNLearner(), dying, tmp_path / "cut", *PHASES, seed=1, **values)
    assert job(tmp_path / "cut", processes=2)[0].read_bytes() == whole.read_bytes()


class Drifting(MaskedBandit):
    """An environment that does not repeat from its seed."""

    DRAWS = np.random.default_rng(0)

    def _deal(self):
        shown = super()._deal()
        return shown + self.DRAWS.random(4, np.float32) / 10


@pytest.mark.parametrize("processes", [1, 2])
def test_an_environment_that_does_not_repeat_is_named(processes, tmp_path):
    counter = [0]
    values = {**QUICK, "save_every": 1, "target_update_interval": 13}
    assert (
        learn(PrioritisedDQNLearner(), Several(lambda: Cut(Drifting(), counter, 80)), tmp_path, 200, **values)[0]
        is None
    )
    with pytest.raises(RuntimeError, match=r"scenario one, unit train-\d: the environment does not repeat"):
        learn(PrioritisedDQNLearner(), Several(Drifting), tmp_path, 200, **values, processes=processes)


# ------------------------------------------------------------------ readers, mistakes


class Both(torch.nn.Module):
    """Reads an observation in parts."""

    features_dim = 6

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 6)

    def forward(self, seen):
        return torch.tanh(self.layer(torch.cat([seen["first"], seen["rest"]], dim=1)))


def test_a_reader_of_ones_own_reads_observations_in_parts(tmp_path):
    learner, problem = PrioritisedDQNLearner(make_reader=lambda *_: Both()), Several(lambda: InDict(MaskedBandit()), 20)
    checkpoint, _ = learn(learner, problem, tmp_path, 2000, **{**QUICK, "gamma": 0.0, "buffer_size": 2000})
    assert mean_return(learner.load(checkpoint, problem), problem) > 4.5
    with pytest.raises(UserError, match="reads a vector"):
        learn(PrioritisedDQNLearner(), problem, tmp_path / "other", 24, **QUICK)


def test_a_parent_gives_the_first_parameters(tmp_path):
    learner, problem = PrioritisedDQNLearner(), Several(MaskedBandit)
    parent, _ = learn(learner, problem, tmp_path / "parent", 240, **QUICK)
    child, _ = learn(learner, problem, tmp_path / "child", 12, start=parent, **{**QUICK, "learning_starts": 1000})
    before, after = (dict(learner.load(path, problem).network.state_dict()) for path in (parent, child))
    assert all(torch.equal(before[name], after[name]) for name in before)


class Boundless(MaskedBandit):
    """Rewards that no network's number holds."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float("inf"), *rest


def test_mistakes_are_told(tmp_path):
    bandit, quick = Several(MaskedBandit), PrioritisedDQNLearner()
    with pytest.raises(UserError, match="buffer_size: 20 does not hold the 21 decisions"):
        learn(quick, bandit, tmp_path, 24, **{**QUICK, "buffer_size": 20})
    with pytest.raises(UserError, match="cannot choose 1 values of float32; expected actions numbered from 0"):
        learn(quick, Several(Target), tmp_path, 24, **QUICK)
    with pytest.raises(UserError, match="'net_arch' cannot change between phases"):
        learn(quick, bandit, tmp_path, Phase(("one",), 24, {"net_arch": [2]}), **QUICK)
    with pytest.raises(UserError, match=r"observations: .* as in scenario one"):
        learn(quick, {"one": bandit, "two": Several(Corridor)}, tmp_path, 24, **QUICK)
    with pytest.raises(UserError, match="no validation units"):
        empty = Several(MaskedBandit)
        empty.units = lambda split, units=empty.units: units(split) if split == "train" else []
        learn(quick, empty, tmp_path, 24, **QUICK, validate_every=1)
    with pytest.raises(UserError, match="not finite after"):
        learn(quick, Several(Boundless), tmp_path, 600, **QUICK)
    checkpoint, _ = learn(quick, bandit, tmp_path / "good", 24, **QUICK)
    with pytest.raises(UserError, match="learned for other observations"):
        quick.load(checkpoint, Several(Corridor))


def test_environments_without_masks_take_any_action(tmp_path):
    problem = Several(lambda: NoMask(MaskedBandit()))
    learn(PrioritisedDQNLearner(), problem, tmp_path, 240, **QUICK)
    assert sum(env.unwrapped.forbidden for _, env in problem.made) > 0
