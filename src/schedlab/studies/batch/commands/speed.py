"""`schedlab batch speed`: the steps per second of a small reinforcement learner, and whether it learns.

DDPG (Lillicrap et al. 2016) on Pendulum, in the sizes and constants that the dissertation measured devices with. A step
is one of the environment and, once a minibatch is stored, an update of critic, actor and their slow copies. It is the
one place of the study that reads a clock; results are recorded, never made by the workflow's default targets.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from schedlab.config.errors import UserError
from schedlab.config.files import write_json
from schedlab.config.runtime.provenance import environment
from schedlab.config.schema import Settings, setting, validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.devices import device_name, find_device, wait_for
from schedlab.studies.batch.commands.parser import add_speed_arguments

log = logging.getLogger("schedlab.batch")
LAYERS = (512, 256, 64, 32)  # units of the hidden layers of actor and critic
LEARNING_RATE, EPSILON = 1e-3, 1e-3  # of Adam, for both
DISCOUNT, SLOWNESS, NOISE = 0.99, 0.01, 0.1  # gamma, tau, deviation of the exploration noise (in the action's units)
EVALUATE_EVERY, EVALUATION_EPISODES = 2000, 3


class SpeedSettings(Settings):
    """Settings of one measurement."""

    device: str = setting("cpu", doc="device, as torch names it: cpu, cuda, mps")
    threads: int = setting(1, doc="number of threads of torch", unit="threads", ge=1, le=1024)
    batch_size: int = setting(64, doc="batch size of an update, in transitions", unit="transitions", ge=1, le=100_000)
    steps: int = setting(2000, doc="timed steps per repeat", unit="steps", ge=1, le=400_000)
    warm_up: int = setting(500, doc="untimed steps with updates before the measurement", unit="steps", ge=0, le=400_000)
    repeats: int = setting(3, doc="number of timed repeats; the median is reported", ge=1, le=1000)
    seed: int = setting(0, doc="root seed of all random draws", ge=0)


@dataclass(frozen=True)
class Learned:
    """Progress of learning: the return of the last evaluation, and the steps taken so far."""

    solved: bool
    steps: int
    mean_return: float


class Ddpg:
    """Actor, critic and their target networks on a device. The memory of transitions stays on the host, as
    published.
    """

    def __init__(self, settings: SpeedSettings, env: Any, device: torch.device, capacity: int) -> None:
        self.device, self.batch_size = device, settings.batch_size
        self.rng = generator(settings.seed, "batch", "device speed")
        inputs, actions = env.observation_space.shape[0], env.action_space.shape[0]
        self.low, self.high = float(env.action_space.low[0]), float(env.action_space.high[0])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(settings.seed, "batch", "device speed", "parameters"))
            self.actor = nn.Sequential(*_layers(inputs, actions), nn.Tanh()).to(device)
            self.critic = nn.Sequential(*_layers(inputs + actions, 1)).to(device)
        self.slow_actor, self.slow_critic = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        adam = {"lr": LEARNING_RATE, "eps": EPSILON}
        self.actor_steps = torch.optim.Adam(self.actor.parameters(), **adam)
        self.critic_steps = torch.optim.Adam(self.critic.parameters(), **adam)
        self.seen, self.width = 0, 2 * inputs + actions + 2
        # Observation, action, reward, next observation, goes on.
        self.memory = np.zeros((capacity, self.width), dtype=np.float32)
        self.parts = np.cumsum([inputs, actions, 1, inputs]).tolist()

    def act(self, observation: np.ndarray, *, explore: bool) -> np.ndarray:
        """Return the action (actions,); the tanh of the network is not scaled to the action's range, as published."""
        with torch.no_grad():
            action = self.actor(torch.from_numpy(observation).to(self.device)).cpu().numpy()
        if explore:
            action = action + self.rng.normal(0.0, NOISE, action.shape)
        return np.clip(action, self.low, self.high).astype(np.float32)

    def remember(self, *transition: np.ndarray | float) -> None:
        """Store a transition in place of the oldest."""
        self.memory[self.seen % len(self.memory)] = np.concatenate([np.atleast_1d(part) for part in transition])
        self.seen += 1

    def update(self) -> None:
        """Take a step of critic and actor on a minibatch, and update the target networks."""
        stored = min(self.seen, len(self.memory))
        chosen = torch.from_numpy(self.memory[self.rng.integers(stored, size=self.batch_size)]).to(self.device)
        observation, action, reward, following, goes_on = torch.tensor_split(chosen, self.parts, dim=1)
        with torch.no_grad():
            ahead = self.slow_critic(torch.cat([following, self.slow_actor(following)], 1))
            target = reward + DISCOUNT * goes_on * ahead
        _step(self.critic_steps, F.mse_loss(self.critic(torch.cat([observation, action], 1)), target))
        _step(self.actor_steps, -self.critic(torch.cat([observation, self.actor(observation)], 1)).mean())
        with torch.no_grad():
            for slow, fast in ((self.slow_actor, self.actor), (self.slow_critic, self.critic)):
                for kept, new in zip(slow.parameters(), fast.parameters(), strict=True):
                    kept.lerp_(new, SLOWNESS)


def rates(settings: SpeedSettings, device: torch.device) -> list[float]:
    """Return the steps per second of each repeat. Set-up, the first minibatch and `warm_up` steps are not timed."""
    with _threads(settings.threads):
        before = settings.batch_size + settings.warm_up
        steps, _ = _learning(settings, device, capacity=before + settings.steps * settings.repeats)
        _take(steps, before)
        measured = []
        for _ in range(settings.repeats):
            wait_for(device)
            begin = time.perf_counter()
            _take(steps, settings.steps)
            wait_for(device)
            measured.append(settings.steps / (time.perf_counter() - begin))
        return measured


