"""Actors of a Q-network. Each plays episodes of its own stream, in rounds. The bytes do not depend on the number of
processes.

The actions of an actor depend only on its number, the parameters at the start of a round, and its share of random
actions. It evaluates the network for one observation at a time, because rounding depends on the size of a batch, and
that would depend on the distribution of actors over processes.

Source: Horgan et al. 2018, "Distributed prioritized experience replay", arXiv:1803.00933, but synchronous with the
learner.
"""

from __future__ import annotations

import multiprocessing
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Problem
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.episode_streams import EpisodeStream, Finished, StreamEnv, mask_of, not_repeated
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings
from schedlab.learning.seeding import use_one_thread

if TYPE_CHECKING:
    from schedlab.learning.prioritised_dqn.learner import NStep

WHOLE = "whole"  # name of an observation without parts
Values = Callable[[Mapping[str, np.ndarray]], np.ndarray]  # observations by name, one row -> values of the actions (A,)
Rows = list[dict[str, Any]]  # decisions: observation/..., action, reward, discount, following/..., mask


def parts(observation: Any) -> dict[str, np.ndarray]:
    """Return the parts of an observation by name; an observation without parts is its only part."""
    if isinstance(observation, Mapping):
        return {key: np.asarray(value) for key, value in observation.items()}
    return {WHOLE: np.asarray(observation)}


@dataclass
class Round:
    """The decisions and finished episodes of an actor in a round."""

    actor: int
    rows: Rows
    finished: list[Finished] = field(default_factory=list)


