"""The device speed test: what it learns does not depend on being timed, and its command records what it measured."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from schedlab.cli.main import main  # noqa: E402
from schedlab.studies.batch.commands import speed as commands_speed  # noqa: E402
from schedlab.studies.batch.commands.speed import Ddpg, SpeedSettings, _learning, _take, learn, rates  # noqa: E402

CPU = torch.device("cpu")
SHORT = ["--steps", "3", "--warm-up", "1", "--repeats", "2", "--batch-sizes", "4,8", "--threads", "1"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks so small are slower with more threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ddpg(batch_size: int = 8) -> Ddpg:
    return Ddpg(SpeedSettings(batch_size=batch_size), gymnasium.make("Pendulum-v1"), CPU, 100)


def test_every_repeat_has_a_rate_and_threads_are_as_before() -> None:
    before = torch.get_num_threads()
    measured = rates(SpeedSettings(batch_size=4, steps=3, warm_up=2, repeats=4), CPU)
    assert len(measured) == 4
    assert all(rate > 0 for rate in measured)
    assert torch.get_num_threads() == before


def test_the_same_seed_learns_the_same() -> None:
    states = []
    for _ in range(2):
        steps, learner = _learning(SpeedSettings(batch_size=4), CPU, 30)
        _take(steps, 12)
        states.append([parameter.detach().clone() for parameter in learner.actor.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*states, strict=True))


def test_an_update_follows_the_published_rule() -> None:
    learner = ddpg()
    rng = np.random.default_rng(1)
    for number in range(20):
        observation, following = rng.normal(size=(2, 3)).astype(np.float32)
        learner.remember(observation, np.float32([0.1 * number]), -1.0, following, float(number % 2))
    rows = torch.from_numpy(learner.memory[:20])
    target = rows[:, 4:5] + 0.99 * rows[:, 8:9] * learner.slow_critic(
        torch.cat([rows[:, 5:8], learner.slow_actor(rows[:, 5:8])], 1)
    )
    target = target.detach()
    error = [(learner.critic(rows[:, :4]) - target).pow(2).mean().item()]
    slow = next(learner.slow_critic.parameters()).detach().clone()
    learner.update()
    fast = next(learner.critic.parameters()).detach()
    torch.testing.assert_close(next(learner.slow_critic.parameters()), slow + 0.01 * (fast - slow))
    for _ in range(30):
        learner.update()
    error.append((learner.critic(rows[:, :4]) - target).pow(2).mean().item())
    assert error[1] < 0.5 * error[0]


def test_networks_and_constants_are_the_published_ones() -> None:
    learner = ddpg()
    for network, inputs in ((learner.actor, 3), (learner.critic, 4)):
        layers = [part for part in network if isinstance(part, torch.nn.Linear)]
        assert [part.in_features for part in layers] == [inputs, 512, 256, 64, 32]
        assert [part.out_features for part in layers] == [512, 256, 64, 32, 1]
        assert [type(part) for part in network[1:8:2]] == [torch.nn.ReLU] * 4
    assert isinstance(learner.actor[-1], torch.nn.Tanh) and isinstance(learner.critic[-1], torch.nn.Linear)
    for optimizer in (learner.actor_steps, learner.critic_steps):
        assert isinstance(optimizer, torch.optim.Adam)
        assert [(group["lr"], group["eps"]) for group in optimizer.param_groups] == [(1e-3, 1e-3)]
    assert (commands_speed.NOISE, commands_speed.EVALUATE_EVERY, commands_speed.EVALUATION_EPISODES) == (0.1, 2000, 3)
    assert SpeedSettings().batch_size == 64
    limits = inspect.signature(learn).parameters
    assert (limits["most"].default, limits["goal"].default) == (400_000, -300.0)


def test_actions_stay_in_range_and_are_noisy_only_where_asked() -> None:
    learner = ddpg()
    observation = np.float32([1, 0, 0])
    assert np.array_equal(learner.act(observation, explore=False), learner.act(observation, explore=False))
    noisy = np.array([learner.act(observation, explore=True) for _ in range(50)])
    assert noisy.std() > 0.02
    assert np.abs(noisy).max() <= 2.0


def test_learning_ends_at_the_goal_or_at_the_most_steps() -> None:
    settings = SpeedSettings(batch_size=4)
    short = learn(settings, CPU, most=6, goal=0.0)
    assert (short.solved, short.steps) == (False, 6)
    assert short.mean_return < 0
    assert learn(settings, CPU, most=6, goal=-1e9).solved


def test_the_command_prints_and_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "record.json"
    assert main(["batch", "speed", *SHORT, "--name", "one", "--out", str(out)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert json.loads(out.read_text()) == document
    assert [(row["threads"], row["batch_size"], len(row["steps_per_s"])) for row in document["measured"]] == [
        (1, 4, 2),
        (1, 8, 2),
    ]
    assert {"name", "device", "packages", "machine", "date", "seed"} <= set(document)
    assert main(["batch", "speed", *SHORT, "--out", str(out)]) == 2
    assert "record.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--threads", "1,b"], "--threads"),
        (["--threads", "0"], "--threads"),
        (["--batch-sizes", "0"], "--batch-sizes"),
        (["--warm-up", "-1"], "--warm-up"),
        (["--device", "toaster"], "--device"),
    ],
)
def test_wrong_options_are_refused(options: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "speed", *options]) == 2
    assert named in capsys.readouterr().err


def test_a_job_sweeps_the_threads_that_it_has_and_two_batch_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(
        commands_speed, "rates", lambda settings, device: asked.append((settings.threads, settings.batch_size)) or [1.0]
    )
    commands_speed.record_speed(tmp_path / "cpu.json", "cpu", 6)
    assert asked == list(itertools.product([1, 2, 4, 6], [64, 256]))
    assert json.loads((tmp_path / "cpu.json").read_text())["name"] == "cpu"
