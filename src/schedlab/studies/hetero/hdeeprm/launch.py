"""HDeepRM's launcher: the episodes of one options file on the embedded simulator, in one process without a port.

A CLASSIC agent always takes the first action; a LEARNING agent is a class in a file. Every draw is derived from the
options' seed and the number of the episode, so equal launches write equal bytes, and learning resumes exactly.
See docs/reference/hetero_launch.md.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from schedlab.batsim.errors import ProtocolError, SimulationDeadlock
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.files import write_json
from schedlab.config.readers import read_json
from schedlab.config.runtime.run_lock import hold
from schedlab.config.seeds import derive_seed
from schedlab.learning.seeding import torch_stream, use_one_thread
from schedlab.platforms.description import LIBRARIES, LibraryFiles
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.hdeeprm import agent_models as models
from schedlab.studies.hetero.hdeeprm import launch_outputs as outputs
from schedlab.studies.hetero.hdeeprm import user_agent
from schedlab.studies.hetero.hdeeprm.agent import Agent
from schedlab.studies.hetero.hdeeprm.launch_inputs import Sources, prepare_inputs
from schedlab.studies.hetero.hdeeprm.options import AgentOptions, decision_settings, read_options
from schedlab.studies.hetero.simulator.episode import Cluster, Episode, Jobs
from schedlab.termination import STATUS, Terminated, unwinding

log = logging.getLogger("schedlab.hetero.launch")
insight = logging.getLogger("schedlab.hetero.insights")
LOCK = ".hetero-launch.lock"
AGENT_LIMIT = 60.0  # s for one call of an agent's method
SAVE_EVERY = 50  # episodes between writes of tables and model, which are also written when the launch ends or fails


@dataclass(frozen=True)
class Launch:
    """The arguments of the command line.

    agent         file of a LEARNING agent, or an example   runs          number of episodes
    input_model   model file to continue from               output_model  model file to write
    compat        mode reference, with every defect         agent_limit   s for one call of a method; None: no limit
    """

    options: Path
    agent: str | None = None
    input_model: Path | None = None
    output_model: Path | None = None
    custom_workload: Path | None = None
    runs: int = 1
    compat: bool = False
    agent_limit: float | None = AGENT_LIMIT
    libraries: LibraryFiles = field(default_factory=LibraryFiles)


@dataclass(frozen=True)
class Finished:
    """A finished episode: its number since the agent's first one, Batsim's totals, the sum of the rewards, the loss."""

    number: int
    scores: dict[str, float]
    reward: float
    loss: float | None = None


@dataclass
class Notes:
    """The values that an agent reports of an episode besides its actions."""

    log_probabilities: list[float] = field(default_factory=list)
    first_probabilities: list[float] | None = None


def launch(given: Launch, folder: Path) -> Iterator[Finished]:
    """Run the episodes in a working directory and yield each when it is in the logs; closing the generator writes
    tables and model.

    Finished episodes are kept; an episode that fails leaves partial_*.csv. Raises UserError(s) for wrong input, and
    user_agent.AgentFailed, ProtocolError or SimulationDeadlock if an episode fails.
    """
    options = read_options(given.options)
    settings = decision_settings(options, given.compat)
    try:
        hold(folder / LOCK)
    except UserError:
        remedy = "wait for it, or launch in another directory"
        raise UserError("another launch works in this directory", where=str(folder), remedy=remedy) from None
    with ExitStack() as stack:
        if options.pybatsim.agent.learning:
            learner = _Learner(given, options.pybatsim.agent, settings, options.seed)
            player: _Learner | _Classic = stack.enter_context(learner.guarded())
        else:
            player = _Classic(given)
        sources = Sources(options, given.options, given.custom_workload, given.compat, given.libraries)
        cluster, jobs = prepare_inputs(sources, folder)
        write_json(folder / outputs.ACTION_NAMES, {"actions": list(settings.names)})
        stack.enter_context(outputs.insights(folder, options.pybatsim.log_level))
        for path in sorted(folder.glob(f"{outputs.PARTIAL_PREFIX}_*.csv")):
            path.unlink()  # left by an earlier launch that failed
        runs = _Runs(folder, cluster, jobs, settings, options.seed, player)
        stack.callback(player.save)
        stack.callback(runs.save)
        for number in range(player.first, player.first + given.runs):
            insight.info("episode %d begins", number)
            try:
                yield runs.run(number)
            except UserError as error:
                insight.error("episode %d failed: %s", number, error)
                raise
            if (number + 1) % SAVE_EVERY == 0:
                runs.save()
                player.save()


def _own_types(arguments: argparse.Namespace) -> LibraryFiles:
    """Return the type libraries that the options name: single files before those of the folder --types.

    The folder's memory types are read but have no effect: no result depends on a kind of memory.
    """
    found = {what: getattr(arguments, what) or "" for what in LIBRARIES}
    if (folder := arguments.types) is None:
        return LibraryFiles(**found)
    files = {what: folder / f"{what.removesuffix('s')}_types.json" for what in LIBRARIES}
    memory = folder / "memory_types.json"
    if not any(file.is_file() for file in (*files.values(), memory)):
        names = ", ".join(file.name for file in (*files.values(), memory))
        what = "there is no library of types here" if folder.is_dir() else "there is no such folder"
        raise UserError(what, where=f"--types {folder}", expected=f"a folder with one or more of {names}")
    if memory.is_file():
        read_json(memory, "a library of memory types")
    found |= {what: str(file) for what, file in files.items() if not found[what] and file.is_file()}
    return LibraryFiles(**found)


def run_launch(arguments: argparse.Namespace) -> int:
    """Launch in the working directory, print a line for each episode and return the exit status."""
    if arguments.agent and arguments.agent_first:
        what = f"excludes {arguments.agent_first}, the agent before the options"
        raise UserError(what, where="-a", expected="one agent")
    given = Launch(
        options=arguments.options,
        agent=arguments.agent or arguments.agent_first,
        input_model=arguments.inmodel,
        output_model=arguments.outmodel,
        custom_workload=arguments.customworkload,
        runs=arguments.nbruns,
        compat=arguments.compat,
        agent_limit=arguments.agent_limit or None,
        libraries=_own_types(arguments),
    )
    try:
        with unwinding():
            for finished in launch(given, Path.cwd()):
                scores, loss = finished.scores, "" if finished.loss is None else f", loss {finished.loss:.6g}"
                said = f"makespan {scores['makespan']:.6f} s, energy {scores['consumed_joules']:.3f} J, "
                print(f"episode {finished.number}: {said}rewards {finished.reward:.6g}{loss}", flush=True)
    except (ProtocolError, SimulationDeadlock, user_agent.AgentFailed) as failure:
        print("\n".join(f"error: {line}" for line in str(failure).splitlines()), file=sys.stderr)
        kept = "finished episodes are kept; of the one that failed there are partial_*.csv and insights.log"
        print(kept, file=sys.stderr)
        return 1
    except Terminated:
        return STATUS
    log.info("wrote out_jobs.csv, out_schedule.csv and others")
    return 0


@dataclass
class _Runs:
    """Episodes in one directory; `save` writes the files that each episode replaces."""

    folder: Path
    cluster: Cluster
    jobs: Jobs
    settings: DecisionSettings
    seed: int
    player: _Learner | _Classic
    last: tuple[outputs.EpisodeTables, dict[str, Any]] | None = None

    def run(self, number: int) -> Finished:
        """Run an episode, add it to the logs, and learn from it."""
        tables, seed = outputs.EpisodeTables(), derive_seed(self.seed, "launch", number)
        episode = Episode(self.cluster, self.jobs, self.settings, seed, tables)
        try:
            notes = self.player.play(episode, number)
        except BaseException as failure:
            if type(failure) not in (UserError, UserErrors):  # wrong input is reported before anything happens
                episode.simulation.records.commit()
                tables.write(self.folder, outputs.PARTIAL_PREFIX)
            raise
        scores, reward = episode.scores(), float(sum(episode.history.rewards))
        self.last = tables, episode.overuse()
        self._add_to_logs(episode, notes, scores["makespan"], reward)
        _warn_of_oddities(episode)
        loss = self.player.learn(number)
        if loss is not None:
            outputs.append_lines(self.folder / outputs.LOSSES, [loss])
        said = "episode %d ends: makespan %r s, sum of rewards %r, loss %r"
        insight.info(said, number, scores["makespan"], reward, loss)
        return Finished(number, scores, reward, loss)

    def save(self) -> None:
        """Write the tables of the last episode that ended."""
        if self.last is not None:
            tables, overuse = self.last
            tables.write(self.folder, outputs.PREFIX)
            write_json(self.folder / outputs.OVERUSE, overuse)

    def _add_to_logs(self, episode: Episode, notes: Notes, makespan: float, reward: float) -> None:
        folder = self.folder
        outputs.append_lines(folder / outputs.REWARDS, [reward])
        outputs.append_lines(folder / outputs.MAKESPANS, [makespan])
        outputs.append_lines(folder / outputs.ACTIONS, episode.history.actions)
        outputs.append_lines(folder / outputs.LOG_PROBABILITIES, notes.log_probabilities)
        if notes.first_probabilities is not None:
            outputs.append_row(folder / outputs.PROBABILITIES, notes.first_probabilities)


class _Classic:
    """An agent that always takes the first action, without observing or learning."""

    first = 0

    def __init__(self, given: Launch) -> None:
        values = {"-a": given.agent, "-im": given.input_model, "-om": given.output_model}
        if unused := [name for name, value in values.items() if value is not None]:
            log.warning("a CLASSIC agent needs no %s", ", ".join(unused))

    def play(self, episode: Episode, _number: int) -> Notes:
        """Run an episode."""
        name, history = episode.system.settings.selection[0], episode.history
        while episode.advance():
            episode.decide(0)
            place = (len(history.actions), episode.now, name, history.waiting[-1])
            insight.info("decision %d at %.6g s: %s, %d jobs waited", *place)
        return Notes()

    def learn(self, _number: int) -> None:
        """Learn nothing."""

    def save(self) -> None:
        """Write nothing."""


class _Learner:
    """A LEARNING agent, which is made for each episode with the weights learned so far; `first`: number of episodes
    learned before this launch.
    """

    def __init__(self, given: Launch, options: AgentOptions, settings: DecisionSettings, seed: int) -> None:
        if given.agent is None:
            where, remedy = f"{given.options}: pybatsim.agent.type", "name it with -a FILE.py"
            raise UserError("a LEARNING agent is a class in a file", where=where, remedy=remedy)
        use_one_thread()
        self._given, self._options, self._settings, self._seed = given, options, settings, seed
        self._path = user_agent.agent_file(given.agent)
        with _seeded(seed, "agent file"):
            self._class: Any = user_agent.load_agent(self._path, given.agent_limit)
        log.info("agent: %s of %s", self._class.__name__, self._path)
        self._model = self._input_model()
        self._guard: user_agent.Guard
        self._agent: Agent
        self._optimizer: Any = None
        self._decided = self._told_untrained = False
        self.first = self._model.episodes if self._model else 0

    @contextmanager
    def guarded(self) -> Iterator[_Learner]:
        """Guard the calls of the agent's code inside the block."""
        with user_agent.Guard(self._path, self._class.__name__, self._given.agent_limit) as self._guard:
            yield self

    def play(self, episode: Episode, number: int) -> Notes:
        """Run an episode with the agent."""
        environment = user_agent.AgentEnvironment(episode, masked=not self._given.compat)
        self._agent = self._make(environment)
        with _seeded(self._seed, "episode", number):
            user_agent.run_agent(self._agent, environment, self._guard)
        self._decided = bool(episode.history.actions)
        logs = getattr(self._agent, "log_probs", [])
        return Notes([float(value.detach()) for value in logs], getattr(self._agent, "first_probabilities", None))

    def learn(self, number: int) -> float | None:
        """Take a gradient step on the episode's loss and return the loss; None in a test run or without a decision."""
        if self._options.run != "train" or not self._decided:
            return None

        with _seeded(self._seed, "learn", number), self._guard.during("loss"):
            loss = self._agent.loss()
            self._optimizer.zero_grad()
            loss.backward()
            slopes = [parameter.grad for parameter in self._agent.parameters() if parameter.grad is not None]
            if not all(tensor.isfinite().all() for tensor in (loss, *slopes)):
                slope = ", its gradient is not finite" if loss.isfinite() else ""
                what = f"the loss of episode {number} is {loss.item()}{slope}"
                raise user_agent.AgentFailed(what, expected="finite numbers; nothing was learned from this episode")
            self._optimizer.step()
        self._model = models.model_of(self._agent, self._optimizer, number + 1)
        return float(loss.detach())

    def save(self) -> None:
        """Write the model if the launch names a file for it and something was learned."""
        if self._given.output_model is not None and self._optimizer is not None and self._model is not None:
            models.write_model(self._given.output_model, self._model, self._optimizer)

    def _make(self, environment: user_agent.AgentEnvironment) -> Agent:
        """Return the agent of the next episode. Its first weights depend on the seed alone; later ones are learned."""
        options, training = self._options, self._options.run == "train"
        with _seeded(self._seed, "agent"), self._guard.during("__init__"):
            agent = self._class(options.gamma, options.hidden, environment.action_size, environment.observation_size)
            if "_modules" not in vars(agent):  # torch.nn.Module.__init__ sets it, and torch needs it
                what = f"{self._class.__name__}.__init__ does not begin its base class"
                raise user_agent.AgentFailed(what, expected="super().__init__(...) in its first line")
        agent.train(training)
        agent.acting = "sample" if training else options.acting or ("sample" if self._given.compat else "greedy")
        if self._model is not None:
            models.put_weights(agent, self._model)
        elif not training and not self._told_untrained and any(True for _ in agent.parameters()):
            log.warning("no -im: the agent acts by the weights that it begins with")
            self._told_untrained = True
        if training:
            self._optimizer = self._make_optimizer(agent)
            if self._model is not None:
                models.put_memory(self._optimizer, self._model)
        return agent

    def _make_optimizer(self, agent: Agent) -> Any:
        parameters = list(agent.parameters())
        if not parameters or not callable(getattr(agent, "loss", None)):
            lacking = "parameters" if not parameters else "method loss"
            what = f"{self._class.__name__} has no {lacking}, so it cannot learn"
            expected = "run: test, or a class derived from LearningAgent"
            raise UserError(what, where=str(self._path), expected=expected)
        return torch.optim.Adam(parameters, lr=self._options.lr)

    def _input_model(self) -> models.Model | None:
        """Return the model that -im names. Its file may be missing if -om will write it: then learning begins without
        a model.
        """
        given, training = self._given, self._options.run == "train"
        if given.output_model is not None and not training:
            log.warning("-om %s: nothing is learned in a test run, so no model is written", given.output_model)
        if given.output_model is not None and given.output_model.is_dir():
            what = f"{given.output_model} is a directory"
            raise UserError(what, where="-om", expected="a file to write the model to")
        path = given.input_model
        if path is None:
            return None
        same = given.output_model is not None and path.resolve() == given.output_model.resolve()
        if training and same and not path.exists():
            return None
        if not path.is_file():
            what, expected = f"there is no file {path}", "a model that a launch wrote with -om"
            raise UserError(
                what, where="-im", expected=expected, remedy="for a new one: -im and -om alike, or -om alone"
            )
        return models.read_model(path)


@contextmanager
def _seeded(seed: int, *names: str | int) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and torch, from which agents may draw, within the block."""
    derived = derive_seed(seed, "launch", *names)
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  (agents may use them)
    random.seed(derived)
    np.random.set_state(np.random.RandomState(derived % 2**32).get_state())  # noqa: NPY002
    try:
        with torch_stream(derived, "agent"):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002


def _warn_of_oddities(episode: Episode) -> None:
    system = episode.system
    if system.rejected:
        insight.warning("%d jobs can never fit the platform and were rejected", system.rejected)
        log.warning("%d jobs can never fit the platform and were rejected", system.rejected)
    if system.replaced:
        insight.warning("%d voids were replaced by the first action: nothing else could happen", system.replaced)
