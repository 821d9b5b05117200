"""Functions that find a user's agent in a file, run an episode with it, and report its errors by file and line."""

from __future__ import annotations

import inspect
import logging
import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from schedlab.batsim.backends.time_limit import TimeIsUp, TimeLimit
from schedlab.config.errors import UserError
from schedlab.config.plugins import load_module, place_in
from schedlab.studies.hetero.hdeeprm import agent as base
from schedlab.studies.hetero.hdeeprm.agent import Agent
from schedlab.studies.hetero.simulator.episode import Episode

insight = logging.getLogger("schedlab.hetero.insights")
EXAMPLES = ("reinforce", "actor_critic")
ORIGINAL = "hdeeprm"


class AgentFailed(UserError):
    """An agent raised an error, took an invalid action, or took too long; the message gives the place in its file."""


def agent_file(name: str) -> Path:
    """Return the file of an agent, given by its path or by the name of a shipped example. Raises UserError if there is
    no such file.
    """
    path = Path(name)
    if name in EXAMPLES and not path.exists():
        return Path(base.__file__).parent / "agents" / f"{name}.py"
    if not path.is_file():
        expected = f"a Python file with a class derived from Agent, or one of the examples {', '.join(EXAMPLES)}"
        raise UserError(f"there is no file {name}", where="-a", expected=expected)
    return path


def load_agent(path: Path, seconds: float | None = None) -> type[Agent]:
    """Return the first class in a file that is derived from Agent.

    The file may import the base classes from `schedlab.studies.hetero.hdeeprm.agent` or, as for HDeepRM, from
    `hdeeprm.agent`, and the files in its folder. Raises UserError if the file fails, takes longer than `seconds` or has
    no such class.
    """
    with _importable(path), TimeLimit(seconds) as limit:
        limit.start()
        try:
            module = limit.call(lambda: load_module(path))
        except TimeIsUp as late:
            what = f"takes more than {seconds:g} s to be read"
            expected = "a class, and nothing that runs while it is read; or a longer --agent-limit"
            raise UserError(what, where=place_in(path, late), expected=expected) from None
    own = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]
    found = next((value for value in own if issubclass(value, Agent)), None)
    if found is None:
        others = f" (there: {', '.join(value.__name__ for value in own)})" if own else ""
        expected = "a class derived from Agent, PolicyLearningAgent or another one of hdeeprm.agent"
        what, remedy = f"holds no class of an agent{others}", "see docs/reference/hetero_launch.md"
        raise UserError(what, where=str(path), expected=expected, remedy=remedy)
    return found


@contextmanager
def _importable(path: Path) -> Iterator[None]:
    """Let a file import the files in its folder, and the base classes by the names that they have in HDeepRM."""
    folder = str(path.resolve().parent)
    package, module = ModuleType(ORIGINAL), ModuleType(f"{ORIGINAL}.agent")
    names = [name for name, value in vars(base).items() if inspect.isclass(value) and issubclass(value, Agent)]
    vars(module).update({name: getattr(base, name) for name in names})
    vars(package)["agent"] = module
    former = {name: sys.modules.get(name) for name in (ORIGINAL, f"{ORIGINAL}.agent")}
    sys.modules |= {ORIGINAL: package, f"{ORIGINAL}.agent": module}
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        for name, value in former.items():
            if value is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = value


class Guard:
    """A guard around calls of an agent's code: errors become AgentFailed with the line, and a call may take `seconds`
    (None: no limit).
    """

    def __init__(self, path: Path, name: str, seconds: float | None) -> None:
        self._path, self._name, self._limit = path, name, TimeLimit(seconds)

    def __enter__(self) -> Guard:
        self._limit.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._limit.__exit__(*exception)

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Guard the calls in the block; `what` names them in messages."""
        self._limit.start()
        try:
            yield
        except AgentFailed as failure:
            raise AgentFailed(failure.what, where=failure.where or str(self._path), expected=failure.expected) from None
        except TimeIsUp as late:
            problem = f"{self._name}.{what} takes more than {self._limit.seconds:g} s"
            raise AgentFailed(problem, where=place_in(self._path, late)) from None
        except (Exception, SystemExit) as error:
            problem = f"{self._name}.{what} raised {type(error).__name__}" + (f": {error}" if str(error) else "")
            raise AgentFailed(problem, where=place_in(self._path, error)) from error
        finally:
            self._limit.stop()


class AgentEnvironment:
    """The decisions of one episode as an agent sees them; implements `agent.Environment`.

    action_names   name of each action      masked   whether agents see which actions are valid (in HDeepRM: no)
    """

    def __init__(self, episode: Episode, masked: bool = True) -> None:
        settings = episode.system.settings
        self.episode, self._masked = episode, masked
        self.action_names = settings.names
        self.action_size, self.observation_size = settings.actions, episode.system.observer.size
        self._seen: np.ndarray | None = None
        self.action: int | None = None

    def begin_decision(self) -> None:
        """Forget the last decision."""
        self._seen = self.action = None

    def observation(self) -> np.ndarray:
        """Return the state, (observation_size,) float32; repeated calls within a decision return the same array."""
        if self._seen is None:
            self._seen = self.episode.observe()
        return self._seen

    def mask(self) -> np.ndarray | None:
        """Return which actions are valid, (action_size,) bool; None if all are."""
        mask = self.episode.system.masks() if self._masked else None
        return None if mask is None or mask.all() else mask

    def step(self, action: Any) -> None:
        """Take an action. Raises AgentFailed for an invalid action, and for a second action."""
        expected = f"a whole number from 0 ({self.action_names[0]}) to {self.action_size - 1} ({self.action_names[-1]})"
        if self.action is not None:
            raise AgentFailed("takes a second action within one decision", expected="one call of step")
        try:
            number = operator.index(action)
        except (TypeError, RuntimeError):
            raise AgentFailed(f"takes the action {action!r}", expected=expected) from None
        if isinstance(action, bool) or not 0 <= number < self.action_size:
            raise AgentFailed(f"takes the action {action!r}", expected=expected)
        self.action = number
        self.episode.decide(number)

    def reward(self) -> float:
        """Return the reward of the last action."""
        return cast(float, self.episode.system.reward)


def run_agent(agent: Agent, environment: AgentEnvironment, guard: Guard) -> None:
    """Run an episode with an agent to its end. Raises AgentFailed, and the errors of `Episode`."""
    episode = environment.episode
    going_on = episode.advance()
    while going_on:
        environment.begin_decision()
        with guard.during("observe"):
            observation = agent.observe(environment)
        with guard.during("decide"):
            action = agent.decide(observation)
        with guard.during("alter"):
            agent.alter(action, environment)
            if environment.action is None:
                what = f"{type(agent).__name__}.alter takes no action"
                raise AgentFailed(what, expected="one call of environment.step(action)")
        log_decision(episode, environment.action_names[environment.action], observation)
        going_on = episode.advance()
        with guard.during("rewarded"):
            agent.rewarded(environment)


def log_decision(episode: Episode, name: str, observation: Any) -> None:
    """Log the number, date, action and queue of the last decision, and at level DEBUG the observation."""
    if insight.isEnabledFor(logging.INFO):
        history, now, left = episode.history, episode.now, len(episode.system.queue)
        place = (len(history.actions), now, name, history.waiting[-1], left)
        insight.info("decision %d at %.6g s: %s, %d jobs waited, %d wait now", *place)
        if observation is not None and insight.isEnabledFor(logging.DEBUG):
            seen = np.array2string(np.asarray(observation), precision=4, threshold=64, max_line_width=10**6)
            insight.debug("seen: %s", seen)
