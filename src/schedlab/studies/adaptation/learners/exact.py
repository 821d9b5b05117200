"""The exact learner: it computes the expected reward and its gradient over the tables of all scenarios, unsampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module, module_arrays
from schedlab.learning.job import Pace
from schedlab.learning.policy_gradient import descend
from schedlab.studies.adaptation.learners.network_policy import (
    Batch,
    NetworkLearner,
    NetworkLearning,
    batches_of,
    greedy_sequences,
)
from schedlab.studies.adaptation.learners.settings import ExactSettings

_CURVES = ("objective", "reward", "accuracy", "probability_best", "regret")
SAVE_EVERY = 50  # updates between two states that an interrupted job resumes from


class _Learning(NetworkLearning):
    """Gradient ascent until the policy takes every scenario's best sequence with confidence, or the steps are used up.

    sure     whether the policy takes every best sequence with confidence
    reached  mean scaled reward of the best update of the phase
    best     parameters of that update; a phase that does not end with confidence ends with these parameters
    """

    def begin(self, phase: int) -> Pace:
        """Look up all trainings and begin with a fresh optimiser; the policy is evaluated again after the last step."""
        self.settings, groups = self.of_phase[phase]
        for group in groups:
            self.trainings.look_up(group.scenario, group.rows, np.arange(group.reward.size))
        self.job.budget.trainings = self.trainings.count
        self.batches = batches_of(groups, self.encoding)
        self.scaled = [
            torch.from_numpy(np.stack([_scaled(group.reward) for group in batch.groups])) for batch in self.batches
        ]
        self.optimizer = Adam(self.network.parameters(), self.settings.learning_rate)
        self.reached, self.best, self.sure = -np.inf, dict[str, np.ndarray](), False
        self.steps = self.job.spec.train_on[phase].steps
        return Pace(self.steps + 1, SAVE_EVERY)

    def step(self, phase: int, update: int) -> bool:
        """Evaluate the policy and, unless it is sure, take a gradient step; return whether it is sure."""
        del phase
        loss, reached, self.sure = self._evaluate(update)
        if reached > self.reached:
            self.reached, self.best = reached, module_arrays(self.network)
        if not self.sure and update < self.steps:
            descend(self.optimizer, loss)
        return self.sure

    def end(self, phase: int) -> None:
        """Restore the best parameters of the phase, unless the policy is sure."""
        del phase
        if not self.sure:
            load_module(self.network, self.best, self.job.progress)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return parameters, the best ones so far, the optimiser's memory and the trainings looked up."""
        groups = {"network": module_arrays(self.network), "best": self.best, "optimizer": self.optimizer.arrays()}
        values = {"reached": self.reached if self.best else None, "sure": self.sure}
        return values, grouped(groups | {"trainings": self.trainings.seen})

    def load(self, kept: Checkpoint) -> None:
        """Restore what `state` returned."""
        load_module(self.network, kept.group("network"), kept.path)
        self.optimizer.load(kept.group("optimizer"))
        self.best, self.trainings.seen = kept.group("best"), kept.group("trainings")
        self.reached, self.sure = kept.meta["reached"] if self.best else -np.inf, kept.meta["sure"]

    def _evaluate(self, update: int) -> tuple[torch.Tensor, float, bool]:
        """Return the loss, the mean scaled reward of the greedy policy (at most 0), and whether the policy is sure."""
        weight = self.settings.entropy * self.settings.entropy_decay**update
        losses, reached, sure = [], [], True
        for batch, scaled in zip(self.batches, self.scaled, strict=True):
            logs = batch.log_probabilities(self.network)
            whole = logs[:, batch.tree.states, batch.tree.choices].sum(-1)
            losses.append(_loss(whole, scaled, weight if weight > self.settings.settle else 0.0))
            chosen = greedy_sequences(batch.tree, logs.detach().numpy())
            chances = whole.detach().exp().numpy()
            rows = np.arange(len(chosen))
            reached.append(scaled.numpy()[rows, chosen])
            sure = sure and bool((reached[-1] == 0).all() and (chances[rows, chosen] >= self.settings.confidence).all())
            self._record(update, batch, chances, chosen)
        return torch.cat(losses).mean(), float(np.concatenate(reached).mean()), sure

    def _record(self, update: int, batch: Batch, chances: np.ndarray, chosen: np.ndarray) -> None:
        """Record a point of each scenario, the mean of its groups."""
        if update % self.settings.record_every:
            return
        points: dict[str, list[tuple[float, ...]]] = {}
        for group, share, greedy in zip(batch.groups, chances, chosen, strict=True):
            best, reward = int(group.reward.argmax()), group.reward[greedy]
            regret = group.reward[best] - reward
            values = share @ group.reward, reward, group.accuracy[greedy], share[best], regret
            points.setdefault(group.scenario, []).append(values)
        for scenario, found in points.items():
            means = zip(_CURVES, np.mean(found, axis=0), strict=True)
            finite = {metric: value for metric, value in means if np.isfinite(value)}
            self.job.record(finite, step=update, update=update, scenario=scenario)


def _loss(whole: torch.Tensor, scaled: torch.Tensor, weight: float) -> torch.Tensor:
    """Return the loss of each group from the sequences' log-probabilities and scaled rewards (both groups, sequences).

    With an entropy weight, the loss is the negative sum of expected reward and weighted entropy, divided by the weight,
    so that the gradient keeps its size while the weight falls. Without one, the loss is -log of the best sequences'
    probability, the limit of the expectation of an ever sharper utility: the gradient of the plain expectation nearly
    vanishes once the policy has settled on the second best sequence.
    """
    if weight > 0:
        chances = whole.exp()
        return (chances * whole).sum(-1) - (chances * scaled).sum(-1) / weight
    return -whole.masked_fill(scaled < 0, -torch.inf).logsumexp(-1)


def _scaled(reward: np.ndarray) -> np.ndarray:
    """Return rewards with the best at 0 and a standard deviation of 1, so that every scenario has the same weight."""
    spread = float(reward.std())
    return ((reward - reward.max()) / (spread if spread > 0 else 1.0)).astype(np.float32)


class ExactLearner(NetworkLearner):
    """Learns a policy network from the exact gradient. The seed only affects the first parameters.

    Its budget contains every training of the tables, and no episode.
    """

    settings = ExactSettings
    learning = _Learning
