"""The exact learner: expected reward and its gradient over the whole table, all scenarios jointly, nothing sampled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from schedlab.config.contract import Curve, LearnPaths, PolicySpec
from schedlab.config.schema import validate
from schedlab.learning.adam import Adam
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.adaptation.learners.network_policy import (
    Batch,
    NetworkPolicy,
    batches_of,
    greedy_sequences,
    groups_of,
    load_policy,
    phase_settings,
    save_network,
    start_network,
)
from schedlab.studies.adaptation.learners.policy_network import PolicyNetwork
from schedlab.studies.adaptation.learners.settings import ExactSettings
from schedlab.studies.adaptation.problem import AdaptationProblem


class ExactLearner:
    """Learns a policy network from the exact gradient; the seed matters through the first parameters alone."""

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Learn phase after phase and write the final parameters; an interrupted job (seconds) starts again."""
        use_one_thread()
        settings = validate(ExactSettings, spec.params)
        network, encoding = start_network(settings, problems, seed, paths)
        for number, phase in enumerate(spec.train_on):
            of_phase = phase_settings(ExactSettings, spec, phase)
            batches = batches_of(groups_of(problems, phase.scenarios, settings.slope), encoding)
            _Phase(network, batches, of_phase, curve, number).run(phase.steps)
        save_network(paths, settings, network, encoding, problems)

    def load(self, checkpoint: Path, problem: AdaptationProblem) -> NetworkPolicy:
        """Return the learned policy."""
        return load_policy(checkpoint, problem)


class _Phase:
    def __init__(
        self, network: PolicyNetwork, batches: list[Batch], settings: ExactSettings, curve: Curve, number: int
    ) -> None:
        self.network, self.batches, self.settings, self.curve, self.number = network, batches, settings, curve, number
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
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
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
        if update % self.settings.record_every:
            return
        for group, share, greedy in zip(batch.groups, chances, chosen, strict=True):
            best = int(group.reward.argmax())
            points = {"objective": share @ group.reward, "reward": group.reward[greedy]}
            points |= {
                "accuracy": group.accuracy[greedy],
                "probability_best": share[best],
                "regret": group.reward[best] - group.reward[greedy],
            }
            for metric, value in points.items():
                if np.isfinite(value):
                    at: dict[str, Any] = {"step": update, "update": update, "phase": self.number}
                    self.curve(metric, float(value), scenario=group.scenario, **at)


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
