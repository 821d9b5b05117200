"""Deep Q-learning with the parts of Ape-X: double targets, dueling heads, n-step returns, prioritised replay, several
actors.

Source: Horgan et al. 2018, "Distributed prioritized experience replay", arXiv:1803.00933, but in rounds instead of
asynchronously: every actor takes some decisions with the parameters from the start of the round, while the learner
takes gradient steps on earlier decisions. So the same seed and number of actors give the same bytes for any number of
processes, interrupted or not.

The memory is in learning/replay_memory.py; actors play in actors.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Problem, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import (
    Checkpoint,
    grouped,
    load_module,
    module_arrays,
    write_checkpoint,
)
from schedlab.learning.environments import EnvironmentLearner, common_spaces, first_environment, told, told_spaces
from schedlab.learning.episode_streams import Finished
from schedlab.learning.job import LearningJob, Pace
from schedlab.learning.networks import ACTIVATIONS, layers
from schedlab.learning.prioritised_dqn.actors import WHOLE, Actor, ActorProcesses, Actors, Rows, parts
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings, of_policy, phase_mistakes
from schedlab.learning.replay_memory import PrioritisedReplay
from schedlab.learning.seeding import torch_stream, use_one_thread
from schedlab.learning.settings import phase_settings
from schedlab.learning.validation import Validation, record_finished

if TYPE_CHECKING:
    from schedlab.learning.environments import Spaces

KIND = "prioritised-dqn"
MakeReader = Callable[[Any, gym.Space[Any]], nn.Module]  # (settings, observation space) -> module with `features_dim`


def vector_reader(settings: PrioritisedDQNSettings, space: gym.Space[Any]) -> nn.Module:
    """Return a reader for observations that are vectors, which it returns unchanged. Raises UserError for observations
    in parts, for which a study must provide a reader.
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
    """Network for the values of all actions (rows, A): a reader of observations, shared layers, and one head or two
    (Wang et al. 2016, equation 9).
    """

    def __init__(
        self, reader: nn.Module, actions: int, settings: PrioritisedDQNSettings, in_parts: bool = False
    ) -> None:
        super().__init__()
        self.reader, self._in_parts = reader, in_parts
        activation = ACTIVATIONS[settings.activation]
        self.shared = layers(reader.features_dim, settings.net_arch, None, activation)
        width = settings.net_arch[-1] if settings.net_arch else reader.features_dim
        self.advantage = layers(width, settings.head_arch, actions, activation)
        self.value = layers(width, settings.head_arch, 1, activation) if settings.dueling else None

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the values for observations, which are given by the names of their parts."""
        hidden = self.shared(self.reader(dict(observations) if self._in_parts else observations[WHOLE]))
        advantage = self.advantage(hidden)
        return advantage if self.value is None else self.value(hidden) + advantage - advantage.mean(dim=1, keepdim=True)

    def values(self, observation: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the values (A,) of one observation, given as a batch of one row."""
        with torch.inference_mode():
            found: np.ndarray = self({name: torch.from_numpy(row) for name, row in observation.items()})[0].numpy()
        return found

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Load parameters by name. Raises UserError if they belong to another network or are not finite."""
        load_module(self, arrays, "the learner's parameters")


def tensors(columns: Mapping[str, np.ndarray], group: str) -> dict[str, torch.Tensor]:
    """Return the parts of the observations stored under a group's name."""
    return {
        name.removeprefix(f"{group}/"): torch.from_numpy(rows)
        for name, rows in columns.items()
        if name.startswith(f"{group}/")
    }


