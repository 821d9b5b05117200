"""The exact learner: expected reward and its gradient over the whole table, all scenarios jointly, nothing sampled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec
from schedlab.config.schema import validate
from schedlab.learning.adam import Adam
from schedlab.learning.job import LearningJob
from schedlab.learning.policy_gradient import descend
from schedlab.learning.seeding import use_one_thread
from schedlab.learning.settings import phase_settings
from schedlab.studies.adaptation.learners.network_policy import (
    POLICY_KIND,
    Batch,
    NetworkPolicy,
    batches_of,
    greedy_sequences,
    groups_of,
    load_policy,
    save_network,
    start_network,
)
from schedlab.studies.adaptation.learners.policy_network import PolicyNetwork
from schedlab.studies.adaptation.learners.settings import ExactSettings, network_mistakes
from schedlab.studies.adaptation.learners.trainings import Trainings
from schedlab.studies.adaptation.problem import AdaptationProblem

_CURVES = ("objective", "reward", "accuracy", "probability_best", "regret")


class ExactLearner:
    """Learns a policy network from the exact gradient; the seed matters through the first parameters alone."""

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn phase after phase and write the final parameters; an interrupted job (seconds) starts again.

        Returns the budget used: every training of the tables, and no episode.
        """
        use_one_thread()
        settings = validate(ExactSettings, spec.params)
        of_phase = phase_settings(ExactSettings, spec, network_mistakes)
        network, encoding = start_network(settings, problems, seed, paths)
        job, trainings = LearningJob(POLICY_KIND, {}, spec, seed, paths, curve), Trainings(problems)
        for job.phase, phase in enumerate(spec.train_on):
            groups = groups_of(problems, phase.scenarios, settings.slope)
            for group in groups:
                trainings.look_up(group.scenario, group.rows, np.arange(group.reward.size))
            job.budget.trainings = trainings.count
            _Phase(network, batches_of(groups, encoding), of_phase[job.phase], job).run(phase.steps)
        save_network(paths, settings, network, encoding, problems)
        return job.budget

    def load(self, checkpoint: Path, problem: AdaptationProblem) -> NetworkPolicy:
        """Return the learned policy."""
        return load_policy(checkpoint, problem)


class _Phase:
    def __init__(self, network: PolicyNetwork, batches: list[Batch], settings: ExactSettings, job: LearningJob) -> None:
        self.network, self.batches, self.settings, self.job = network, batches, settings, job
        self.optimizer = Adam(network.parameters(), settings.learning_rate)
        self.scaled = [
            torch.from_numpy(np.stack([_scaled(group.reward) for group in batch.groups])) for batch in batches
        ]

    def run(self, updates: int) -> None:
        """Climb until every scenario's best sequence is taken with confidence; end with the best parameters seen."""
        best, kept = -np.inf, None
        for update in range(updates + 1):
            loss, reached, sure = self._evaluate(update)
            if reached > best:
                best, kept = reached, {name: value.clone() for name, value in self.network.state_dict().items()}
            if sure or update == updates:
                break
            descend(self.optimizer, loss)
        if not sure:
            self.network.load_state_dict(kept)

    def _evaluate(self, update: int) -> tuple[torch.Tensor, float, bool]:
        """Loss, mean scaled reward of the greedy policy (0 is the ceiling), and whether it is there with confidence."""
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
    """The loss of each group, from the sequences' log-probabilities and scaled rewards (both groups, sequences).

    With an entropy weight: the negative of expected reward and weighted entropy, over the weight, so that the gradient
      keeps its
    size while the weight falls. Without: -log of the best sequences' probability, which is where the expectation of an
    ever sharper utility leads; the gradient of the plain expectation all but vanishes where the second best has been
    settled on.
    """
    if weight > 0:
        chances = whole.exp()
        return (chances * whole).sum(-1) - (chances * scaled).sum(-1) / weight
    return -whole.masked_fill(scaled < 0, -torch.inf).logsumexp(-1)


def _scaled(reward: np.ndarray) -> np.ndarray:
    """Rewards with the best at 0 and a standard deviation of 1, so that every scenario weighs the same."""
    spread = float(reward.std())
    return ((reward - reward.max()) / (spread if spread > 0 else 1.0)).astype(np.float32)
