"""Networks, memory and gradient steps of one preference's actor-critic, and its uncertainty by Monte-Carlo dropout.

Source: SLA-MORL's published program; docs/reference/cloud_model.md. A critic evaluates an action vector. The published
program feeds the actor's probabilities to it as the action (`mixed`), but critics are trained on single actions only,
so their values of mixtures are not learned. The default therefore takes the mean of the values of single actions under
the actor's probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module, module_arrays
from schedlab.learning.policy_gradient import descend, entropy, masked
from schedlab.learning.replay_memory import ReplayMemory
from schedlab.learning.seeding import torch_stream
from schedlab.studies.cloud.learners.settings import DROPOUT, PASSES, MultiPolicySettings

LEAST = 1e-12  # smallest probability whose logarithm is taken; those of invalid actions are 0
NETWORKS = ("actor", "critic", "actor_target", "critic_target")


def build_network(sizes: tuple[int, int], hidden: int, seed: int, *names: str | int) -> nn.Sequential:
    """Return a network (inputs, outputs) with two hidden layers and dropout after each; its first parameters depend on
    seed and names.
    """
    with torch_stream(seed, *names):
        layers = (nn.Linear(sizes[0], hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, sizes[1]))
    return nn.Sequential(
        layers[0], nn.ReLU(), nn.Dropout(DROPOUT), layers[1], nn.ReLU(), nn.Dropout(DROPOUT), layers[2]
    )


def probabilities(actor: nn.Sequential, seen: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return the probabilities of the actions, (N, A); those of invalid ones (mask False) are 0."""
    return masked(actor(seen), masks).softmax(-1)


def action_values(critic: nn.Sequential, seen: torch.Tensor, actions: int) -> torch.Tensor:
    """Return the critic's value of every single action in each state, (N, A)."""
    width = seen.shape[1]
    weights, bias = critic[0].weight, critic[0].bias
    # the first layer applied to [state, one-hot action]
    first = (seen @ weights[:, :width].T + bias)[:, None] + weights[:, width:].T[None]
    return critic[1:](first)[..., 0].reshape(len(seen), actions)


@torch.no_grad()
def uncertainty(actor: nn.Sequential, seen: np.ndarray, mask: np.ndarray, seed: int = 0) -> float:
    """Return the mean over actions of the standard deviation of their probabilities in PASSES passes with dropout."""
    rows = torch.from_numpy(np.repeat(seen[None], PASSES, axis=0))
    masks = torch.from_numpy(np.repeat(mask[None], PASSES, axis=0))
    was = actor.training
    actor.train()
    with torch_stream(seed, "Monte-Carlo dropout"):
        drawn = probabilities(actor, rows, masks)
    actor.train(was)
    return float(drawn.std(dim=0, correction=0).mean())