def learn(settings: SpeedSettings, device: torch.device, most: int = 400_000, goal: float = -300.0) -> Learned:
    """Learn until the mean return of three episodes reaches the goal, or for the largest number of steps; evaluate at
    intervals.
    """
    with _threads(settings.threads):
        steps, learner = _learning(settings, device, capacity=min(most, 1_000_000))
        judge, taken, reached = gymnasium.make("Pendulum-v1"), 0, -np.inf
        while taken < most and reached < goal:
            some = min(EVALUATE_EVERY, most - taken)
            _take(steps, some)
            taken += some
            seed = derive_seed(settings.seed, "batch", "device speed", "evaluation", taken)
            reached = _mean_return(learner, judge, seed)
        return Learned(bool(reached >= goal), taken, float(reached))


def _learning(settings: SpeedSettings, device: torch.device, capacity: int) -> tuple[Iterator[None], Ddpg]:
    """An endless iterator of steps and the learner that takes them."""
    env = gymnasium.make("Pendulum-v1")
    learner = Ddpg(settings, env, device, capacity)

    def steps() -> Iterator[None]:
        observation, _ = env.reset(seed=derive_seed(settings.seed, "batch", "device speed", "episodes") % 2**31)
        while True:
            action = learner.act(observation, explore=True)
            following, reward, ended, truncated, _ = env.step(action)
            learner.remember(observation, action, float(reward), following, 0.0 if ended else 1.0)
            observation = env.reset()[0] if ended or truncated else following
            if learner.seen >= settings.batch_size:
                learner.update()
            yield

    return steps(), learner


def _take(steps: Iterator[None], number: int) -> None:
    for _ in range(number):
        next(steps)


def _mean_return(learner: Ddpg, env: gymnasium.Env, seed: int) -> float:
    returns = []
    for episode in range(EVALUATION_EPISODES):
        observation, _ = env.reset(seed=(seed + episode) % 2**31)
        total, over = 0.0, False
        while not over:
            observation, reward, ended, truncated, _ = env.step(learner.act(observation, explore=False))
            total, over = total + float(reward), ended or truncated
        returns.append(total)
    return float(np.mean(returns))


def _layers(inputs: int, outputs: int) -> Iterator[nn.Module]:
    for units in LAYERS:
        yield nn.Linear(inputs, units)
        yield nn.ReLU()
        inputs = units
    yield nn.Linear(inputs, outputs)


def _step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Within the block torch computes with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def measure(arguments: argparse.Namespace) -> int:
    """Print the rates of a device, and record them if requested; return the exit status."""
    if arguments.out and arguments.out.exists():
        raise UserError("the file is there already", where=str(arguments.out), remedy="name another file with --out")
    document = speed(arguments)
    if arguments.out:
        write_json(arguments.out, document)
        log.info("wrote %s", arguments.out)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def record_speed(out: Path, device: str, threads: int) -> None:
    """Measure with 1, 2, 4 ... `threads` threads, and record it like the command. Raises UserError."""
    parser = argparse.ArgumentParser()
    add_speed_arguments(parser)
    swept = sorted({1 << power for power in range(threads.bit_length())} | {threads})
    options = ["--device", device, "--threads", ",".join(map(str, swept)), "--batch-sizes", "64,256", "--name", device]
    write_json(out, speed(parser.parse_args(options)))


def speed(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the document of `batch speed`. Raises UserError."""
    common = {key: getattr(arguments, key) for key in ("device", "steps", "warm_up", "repeats", "seed")}
    grid = product(_numbers(arguments.threads, "--threads"), _numbers(arguments.batch_sizes, "--batch-sizes"))
    planned = [
        validate(
            SpeedSettings,
            {**common, "threads": threads, "batch_size": size},
            lambda path: "--" + {"batch_size": "batch-sizes"}.get(str(path[0]), str(path[0]).replace("_", "-")),
        )
        for threads, size in grid
    ]
    device = find_device(arguments.device, metal=True)
    log.info("measuring %s", device_name(device))
    rows = [_row(settings, rates(settings, device)) for settings in planned]
    document = {
        "name": arguments.name,
        "device": device_name(device),
        "measured": rows,
        "steps": arguments.steps,
        "warm_up": arguments.warm_up,
        "seed": arguments.seed,
        "date": datetime.now(UTC).date().isoformat(),
        **environment(),
    }
    if arguments.learn:
        learned = learn(planned[0], device)
        document["learned"] = {"solved": learned.solved, "steps": learned.steps, "mean_return": learned.mean_return}
    return document


def _row(settings: SpeedSettings, measured: list[float]) -> dict[str, Any]:
    log.info(
        "%d threads, batches of %d: %.1f steps a second",
        settings.threads,
        settings.batch_size,
        statistics.median(measured),
    )
    return {
        "device": settings.device,
        "threads": settings.threads,
        "batch_size": settings.batch_size,
        "steps_per_s": [round(rate, 2) for rate in measured],
        "median": round(statistics.median(measured), 2),
    }


def _numbers(text: str, option: str) -> list[int]:
    """The whole numbers of '1,2,4', each once, in their order."""
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        raise UserError(
            f"'{text}' is no list of numbers",
            where=option,
            expected="whole numbers with commas between them, such as 1,2,4",
        )
    return list(dict.fromkeys(int(number) for number in text.split(",")))