class Actor:
    """Plays the episodes of its stream. Its state: the number of its episode, the actions taken in it, and its random
    stream.

    window  makes the object that sums the rewards of an episode's decisions (prioritised_dqn.NStep)
    """

    def __init__(
        self,
        number: int,
        settings: PrioritisedDQNSettings,
        window: Callable[[], NStep],
        problems: Mapping[str, Problem],
        scenarios: Sequence[str],
        seed: int,
    ) -> None:
        self.number, self.settings, self._new_window = number, settings, window
        own = derive_seed(seed, "actor", number)
        self.env = StreamEnv(EpisodeStream(problems, scenarios, own), settings.reward_scale)
        self.random = generator(own, "exploration")
        self._begin(self.env.stream.next_number())

    def play(self, values: Values, epsilon: float) -> Round:
        """Take the decisions of a round."""
        rows: Rows = []
        for _ in range(self.settings.train_freq):
            if self._over:
                self._begin(self.env.stream.next_number())
            rows += self._step(self._choose(values, epsilon))
        finished, self.env.stream.finished = self.env.stream.finished, []
        return Round(self.number, rows, finished)

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`, as plain values."""
        return {
            "following": self.env.stream.following,
            "episode": self.env.number,
            "actions": [int(action) for action in self.env.actions],
            "random": self.random.bit_generator.state,
            "seen": self._seen(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state by taking the same actions in its episode again. Raises RuntimeError if the episode
        does not repeat.
        """
        stream = self.env.stream
        stream.following = state["following"]
        self._begin(state["episode"])
        for action in state["actions"]:
            self._step(action)
        stream.finished = []
        self.random.bit_generator.state = state["random"]
        if self._seen() != state["seen"]:
            raise not_repeated(stream, self.env.number)

    def _begin(self, episode: int) -> None:
        self._observation, self._over = self.env.begin(episode), False
        self._window, self._mask = self._new_window(), self._valid()

    def _choose(self, values: Values, epsilon: float) -> int:
        if self.random.random() < epsilon:
            return int(self.random.choice(np.flatnonzero(self._mask)))
        found = values({name: array[None] for name, array in parts(self._observation).items()})
        return int(np.argmax(np.where(self._mask, found, -np.inf)))

    def _step(self, action: int) -> Rows:
        before = self._observation
        self._observation, reward, terminated, truncated, _ = self.env.step(action)
        self._mask, self._over = self._valid(), terminated or truncated
        return self._window.add(before, action, reward, self._observation, self._mask, terminated, self._over)

    def _valid(self) -> np.ndarray:
        mask = mask_of(self.env.env) if self.settings.keep_to_masks else None
        return np.ones(int(self.env.env.action_space.n), dtype=bool) if mask is None else np.array(mask, dtype=bool)

    def _seen(self) -> list[float]:
        sums = [zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in parts(self._observation).values()]
        return [*sums, self.env.total]


class Actors:
    """Actors in this process. `begin` plays a round, and `finish` returns its results in the order of the actors."""

    def __init__(self, make: Callable[[int], Actor], numbers: Sequence[int], values: Values) -> None:
        self._actors, self._values = [make(number) for number in numbers], values

    def begin(self, parameters: Mapping[str, np.ndarray], epsilons: Sequence[float]) -> None:
        """Play a round with the present parameters of the network."""
        del parameters
        self._rounds = [actor.play(self._values, epsilons[actor.number]) for actor in self._actors]

    def finish(self) -> list[Round]:
        """Return the round that `begin` played."""
        return self._rounds

    def states(self) -> list[dict[str, Any]]:
        """Return the states of the actors."""
        return [actor.state() for actor in self._actors]

    def restore(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Restore the states of all actors, by their numbers."""
        for actor in self._actors:
            actor.restore(states[actor.number])

    def close(self) -> None:
        """Do nothing: there are no processes to end."""


class ActorProcesses:
    """The same actors, divided among forked processes, each with its own copy of the network. They play while the
    learner learns.
    """

    def __init__(self, make: Callable[[int], Actor], count: int, processes: int, network: Callable[[], Any]) -> None:
        if "fork" not in multiprocessing.get_all_start_methods():
            raise UserError("this system cannot fork processes", where="learner.processes", expected="1")
        context, self._pipes, self._processes = multiprocessing.get_context("fork"), [], []
        for numbers in np.array_split(np.arange(count), min(processes, count)):
            here, there = context.Pipe()
            arguments = (there, here, make, numbers.tolist(), network)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    def begin(self, parameters: Mapping[str, np.ndarray], epsilons: Sequence[float]) -> None:
        """Let every process play a round with these parameters."""
        self._send("begin", parameters, epsilons)

    def finish(self) -> list[Round]:
        """Wait for the round and return it."""
        return self._gather()

    def states(self) -> list[dict[str, Any]]:
        """Return the states of the actors."""
        self._send("states")
        return self._gather()

    def restore(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Restore the states of all actors, by their numbers."""
        self._send("restore", states)
        self._gather()

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(timeout=5)
            if process.is_alive():
                process.terminate()
                process.join()

    def _send(self, *message: Any) -> None:
        for pipe in self._pipes:
            with suppress(BrokenPipeError):  # a process that has ended; `_gather` reports its missing answer
                pipe.send(message)

    def _gather(self) -> list[Any]:
        found: list[Any] = []
        for pipe in self._pipes:
            try:
                answer = pipe.recv()
            except (EOFError, ConnectionResetError):
                raise RuntimeError("a process of actors ended without an answer") from None
            if isinstance(answer, BaseException):
                raise answer
            found += answer
        return found


def _serve(
    pipe: Connection,
    other_end: Connection,
    make: Callable[[int], Actor],
    numbers: Sequence[int],
    network: Callable[[], Any],
) -> None:
    """Answer the learner's messages until it closes the pipe. An error is sent in place of an answer."""
    other_end.close()
    use_one_thread()
    acting = network()
    try:
        actors = Actors(make, numbers, acting.values)
        while True:
            what, *arguments = pipe.recv()
            if what == "begin":
                acting.load(arguments[0])
                actors.begin(*arguments)
                pipe.send(actors.finish())
            elif what == "states":
                pipe.send(actors.states())
            else:
                actors.restore(*arguments)
                pipe.send([])
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
    except Exception as error:
        pipe.send(error if isinstance(error, UserError) else RuntimeError(f"{type(error).__name__}: {error}"))
