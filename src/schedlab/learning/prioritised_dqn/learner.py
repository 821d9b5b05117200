"""Deep Q-learning as Ape-X puts it together: double targets, dueling heads, n-step returns, prioritised replay, several
actors.

Source: Horgan et al. 2018, "Distributed prioritized experience replay", arXiv:1803.00933, but in rounds instead of at
each one's own pace: every actor takes some decisions with the parameters at a round's begin, while the learner takes
gradient steps on what was there before. So the same seed gives the same bytes for a number of actors, over however many
processes they are spread, interrupted or not.

All of the method stands here but the buffer (prioritised_replay.py); actors play in prioritised_dqn_actors.py.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from schedlab.config.contract import Curve, LearnPaths, PolicySpec, Problem, Unit
from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, file_hash
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.activations import ACTIVATIONS
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import (
    Checkpoint,
    load_module,
    module_arrays,
    read_checkpoint,
    read_progress,
    write_checkpoint,
)
from schedlab.learning.episode_streams import Finished, stepped, sum_of_rewards
from schedlab.learning.prioritised_dqn.actors import WHOLE, Actor, ActorProcesses, Actors, Rows, parts
from schedlab.learning.prioritised_dqn.replay import PrioritisedReplay
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings, of_policy, phase_settings
from schedlab.learning.seeding import torch_stream, use_one_thread
from schedlab.learning.spaces import ANY_SPLIT, common_spaces, first_environment, require_spaces, told, told_spaces

KIND, PROGRESS = "prioritised-dqn", "prioritised-dqn-progress"
MakeReader = Callable[[Any, gym.Space], nn.Module]  # (settings, observation space) -> module with `features_dim`


def vector_reader(settings: PrioritisedDQNSettings, space: gym.Space) -> nn.Module:
    """Return what takes a vector as it is. Raises UserError for observations in parts: they need a reader of the
    study's own.
    """
    del settings
    if not isinstance(space, gym.spaces.Box):
        raise UserError(
            f"the network reads a vector, not {space}",
            where="learner",
            remedy="give the learner a reader of observations",
        )
    reader = nn.Flatten()
    reader.features_dim = int(np.prod(space.shape))
    return reader


class QNetwork(nn.Module):
    """Values of all actions (rows, A): a reader of observations, shared layers, then a head, or two (Wang et al. 2016,
    equation 9).
    """

    def __init__(
        self, reader: nn.Module, actions: int, settings: PrioritisedDQNSettings, in_parts: bool = False
    ) -> None:
        super().__init__()
        self.reader, self._in_parts = reader, in_parts
        activation = ACTIVATIONS[settings.activation]
        self.shared, width = _layers(reader.features_dim, settings.net_arch, activation)
        self.advantage, self.value = _head(width, settings.head_arch, actions, activation), None
        if settings.dueling:
            self.value = _head(width, settings.head_arch, 1, activation)

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the values for observations by their parts' names."""
        hidden = self.shared(self.reader(dict(observations) if self._in_parts else observations[WHOLE]))
        advantage = self.advantage(hidden)
        return advantage if self.value is None else self.value(hidden) + advantage - advantage.mean(dim=1, keepdim=True)

    def values(self, observation: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the values of one observation, given as a row: (A,)."""
        with torch.inference_mode():
            return self({name: torch.from_numpy(row) for name, row in observation.items()})[0].numpy()

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take parameters by name. Raises UserError where they are of another network or not finite."""
        load_module(self, arrays, "the learner's parameters")


def _layers(width: int, sizes: Sequence[int], activation: type[nn.Module]) -> tuple[nn.Sequential, int]:
    modules: list[nn.Module] = []
    for size in sizes:
        modules, width = [*modules, nn.Linear(width, size), activation()], size
    return nn.Sequential(*modules), width


def _head(width: int, sizes: Sequence[int], out: int, activation: type[nn.Module]) -> nn.Sequential:
    hidden, width = _layers(width, sizes, activation)
    return hidden.append(nn.Linear(width, out))


def tensors(columns: Mapping[str, np.ndarray], group: str) -> dict[str, torch.Tensor]:
    """Return the parts of the observations that are stored under a group's name."""
    return {
        name.removeprefix(f"{group}/"): torch.from_numpy(rows)
        for name, rows in columns.items()
        if name.startswith(f"{group}/")
    }


@torch.no_grad()
def targets(online: nn.Module, target: nn.Module, columns: Mapping[str, np.ndarray], double: bool) -> torch.Tensor:
    """Return what the values of the actions taken should be (rows,): n rewards, and the discounted value of the best
    valid action then.

    double: the learning network says which action is best, the target network what it is worth (van Hasselt et al.
      2016).
    """
    following, valid = tensors(columns, "following"), torch.from_numpy(columns["mask"])
    values = target(following)
    judged = (online(following) if double else values).masked_fill(~valid, -torch.inf)
    best = values.gather(1, judged.argmax(dim=1, keepdim=True))[:, 0]
    return torch.from_numpy(columns["reward"]) + torch.from_numpy(columns["discount"]) * best


def errors(
    online: nn.Module, target: nn.Module, columns: Mapping[str, np.ndarray], double: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (values of the actions taken, values less targets), each (rows,)."""
    taken = torch.from_numpy(columns["action"])[:, None]
    found = online(tensors(columns, "observation")).gather(1, taken)[:, 0]
    return found, found - targets(online, target, columns, double)


def share_of_random_actions(settings: PrioritisedDQNSettings, actor: int, step: int) -> float:
    """Return epsilon of an actor (counted from 0) at a decision of the phase."""
    if settings.exploration == "by_actor":
        return settings.base_epsilon ** (1 + settings.epsilon_alpha * actor / max(settings.actors - 1, 1))
    gone = min(step / settings.exploration_steps, 1.0)
    return settings.initial_epsilon + gone * (settings.final_epsilon - settings.initial_epsilon)


class NStep:
    """Sums the rewards of n decisions: each is given out once n rewards have come, with what follows and how much that
    is discounted.
    """

    def __init__(self, n: int, gamma: float) -> None:
        self.n, self.gamma = n, gamma
        self._waiting: deque[list[Any]] = deque()  # observation, action, sum so far, discount of the next reward

    def add(
        self,
        observation: Any,
        action: int,
        reward: float,
        following: Any,
        mask: np.ndarray,
        terminated: bool,
        over: bool,
    ) -> Rows:
        """Return the decisions that are whole now; at an episode's end all, with fewer rewards. A termination leaves
        nothing to follow.
        """
        self._waiting.append([observation, action, 0.0, 1.0])
        for entry in self._waiting:
            entry[2] += entry[3] * reward
            entry[3] *= self.gamma
        whole: Rows = []
        while self._waiting and (over or len(self._waiting) == self.n):
            begin, taken, total, discount = self._waiting.popleft()
            row: dict[str, Any] = {f"observation/{name}": array for name, array in parts(begin).items()}
            row |= {f"following/{name}": array for name, array in parts(following).items()}
            row |= {"action": np.int64(taken), "reward": np.float32(total), "mask": mask}
            whole.append(row | {"discount": np.float32(0.0 if terminated else discount)})
        return whole


@dataclass(frozen=True)
class Job:
    """What a learning job is given: values of each phase, what each phase learns on (`seen`), spaces, and parameters to
    begin with.
    """

    settings: Sequence[PrioritisedDQNSettings]
    seen: Sequence[Mapping[str, Problem]]
    network: Callable[[], QNetwork]
    spec: PolicySpec
    seed: int
    curve: Curve
    paths: LearnPaths
    start: Mapping[str, np.ndarray]

    def digest(self) -> str:
        """Hash of all that determines the job, so that progress of another one is not taken up; units and inputs are
        the stage's care.
        """
        phases = [[list(phase.scenarios), phase.steps] for phase in self.spec.train_on]
        values = [of_policy(each) for each in self.settings]
        return content_hash([KIND, values, phases, self.seed, file_hash(self.paths.start) if self.paths.start else ""])


class Run:
    """One learning job. `parameters`: those kept so far, by name; `kept_step`: the step of their phase that they come
    from.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.digest = job, job.digest()
        self.parameters, self.kept_step = dict(job.start), 0
        self.progress = job.paths.progress / "prioritised_dqn.zip"

    def learn(self) -> tuple[dict[str, np.ndarray], int]:
        """Go on from where an interrupted job of the same values was; return the parameters kept and the step they were
        kept at.
        """
        kept, first = read_progress(self.progress, PROGRESS, self.digest), 0
        if kept is not None:
            first, self.kept_step, self.parameters = kept.meta["phase"], kept.meta["kept_step"], kept.group("policy")
        for number in range(first, len(self.job.settings)):
            with torch_stream(derive_seed(self.job.seed, "phase", number), "prioritised-dqn"):
                phase = LearningPhase(self, number)
                try:
                    self.parameters, self.kept_step = phase.learn(kept if number == first else None)
                finally:
                    phase.close()
            self.save(number + 1, None, {f"policy/{name}": array for name, array in self.parameters.items()})
        return self.parameters, self.kept_step

    def save(self, phase: int, at: Mapping[str, Any] | None, arrays: Mapping[str, np.ndarray]) -> None:
        """Write the state that an interrupted job goes on from; `at`: where in the phase, None before its begin."""
        meta = {"kind": PROGRESS, "digest": self.digest, "phase": phase, "kept_step": self.kept_step, "at": at}
        write_checkpoint(self.progress, meta, arrays)


class LearningPhase:
    """A phase: rounds of acting and learning, a fresh optimiser and buffer, and what is recorded, validated and saved
    between rounds.
    """

    def __init__(self, run: Run, number: int) -> None:
        self.run, self.number, job = run, number, run.job
        self.settings, self.phase, self.problems = job.settings[number], job.spec.train_on[number], job.seen[number]
        settings, seed = self.settings, derive_seed(job.seed, "phase", number)
        self.online, self.target = job.network(), job.network()
        if run.parameters:
            load_module(self.online, run.parameters, job.paths.start or run.progress)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = Adam(self.online.parameters(), settings.learning_rate)
        self.replay = PrioritisedReplay(settings.buffer_size, settings.alpha, settings.eps)
        self.random = generator(seed, "replay")
        window = partial(NStep, settings.n_steps, settings.gamma)
        make = partial(
            Actor, settings=settings, window=window, problems=self.problems, scenarios=self.phase.scenarios, seed=seed
        )
        if settings.processes == 1:
            self.actors: Any = Actors(make, range(settings.actors), self.online.values)
        else:
            self.actors = ActorProcesses(make, settings.actors, settings.processes, job.network)
        self.step = self.updates = self.ended = self.recorded = self.validated = self.saved = 0
        self.sums = [0.0, 0.0, 0]  # since the last point of the curves: losses, values, gradient steps
        self.finished: list[Finished] = []
        self.best: dict[str, np.ndarray] = {}
        self.best_score, self.best_step = -math.inf, 0
        self.envs: dict[tuple[str, str], gym.Env] = {}

    def learn(self, kept: Checkpoint | None) -> tuple[dict[str, np.ndarray], int]:
        """Return the parameters kept, by name, and their step."""
        if kept is not None and kept.meta["at"] is not None:
            self._restore(kept)
        while self.step < self.phase.steps:
            self._round()
            self._between(over=self.step >= self.phase.steps)
        last = self.number == len(self.run.job.settings) - 1
        return (self.best, self.best_step) if last and self.best else (module_arrays(self.online), self.step)

    def close(self) -> None:
        """End the actors' processes."""
        self.actors.close()

    def _round(self) -> None:
        """Actors decide while the learner learns from what came before; then the buffer gets what they found."""
        settings = self.settings
        epsilons = [share_of_random_actions(settings, actor, self.step) for actor in range(settings.actors)]
        self.actors.begin(module_arrays(self.online) if settings.processes > 1 else {}, epsilons)
        if self.step >= settings.learning_starts and len(self.replay):
            for _ in range(settings.gradient_steps):
                self._update()
        rows = []
        for played in self.actors.finish():
            rows += played.rows
            self.finished += played.finished
            self.ended += len(played.finished)
        before, self.step = self.step, self.step + settings.actors * settings.train_freq
        if rows:
            columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
            with torch.no_grad():
                _, wrong = errors(self.online, self.target, columns, settings.double)
            self._require_finite(float(wrong.abs().sum()))
            self.replay.add(columns, wrong.numpy())
        if self.step // settings.target_update_interval > before // settings.target_update_interval:
            self.target.load_state_dict(self.online.state_dict())

    def _update(self) -> None:
        """Take a gradient step on decisions drawn by their errors, the Huber loss weighted against how often they are
        drawn.
        """
        settings, gone = self.settings, min(self.step / self.phase.steps, 1.0)
        places, weights, columns = self.replay.draw(
            self.random, settings.batch_size, settings.beta + gone * (settings.final_beta - settings.beta)
        )
        found, wrong = errors(self.online, self.target, columns, settings.double)
        losses = nn.functional.huber_loss(wrong, torch.zeros_like(wrong), reduction="none")
        loss = (torch.from_numpy(weights) * losses).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.optimizer.parameters, settings.max_grad_norm)
        if settings.learning_rate_schedule == "linear":
            self.optimizer.learning_rate = settings.learning_rate * (1 - gone)
        self.optimizer.step()
        self.replay.set_errors(places, wrong.detach().numpy())
        self.updates += 1
        self.sums = [self.sums[0] + float(loss.detach()), self.sums[1] + float(found.detach().mean()), self.sums[2] + 1]

    def _between(self, over: bool) -> None:
        settings = self.settings
        self._require_finite(self.sums[0])
        if over or self.step - self.recorded >= settings.record_every:
            self._record()
        if settings.validate_every and (over or self.step - self.validated >= settings.validate_every):
            self._validate()
        if not over and self.step - self.saved >= settings.save_every:
            self._save()

    def _require_finite(self, total: float) -> None:
        if not math.isfinite(total):
            raise UserError(
                f"errors of the network are not finite after {self.step} steps",
                where=f"{self.run.job.spec.name}.yaml: learner.learning_rate",
                expected="learning that does not diverge",
                remedy="lower the learning rate or scale the rewards down",
            )

    def _place(self, scenario: str = "") -> dict[str, Any]:
        return {
            "step": self.step,
            "episode": self.ended,
            "update": self.updates,
            "phase": self.number,
            "scenario": scenario,
        }

    def _record(self) -> None:
        """Give out means since the last point: of the episodes that ended, of loss and value."""
        finished, self.finished = self.finished, []
        for scenario in dict.fromkeys(episode.scenario for episode in finished):
            mine = [episode for episode in finished if episode.scenario == scenario]
            self.run.job.curve("return", float(np.mean([episode.total for episode in mine])), **self._place(scenario))
            self.run.job.curve(
                "episode_length", float(np.mean([episode.length for episode in mine])), **self._place(scenario)
            )
        (loss, value, count), self.sums = self.sums, [0.0, 0.0, 0]
        if count:
            self.run.job.curve("loss", loss / count, **self._place())
            self.run.job.curve("value", value / count, **self._place())
        shares = [share_of_random_actions(self.settings, actor, self.step) for actor in range(self.settings.actors)]
        self.run.job.curve("exploration_rate", float(np.mean(shares)), **self._place())
        self.recorded = self.step

    def _validate(self) -> None:
        """Score the greedy policy on validation units; keep its parameters where it is better than before."""
        policy, scores = QPolicy(self.online, self.settings.keep_to_masks), []
        for scenario in self.phase.scenarios:
            units = list(self.problems[scenario].units("validation"))
            if not units:
                where, remedy = f"{self.run.job.spec.name}.yaml: learner.validate_every", "set it to 0"
                raise UserError(f"scenario '{scenario}' has no validation units", where=where, remedy=remedy)
            count = min(self.settings.validation_units or len(units), len(units))
            chosen = [units[place * len(units) // count] for place in range(count)]
            scores.append(float(np.mean([self._total(policy, scenario, unit) for unit in chosen])))
            self.run.job.curve("return", scores[-1], **self._place(scenario), split="validation")
        if (score := float(np.mean(scores))) > self.best_score:
            self.best, self.best_score, self.best_step = module_arrays(self.online), score, self.step
        self.validated = self.step

    def _total(self, policy: QPolicy, scenario: str, unit: Unit) -> float:
        if (scenario, unit.id) not in self.envs:
            self.envs[scenario, unit.id] = stepped(self.problems[scenario], unit, unit.seed)
        return sum_of_rewards(self.envs[scenario, unit.id], policy, unit.seed)

    def _save(self) -> None:
        self.saved = self.step
        at = {
            "counters": [self.step, self.updates, self.ended, self.recorded, self.validated, self.saved],
            "sums": self.sums,
            "finished": [[episode.scenario, episode.total, episode.length] for episode in self.finished],
            "best": [self.best_score if self.best else 0.0, self.best_step],
            "random": self.random.bit_generator.state,
            "actors": self.actors.states(),
        }
        groups = {
            "online": module_arrays(self.online),
            "target": module_arrays(self.target),
            "adam": self.optimizer.arrays(),
            "replay": self.replay.arrays(),
            "policy": self.run.parameters,
            "best": self.best,
        }
        self.run.save(
            self.number,
            at,
            {f"{group}/{name}": array for group, arrays in groups.items() for name, array in arrays.items()},
        )

    def _restore(self, kept: Checkpoint) -> None:
        at = kept.meta["at"]
        load_module(self.online, kept.group("online"), kept.path)
        load_module(self.target, kept.group("target"), kept.path)
        self.optimizer.load(kept.group("adam"))
        self.replay.load(kept.group("replay"))
        self.random.bit_generator.state = at["random"]
        self.actors.restore(at["actors"])
        self.step, self.updates, self.ended, self.recorded, self.validated, self.saved = at["counters"]
        self.sums, self.finished = list(at["sums"]), [Finished(*values) for values in at["finished"]]
        self.best, (score, self.best_step) = kept.group("best"), at["best"]
        self.best_score = score if self.best else -math.inf


class QPolicy:
    """Takes the action of the highest value, among those that are valid if it keeps to masks."""

    def __init__(self, network: QNetwork, keep_to_masks: bool) -> None:
        self.network, self.keep_to_masks = network, keep_to_masks

    def reset(self, unit: Unit) -> None:
        """Begin a unit: nothing is remembered."""
        del unit

    def act(self, observation: Any, mask: Any = None) -> int:
        """Return the number of an action."""
        values = self.network.values({name: np.asarray(array)[None] for name, array in parts(observation).items()})
        if self.keep_to_masks and mask is not None:
            values = np.where(np.asarray(mask, dtype=bool), values, -np.inf)
        return int(np.argmax(values))


class PrioritisedDQNLearner:
    """Learns on the training units of problems; resumes bit for bit.

    settings     typed values where a study adds its own (a class on PrioritisedDQNSettings; those added stay the same
                 in all phases)
    make_reader  (settings, observation space) -> a torch module that turns observations (a tensor, or a dictionary of
                 them by the names of their parts; rows first) into features (rows, features_dim), and tells
                 `features_dim`, as Stable-Baselines3's do
    """

    algorithm = "prioritised_dqn"

    def __init__(
        self, settings: type[PrioritisedDQNSettings] = PrioritisedDQNSettings, make_reader: MakeReader = vector_reader
    ) -> None:
        self.settings, self.make_reader = settings, make_reader

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Learn phase after phase and write the parameters that are kept.

        Raises UserError where actions are not numbered, scenarios do not fit one another, a scenario has nothing to
        step or to validate on, a phase changes the policy itself, and where learning diverges.
        """
        use_one_thread()
        settings = phase_settings(self.settings, spec)
        seen = [
            {name: self.seen(problems[name], own) for name in phase.scenarios}
            for own, phase in zip(settings, spec.train_on, strict=True)
        ]
        envs = {name: first_environment(name, problem, ("train",)) for each in seen for name, problem in each.items()}
        spaces = common_spaces(envs)
        if not isinstance(spaces[1], gym.spaces.Discrete) or spaces[1].start != 0:
            what, first = f"a Q-network cannot choose {told(spaces[1])}", next(iter(envs))
            raise UserError(what, where=f"scenario {first}", expected="actions numbered from 0")
        start = read_checkpoint(paths.start, KIND).group("policy") if paths.start is not None else {}
        run = Run(Job(settings, seen, partial(self._network, settings[0], spaces), spec, seed, curve, paths, start))
        parameters, kept = run.learn()
        whole = of_policy(validate(self.settings, spec.params))
        meta = {"kind": KIND, "settings": whole, "kept_step": kept, **told_spaces(spaces)}
        write_checkpoint(paths.checkpoint, meta, {f"policy/{name}": array for name, array in parameters.items()})

    def load(self, checkpoint: Path, problem: Problem) -> QPolicy:
        """Return the learned policy. Raises UserError where it was learned for other observations or actions."""
        use_one_thread()
        kept = read_checkpoint(checkpoint, KIND)
        settings = validate(
            self.settings, kept.meta["settings"], lambda path: f"{checkpoint}: settings.{'.'.join(map(str, path))}"
        )
        env = first_environment("to act in", self.seen(problem, settings), ANY_SPLIT)
        spaces = (env.observation_space, env.action_space)
        require_spaces(spaces, kept.meta, str(checkpoint))
        with torch_stream(0, "prioritised-dqn", "build"):
            network = self._network(settings, spaces)
        load_module(network, kept.group("policy"), checkpoint)
        return QPolicy(network.train(False), settings.keep_to_masks)

    def seen(self, problem: Problem, settings: PrioritisedDQNSettings) -> Problem:
        """Return what is learned on where a problem is given: itself. A study's learner may leave out units or show
        something else.
        """
        del settings
        return problem

    def _network(self, settings: PrioritisedDQNSettings, spaces: tuple[gym.Space, gym.Space]) -> QNetwork:
        reader = self.make_reader(settings, spaces[0])
        return QNetwork(
            reader, int(cast(gym.spaces.Discrete, spaces[1]).n), settings, isinstance(spaces[0], gym.spaces.Dict)
        )
