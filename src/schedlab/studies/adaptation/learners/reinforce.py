"""REINFORCE over the table (Williams 1992), as in the published system or with a baseline and an entropy bonus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module, module_arrays
from schedlab.learning.job import Pace
from schedlab.learning.policy_gradient import MovingMean, cooled, descend, entropy, normalised
from schedlab.studies.adaptation.learners.network_policy import (
    Batch,
    Group,
    NetworkLearner,
    NetworkLearning,
    batches_of,
)
from schedlab.studies.adaptation.learners.policy_network import PolicyNetwork
from schedlab.studies.adaptation.learners.settings import ReinforceSettings

_BLOCK = 1024  # episodes whose random numbers are drawn together, so that checkpoints need no generator state
_CURVES = ("objective", "reward", "accuracy", "probability_best")


class _Learning(NetworkLearning):
    """The network with its optimiser, the scenarios' baselines, and a value of each curve for each episode so far."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        for settings, groups in self.of_phase:
            for group in groups:
                _check_returns(group, settings)
        self.drawn: tuple[tuple[int, int], np.ndarray] = ((-1, -1), np.zeros(0))

    def begin(self, phase: int) -> Pace:
        """Begin with a fresh optimiser, baselines and curves."""
        self.settings, self.groups = self.of_phase[phase]
        self.steps = self.job.spec.train_on[phase].steps
        self.optimizer = Adam(self.network.parameters(), self.settings.learning_rate)
        self.baselines = [MovingMean() for _ in self.groups]
        self.curves = {name: np.zeros(self.steps) for name in _CURVES}
        self.batches: dict[tuple[int, ...], list[tuple[Batch, list[int]]]] = {}
        each = self.settings.episodes_per_update
        return Pace(-(-self.steps // each), max(self.settings.save_every // each, 1))

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return parameters, the optimiser's memory, baselines, curves and the trainings looked up."""
        groups = {"network": module_arrays(self.network), "optimizer": self.optimizer.arrays(), "curve": self.curves}
        groups["trainings"] = self.trainings.seen
        return {"baselines": [[mean.keep, mean.total, mean.weight] for mean in self.baselines]}, grouped(groups)

    def load(self, kept: Checkpoint) -> None:
        """Restore what `state` returned."""
        load_module(self.network, kept.group("network"), kept.path)
        self.optimizer.load(kept.group("optimizer"))
        self.curves, self.trainings.seen = kept.group("curve"), kept.group("trainings")
        self.baselines = [MovingMean(*values) for values in kept.meta["baselines"]]

    def step(self, phase: int, update: int) -> None:
        """Sample episodes of the groups in turn, and take one gradient step."""
        settings, groups = self.settings, self.groups
        first = update * settings.episodes_per_update
        episodes = np.arange(first, min(first + settings.episodes_per_update, self.steps))
        of_group = episodes % len(groups)
        uniforms = self._uniforms(phase, episodes)
        tau = cooled(settings.temperature, settings.temperature_factor, settings.temperature_every, first)
        losses = []
        for batch, places in self._batches(tuple(sorted(set(of_group.tolist())))):
            mine = np.flatnonzero(np.isin(of_group, places))
            local = np.searchsorted(places, of_group[mine])
            logs = _log_probabilities(batch, self.network, settings, tau)
            sampled = _Sampled.draw(logs, batch, local, uniforms[mine])
            losses.append(self._loss(sampled, of_group[mine], episodes[mine]) * (len(mine) / len(episodes)))
        fallen = settings.learning_rate * settings.learning_rate_factor ** (first // settings.learning_rate_every)
        self.optimizer.learning_rate = max(fallen, settings.minimum_learning_rate)
        descend(self.optimizer, sum(losses))
        self.job.budget.episodes += len(episodes)
        self.job.budget.trainings = self.trainings.count
        for episode in episodes.tolist():
            self._record(episode)

    def _record(self, episode: int) -> None:
        """Record the means of `record_every` episodes of a scenario once the last of them has ended."""
        settings, count = self.settings, len(self.groups)
        turn, place = divmod(episode, count)
        if (turn + 1) % settings.record_every and episode + count < self.steps:
            return
        begin = turn // settings.record_every * settings.record_every * count + place
        values = {name: float(self.curves[name][begin : episode + 1 : count].mean()) for name in _CURVES}
        finite = {name: value for name, value in values.items() if np.isfinite(value)}
        update = episode // settings.episodes_per_update + 1
        scenario = self.groups[place].scenario
        self.job.record(finite, step=episode + 1, episode=episode + 1, update=update, scenario=scenario)

    def _loss(self, sampled: _Sampled, of_group: np.ndarray, episodes: np.ndarray) -> torch.Tensor:
        settings, groups = self.settings, self.groups
        for place in np.unique(of_group):
            self.trainings.look_up(groups[place].scenario, groups[place].rows, sampled.sequences[of_group == place])
        self.job.budget.decisions += sampled.taken.numel()
        reward = np.array([groups[g].reward[s] for g, s in zip(of_group, sampled.sequences, strict=True)])
        advantage = self._advantage(_returns(reward, settings), of_group)
        objective = -sampled.taken.mean(-1) * torch.from_numpy(advantage.astype(np.float32))
        accuracy = [groups[g].accuracy[s] for g, s in zip(of_group, sampled.sequences, strict=True)]
        best = sampled.probability([int(groups[g].reward.argmax()) for g in of_group])
        for name, values in zip(_CURVES, (objective.detach().numpy(), reward, accuracy, best), strict=True):
            self.curves[name][episodes] = values
        loss = objective.mean()
        return loss - settings.entropy * sampled.entropies().mean() if settings.entropy else loss

    def _advantage(self, returns: np.ndarray, of_group: np.ndarray) -> np.ndarray:
        """Return the returns minus the moving baseline of their group, which is at first the mean of these returns."""
        advantage = returns.copy()
        if self.settings.baseline == "moving":
            for group in np.unique(of_group):
                mean, own = self.baselines[group], of_group == group
                advantage[own] -= mean.value if mean.weight else returns[own].mean()
                mean.update(returns[own])
        return normalised(advantage) if self.settings.normalise else advantage

    def _uniforms(self, phase: int, episodes: np.ndarray) -> np.ndarray:
        """Return random numbers (episodes, decisions), which an interruption of the job does not change."""
        width = max(group.tree.decisions for group in self.groups)
        blocks = range(episodes[0] // _BLOCK, episodes[-1] // _BLOCK + 1)
        drawn = np.concatenate([self._block(phase, block, width) for block in blocks])
        return drawn[episodes - blocks[0] * _BLOCK]

    def _block(self, phase: int, block: int, width: int) -> np.ndarray:
        if self.drawn[0] != (phase, block):
            rng = generator(self.job.seed, "policy-sample", phase, block)
            self.drawn = ((phase, block), rng.random((_BLOCK, width)))
        return self.drawn[1]

    def _batches(self, places: tuple[int, ...]) -> list[tuple[Batch, list[int]]]:
        """Return the batches of some groups of a phase, each with the positions of its groups in the phase."""
        known, groups = self.batches, self.groups
        if places not in known:
            known[places] = []
            for tree in dict.fromkeys(groups[place].tree for place in places):
                same = [place for place in places if groups[place].tree == tree]
                known[places].append((batches_of([groups[place] for place in same], self.encoding)[0], same))
        return known[places]


@dataclass(frozen=True)
class _Sampled:
    """Sampled episodes of one batch.

    sequences  (episodes,) numbers of the sequences
    taken      (episodes, decisions) log-probabilities of the actions taken
    logs       (groups, prefixes, actions) log-probabilities of all actions
    local      (episodes,) number of each episode's group in the batch
    """

    sequences: np.ndarray
    taken: torch.Tensor
    logs: torch.Tensor
    local: np.ndarray
    batch: Batch

    @classmethod
    def draw(cls, logs: torch.Tensor, batch: Batch, local: np.ndarray, uniforms: np.ndarray) -> _Sampled:
        """Draw one episode for each row of `uniforms`, in group number `local` of the batch."""
        tree = batch.tree
        bounds = logs.detach().numpy().astype(float)
        bounds = np.exp(bounds).cumsum(-1)[..., :-1]
        chosen, first = np.zeros(len(local), dtype=int), 0
        for step in range(tree.decisions):
            action = (uniforms[:, step, None] >= bounds[local, first + chosen]).sum(-1)
            chosen = chosen * tree.actions + action
            first += tree.actions**step
        return cls(chosen, logs[local[:, None], tree.states[chosen], tree.choices[chosen]], logs, local, batch)

    def entropies(self) -> torch.Tensor:
        """Return the entropy of the policy in each state of the episodes: (episodes, decisions)."""
        return entropy(self.logs)[self.local[:, None], self.batch.tree.states[self.sequences]]

    def probability(self, sequences: list[int]) -> np.ndarray:
        """Return the probability of each sequence (one for each episode) in the episode's group: (episodes,)."""
        tree = self.batch.tree
        logs = self.logs.detach().numpy()[self.local[:, None], tree.states[sequences], tree.choices[sequences]]
        return np.exp(logs.sum(-1))


def _log_probabilities(batch: Batch, network: PolicyNetwork, settings: ReinforceSettings, tau: float) -> torch.Tensor:
    """Return the log-probabilities from which episodes are sampled: (groups, prefixes, actions)."""
    logits = batch.logits(network)
    if tau <= 1:
        return logits.log_softmax(-1)
    if settings.temperature_on == "logits":
        return (logits / tau).log_softmax(-1)
    return (logits.softmax(-1) / tau).log_softmax(-1)


def _returns(reward: np.ndarray, settings: ReinforceSettings) -> np.ndarray:
    """Return the returns of episodes, computed from their rewards in the table."""
    return reward if settings.returns == "plain" else 100 * np.tan(reward * np.pi / 2)


def _check_returns(group: Group, settings: ReinforceSettings) -> None:
    if settings.returns == "tangent" and not (group.reward.min() >= 0 and group.reward.max() < 1):
        what = "returns: tangent needs an accuracy as reward"
        expected = "rewards from 0 to below 1"
        remedy = "set reward.metric: accuracy, or returns: plain"
        raise UserError(what, where=f"learner.returns (scenario {group.scenario})", expected=expected, remedy=remedy)


class ReinforceLearner(NetworkLearner):
    """Learns a policy network from sampled episodes."""

    settings = ReinforceSettings
    learning = _Learning