class ActorCritic:
    """The agent of one preference: actor, critic, their target networks and optimisers, memory, number of resets."""

    def __init__(self, sizes: tuple[int, int], settings: MultiPolicySettings, seed: int, preference: str) -> None:
        self.sizes, self.settings, self.seed, self.preference = sizes, settings, seed, preference
        self.actor = build_network(sizes, settings.hidden, seed, "actor", preference)
        self.actor_target = build_network(sizes, settings.hidden, seed, "actor", preference).train(False)
        self.memory = ReplayMemory(settings.buffer)
        self.resets = 0
        self._draw_critic()
        self.of_actor = Adam(self.actor.parameters(), settings.lr_actor)

    def _draw_critic(self) -> None:
        """Draw the parameters of the critic and its target, and make its optimiser. The draw depends only on the seed
        and the number of resets.
        """
        shape = (sum(self.sizes), 1)
        self.critic = build_network(shape, self.settings.hidden, self.seed, "critic", self.preference, self.resets)
        self.critic_target = build_network(
            shape, self.settings.hidden, self.seed, "critic", self.preference, self.resets
        ).train(False)
        self.of_critic = Adam(self.critic.parameters(), self.settings.lr_critic)

    def maybe_reset(self, violated: float, rng: np.random.Generator) -> bool:
        """Reset the critic with probability p (1 + 0.2 k) for k severely violated service levels; return whether it was
        reset.
        """
        if not rng.random() < self.settings.reset_probability * (1.0 + 0.2 * violated):
            return False
        self.resets += 1
        self._draw_critic()
        return True

    def act(self, seen: np.ndarray, masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return exploring actions, (N,): the valid ones with the largest noisy probabilities."""
        with torch.no_grad():
            chances = probabilities(self.actor.train(False), torch.from_numpy(seen), torch.from_numpy(masks)).numpy()
        noisy = chances + rng.normal(0.0, self.settings.exploration_noise, chances.shape)
        return np.where(masks, noisy, -np.inf).argmax(axis=1)

    def learn(self, rng: np.random.Generator, stream: int, left: float = 1.0) -> float:
        """Take a gradient step of the critic and, if the critic has had at least `settle` updates since its last reset,
        of the actor; then move the target networks. Returns the critic's loss.

        left: factor on the actor's learning rate and on the weight of its entropy, which falls from 1 to 0
        """
        batch = {name: torch.from_numpy(rows) for name, rows in self.memory.draw(rng, self.settings.batch).items()}
        self.of_actor.learning_rate = self.settings.lr_actor * left
        with torch_stream(self.seed, "dropout", self.preference, stream):
            loss = self._learn_critic(batch)
            if int(self.of_critic.updates[0]) > self.settings.settle:  # counted from the critic's last reset on
                self._learn_actor(batch, left)
        for target, source in ((self.actor_target, self.actor), (self.critic_target, self.critic)):
            with torch.no_grad():
                for old, new in zip(target.parameters(), source.parameters(), strict=True):
                    old.lerp_(new, self.settings.tau)
        return loss

    def _learn_critic(self, batch: Mapping[str, torch.Tensor]) -> float:
        """Move the critic towards the reward plus the target networks' value of the next state; return its loss."""
        self.actor.train()
        self.critic.train()
        with torch.no_grad():
            following = probabilities(self.actor_target, batch["seen_next"], batch["masks_next"])
            onward = self._value(self.critic_target, following, batch["seen_next"])
            goal = batch["rewards"] + (1.0 - batch["done"]) * self.settings.gamma * onward
        taken = torch.nn.functional.one_hot(batch["actions"], self.sizes[1]).float()
        said = self.critic(torch.cat([batch["seen"], taken], dim=1))[:, 0]
        loss = torch.mean((said - goal) ** 2)
        descend(self.of_critic, loss)
        return float(loss.detach())

    def _learn_actor(self, batch: Mapping[str, torch.Tensor], left: float) -> None:
        """Move the actor towards actions with a high value and, while the entropy bonus lasts, away from certainty."""
        # Dropout is active only in the network that learns; it is most of the cost, because all actions are evaluated.
        self.critic.train(False)
        self.critic.requires_grad_(False)
        chances = probabilities(self.actor, batch["seen"], batch["masks"])
        loss = -self._value(self.critic, chances, batch["seen"]).mean()
        if self.settings.entropy:
            loss = loss - self.settings.entropy * left * entropy(torch.log(chances.clamp(min=LEAST))).mean()
        descend(self.of_actor, loss)
        self.critic.requires_grad_(True)

    def _value(self, critic: nn.Sequential, chances: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Return the critic's value of the actor's choice in each state, (N,); chances: the actor's probabilities, (N,
        A).
        """
        if self.settings.policy_value == "mixed":
            return critic(torch.cat([seen, chances], dim=1))[:, 0]
        return (chances * action_values(critic, seen, self.sizes[1])).sum(dim=1)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the whole state of learning as arrays, by name."""
        parts = {part: module_arrays(getattr(self, part)) for part in NETWORKS}
        parts |= {part: getattr(self, part).arrays() for part in ("of_actor", "of_critic", "memory")}
        return {**grouped(parts), "resets": np.array(self.resets)}

    def load(self, arrays: Mapping[str, np.ndarray], where: str) -> None:
        """Restore a stored state."""
        self.resets = int(arrays["resets"])
        self._draw_critic()
        kept = Checkpoint({}, arrays)
        for part in NETWORKS:
            load_module(getattr(self, part), kept.group(part), where)
        for part in ("of_actor", "of_critic", "memory"):
            getattr(self, part).load(kept.group(part))