@torch.no_grad()
def targets(online: nn.Module, target: nn.Module, columns: Mapping[str, np.ndarray], double: bool) -> torch.Tensor:
    """Return the targets (rows,) of the values of the actions taken: n rewards, and the discounted value of the best
    valid action after them.

    double: the learning network selects the best action, and the target network gives its value (van Hasselt et al.
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
    """Return (values of the actions taken, values minus targets), each (rows,)."""
    taken = torch.from_numpy(columns["action"])[:, None]
    found = online(tensors(columns, "observation")).gather(1, taken)[:, 0]
    return found, found - targets(online, target, columns, double)


def share_of_random_actions(settings: PrioritisedDQNSettings, actor: int, step: int) -> float:
    """Return an actor's share of random actions, epsilon, at a decision of the phase; actors are counted from 0."""
    if settings.exploration == "by_actor":
        return float(settings.base_epsilon ** (1 + settings.epsilon_alpha * actor / max(settings.actors - 1, 1)))
    gone = min(step / settings.exploration_steps, 1.0)
    return settings.initial_epsilon + gone * (settings.final_epsilon - settings.initial_epsilon)


class NStep:
    """Sums the rewards of n decisions. A decision is returned after n rewards, with the observation and the discount at
    that point.
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
        """Return the decisions that are now complete. At the end of an episode, all are, with fewer rewards. After a
        termination the discount is 0, so the following observation does not count.
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


class Rounds:
    """The phases of a job, each with a new optimiser and memory. An update is a round: actors decide, and the learner
    takes gradient steps. Between rounds, metrics are recorded and the policy is validated.

    seen        scenario -> problem on which a phase learns, for each phase
    parameters  parameters kept so far, by name; kept_step: the step of their phase at which they were kept
    """

    def __init__(
        self,
        job: LearningJob,
        settings: Sequence[PrioritisedDQNSettings],
        seen: Sequence[Mapping[str, Problem]],
        network: Callable[[], QNetwork],
    ) -> None:
        self.job, self.of_phase, self.seen, self.network = job, settings, seen, network
        parent = job.parent()
        self.parameters: dict[str, np.ndarray] = parent.group("policy") if parent else {}
        self.kept_step = 0
        self.actors: Any = None

    def begin(self, phase: int) -> Pace:
        """Create networks, memory and actors."""
        self.settings, problems, of_phase = self.of_phase[phase], self.seen[phase], self.job.spec.train_on[phase]
        settings, seed, self.steps = self.settings, derive_seed(self.job.seed, "phase", phase), of_phase.steps
        with torch_stream(seed, "prioritised-dqn"):
            self.online, self.target = self.network(), self.network()
        if self.parameters:
            load_module(self.online, self.parameters, self.job.paths.start or self.job.progress)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = Adam(self.online.parameters(), settings.learning_rate)
        self.replay = PrioritisedReplay(settings.buffer_size, settings.alpha, settings.eps)
        self.random = generator(seed, "replay")
        window = partial(NStep, settings.n_steps, settings.gamma)
        make = partial(
            Actor, settings=settings, window=window, problems=problems, scenarios=of_phase.scenarios, seed=seed
        )
        if settings.processes == 1:
            self.actors = Actors(make, range(settings.actors), self.online.values)
        else:
            self.actors = ActorProcesses(make, settings.actors, settings.processes, self.network)
        self.step_number = self.updates = self.ended = self.recorded = self.validated = 0
        self.sums = [0.0, 0.0, 0]  # since the last point of the curves: losses, values, gradient steps
        self.finished: list[Finished] = []
        self.validation = Validation(self.job, problems, of_phase.scenarios, settings)
        each = settings.actors * settings.train_freq
        return Pace(-(-self.steps // each), -(-settings.save_every // each))

    def step(self, phase: int, update: int) -> None:
        """Run a round; record and validate when these are due."""
        del phase, update
        settings = self.settings
        self._round()
        over = self.step_number >= self.steps
        self._require_finite(self.sums[0])
        if over or self.step_number - self.recorded >= settings.record_every:
            self._record()
        if settings.validate_every and (over or self.step_number - self.validated >= settings.validate_every):
            policy = QPolicy(self.online, settings.keep_to_masks)
            self.validation.judge(policy, lambda: module_arrays(self.online), self._place())
            self.validated = self.step_number

    def end(self, phase: int) -> None:
        """Select the last parameters or, after the last phase, those that were best on validation."""
        self.close()
        best = self.validation if phase == len(self.of_phase) - 1 else None
        self.parameters = best.best if best and best.best else module_arrays(self.online)
        self.kept_step = best.best_step if best and best.best else self.step_number

    def close(self) -> None:
        """End the actors' processes."""
        if self.actors is not None:
            self.actors.close()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return networks, optimiser, memory, actors and counters."""
        meta = {
            "kept_step": self.kept_step,
            "counters": [self.step_number, self.updates, self.ended, self.recorded, self.validated],
            "sums": self.sums,
            "finished": [[episode.scenario, episode.total, episode.length] for episode in self.finished],
            "validation": self.validation.state(),
            "random": self.random.bit_generator.state,
            "actors": self.actors.states(),
        }
        groups = {
            "online": module_arrays(self.online),
            "target": module_arrays(self.target),
            "adam": self.optimizer.arrays(),
            "replay": self.replay.arrays(),
            "policy": self.parameters,
            "best": self.validation.best,
        }
        return meta, grouped(groups)

    def load(self, kept: Checkpoint) -> None:
        """Restore a state that `state` returned."""
        meta = kept.meta
        load_module(self.online, kept.group("online"), kept.path)
        load_module(self.target, kept.group("target"), kept.path)
        self.optimizer.load(kept.group("adam"))
        self.replay.load(kept.group("replay"))
        self.random.bit_generator.state = meta["random"]
        self.actors.restore(meta["actors"])
        self.step_number, self.updates, self.ended, self.recorded, self.validated = meta["counters"]
        self.sums, self.finished = list(meta["sums"]), [Finished(*values) for values in meta["finished"]]
        self.validation.load(meta["validation"], kept.group("best"))
        self.kept_step, self.parameters = meta["kept_step"], kept.group("policy")

    def _round(self) -> None:
        """Let actors decide while the learner learns from earlier decisions; then add their decisions to the memory."""
        settings = self.settings
        epsilons = [share_of_random_actions(settings, actor, self.step_number) for actor in range(settings.actors)]
        self.actors.begin(module_arrays(self.online) if settings.processes > 1 else {}, epsilons)
        if self.step_number >= settings.learning_starts and len(self.replay):
            for _ in range(settings.gradient_steps):
                self._update()
        rows = []
        for played in self.actors.finish():
            rows += played.rows
            self.finished += played.finished
            self.ended += len(played.finished)
            self.job.budget.episodes += len(played.finished)
        before, self.step_number = self.step_number, self.step_number + settings.actors * settings.train_freq
        self.job.budget.decisions += self.step_number - before
        if rows:
            columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
            with torch.no_grad():
                _, wrong = errors(self.online, self.target, columns, settings.double)
            self._require_finite(float(wrong.abs().sum()))
            self.replay.add(columns, wrong.numpy())
        if self.step_number // settings.target_update_interval > before // settings.target_update_interval:
            self.target.load_state_dict(self.online.state_dict())

    def _update(self) -> None:
        """Take a gradient step on decisions drawn by their errors. Weights on the Huber loss correct for the
        probabilities of the draws.
        """
        settings, gone = self.settings, min(self.step_number / self.steps, 1.0)
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

    def _require_finite(self, total: float) -> None:
        self.job.require_finite(total, "errors of the network", self.step_number)

    def _place(self) -> dict[str, Any]:
        return {"step": self.step_number, "episode": self.ended, "update": self.updates}

    def _record(self) -> None:
        """Record means since the last point: of finished episodes, and of loss and value."""
        finished, self.finished = self.finished, []
        record_finished(self.job, finished, self._place())
        (loss, value, count), self.sums = self.sums, [0.0, 0.0, 0]
        shares = [
            share_of_random_actions(self.settings, actor, self.step_number) for actor in range(self.settings.actors)
        ]
        values = {"loss": loss / count, "value": value / count} if count else {}
        self.job.record({**values, "exploration_rate": float(np.mean(shares))}, **self._place())
        self.recorded = self.step_number


class QPolicy:
    """Takes the action with the highest value, only among valid ones if it respects masks."""

    def __init__(self, network: QNetwork, keep_to_masks: bool) -> None:
        self.network, self.keep_to_masks = network, keep_to_masks

    def reset(self, unit: Unit) -> None:
        """Begin a unit. The policy has no memory, so nothing is done."""
        del unit

    def act(self, observation: Any, mask: Any = None) -> int:
        """Return the number of an action."""
        values = self.network.values({name: np.asarray(array)[None] for name, array in parts(observation).items()})
        if self.keep_to_masks and mask is not None:
            values = np.where(np.asarray(mask, dtype=bool), values, -np.inf)
        return int(np.argmax(values))


class PrioritisedDQNLearner(EnvironmentLearner):
    """Learns on the training units of problems. A resumed job gives exactly the same result.

    settings     type of the settings, if a study adds keys (a subclass of PrioritisedDQNSettings; added keys have the
                 same values in all phases)
    make_reader  (settings, observation space) -> a torch module that turns observations (a tensor, or a dictionary of
                 tensors by the names of their parts; rows first) into features (rows, features_dim), and has the
                 attribute `features_dim`, as in Stable-Baselines3
    """

    kind, algorithm = KIND, "prioritised_dqn"
    settings: type[PrioritisedDQNSettings]

    def __init__(
        self, settings: type[PrioritisedDQNSettings] = PrioritisedDQNSettings, make_reader: MakeReader = vector_reader
    ) -> None:
        self.settings, self.make_reader = settings, make_reader

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn phase after phase, write the selected parameters, and return the budget used.

        Raises UserError if actions are not numbered, if scenarios have different spaces, if a scenario has no
        environment or no validation units, if a phase changes the policy itself, and if learning diverges.
        """
        use_one_thread()
        self.check(problems, spec)
        settings = phase_settings(self.settings, spec, phase_mistakes)
        seen = [
            {name: self.seen(problems[name], own) for name in phase.scenarios}
            for own, phase in zip(settings, spec.train_on, strict=True)
        ]
        envs = {name: first_environment(name, problem, ("train",)) for each in seen for name, problem in each.items()}
        spaces = common_spaces(envs)
        if not isinstance(spaces[1], gym.spaces.Discrete) or spaces[1].start != 0:
            what, first = f"a Q-network cannot choose {told(spaces[1])}", next(iter(envs))
            raise UserError(what, where=f"scenario {first}", expected="actions numbered from 0")
        job = LearningJob(KIND, [of_policy(each) for each in settings], spec, seed, paths, curve)
        rounds = Rounds(job, settings, seen, partial(self._network, settings[0], spaces))
        try:
            job.run(rounds)
        finally:
            rounds.close()
        whole = of_policy(validate(self.settings, spec.params))
        meta = {"kind": KIND, "settings": whole, "kept_step": rounds.kept_step, **told_spaces(spaces)}
        write_checkpoint(paths.checkpoint, meta, grouped({"policy": rounds.parameters}))
        return job.budget

    def policy(self, kept: Checkpoint, settings: Any, spaces: Spaces) -> QPolicy:
        """Return the policy of a checkpoint."""
        with torch_stream(0, "prioritised-dqn", "build"):
            network = self._network(settings, spaces)
        load_module(network, kept.group("policy"), kept.path)
        return QPolicy(network.train(False), settings.keep_to_masks)

    def _network(self, settings: PrioritisedDQNSettings, spaces: Spaces) -> QNetwork:
        reader = self.make_reader(settings, spaces[0])
        return QNetwork(
            reader, int(cast(gym.spaces.Discrete, spaces[1]).n), settings, isinstance(spaces[0], gym.spaces.Dict)
        )
