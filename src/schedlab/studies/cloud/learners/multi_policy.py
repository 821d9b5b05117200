"""The multi-policy actor-critic: an agent for each preference, resets of critics when service levels are violated, and
the choice of the agent that acts.

The published program defines these agents but never uses them. Source: SLA-MORL (arXiv 2508.03509).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from schedlab.config.contract import Unit
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module
from schedlab.learning.job import LearningJob, Pace
from schedlab.studies.cloud.learners.actor_critic import ActorCritic, build_network, probabilities, uncertainty
from schedlab.studies.cloud.learners.exploration import committed_choices
from schedlab.studies.cloud.learners.preference_learner import PreferenceLearner, PreferenceLearning, require_learned
from schedlab.studies.cloud.learners.settings import MultiPolicySettings
from schedlab.studies.cloud.problem import CloudProblem, preference_of
from schedlab.studies.cloud.replay.sla import ITEMS

SEVERE = 0.3  # severity above which a violated item makes a critic's reset more likely
MOST_VIOLATED = 2  # number of violated items above which the balanced policy acts
NEAR = 0.8  # share of a limit from which `sla_first` treats an item as nearly violated


def chosen_preference(state: Mapping[str, float], preference: str, choice: str) -> str:
    """Return the preference whose agent acts in a state.

    state   components by name; service levels that the space lacks count as met
    choice  `violations`: balanced if more than two items are violated; `sla_first`: that of the first item that is
            violated or nearly so, in the order time, cost, use; `balanced`: always balanced, so that there is one
            policy for all
    """
    if choice == "balanced":
        return choice
    violated = {item for item in ITEMS if not state.get(f"{item}_met", 1.0)}
    if choice == "sla_first":
        for item in ("time", "cost"):
            if item in violated or state[item] > NEAR:
                return item
        return "resource" if violated & {"gpu_util", "cpu_util", "memory"} else preference
    return "balanced" if choice == "violations" and len(violated) > MOST_VIOLATED else preference


class MultiPolicy:
    """The learned agents. In each state one of them is chosen and its most probable action taken."""

    def __init__(self, actors: Mapping[str, torch.nn.Sequential], names: list[str], choice: str) -> None:
        self.actors, self.names, self.choice = {key: actor.train(False) for key, actor in actors.items()}, names, choice
        self.preference = self.acting = ""  # the unit's preference, and the preference whose agent acted last

    def reset(self, unit: Unit) -> None:
        """Set the preference to the unit's. Raises UserError if it was not learned."""
        self.preference = preference_of(unit)
        if self.choice != "balanced":
            require_learned(self.preference, self.actors)

    def actor(self, observation: np.ndarray) -> torch.nn.Sequential:
        """Return the actor chosen in a state; if its preference was not learned, the actor of the user's preference."""
        state = dict(zip(self.names, observation.tolist(), strict=True))
        chosen = chosen_preference(state, self.preference, self.choice)
        self.acting = chosen if chosen in self.actors else self.preference
        return self.actors[self.acting]

    @torch.no_grad()
    def act(self, observation: np.ndarray, mask: np.ndarray) -> int:
        """Return the most probable action that the mask allows."""
        seen, masks = torch.from_numpy(observation)[None], torch.from_numpy(mask)[None]
        return int(probabilities(self.actor(observation), seen, masks)[0].argmax())

    def uncertainty(self, observation: np.ndarray, mask: np.ndarray) -> float:
        """Return the spread of the chosen actor's probabilities under dropout."""
        return uncertainty(self.actor(observation), observation, mask)


class _Learning(PreferenceLearning):
    """The learning job: an agent for each preference. An update is a round: episodes of each agent, then its gradient
    steps.
    """

    def __init__(self, job: LearningJob, problems: Mapping[str, CloudProblem], settings: MultiPolicySettings) -> None:
        super().__init__(job, problems, settings, settings.episodes_per_round)
        wanted = self.preferences
        if settings.choice == "balanced" and "balanced" in wanted:
            wanted = ["balanced"]
        components = next(iter(problems.values())).component_names()
        self.severities = [n for n, name in enumerate(components) if name.endswith("_severity")]
        self.agents = {name: ActorCritic((self.sizes[0], self.sizes[1]), settings, job.seed, name) for name in wanted}
        if parent := job.parent():
            for name, agent in self.agents.items():
                for network in (agent.actor, agent.actor_target):
                    load_module(network, parent.group(name), parent.path)

    def networks_to_keep(self) -> Mapping[str, torch.nn.Sequential]:
        """Return the actors."""
        return {name: agent.actor for name, agent in self.agents.items()}

    def about(self) -> dict[str, Any]:
        """Return the choice of the agent that acts, and how often critics were reset."""
        return {
            "choice": self.settings.choice,
            "resets": {name: agent.resets for name, agent in self.agents.items()},
        }

    def begin(self, phase: int) -> Pace:
        """Continue with the agents as they are."""
        self.rounds = -(-self.job.spec.train_on[phase].steps // self.settings.episodes_per_round)
        return Pace(self.rounds, self.settings.save_every)

    def step(self, phase: int, update: int) -> None:
        """Make a round of each agent."""
        scenarios = self.job.spec.train_on[phase].scenarios
        for preference, agent in self.agents.items():
            self._round(phase, update, scenarios[update % len(scenarios)], preference, agent)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the state of all agents."""
        return {}, grouped({name: agent.arrays() for name, agent in self.agents.items()})

    def load(self, kept: Checkpoint) -> None:
        """Restore the values that `state` returned."""
        for name, agent in self.agents.items():
            agent.load(kept.group(name), str(kept.path))

    def _round(self, phase: int, number: int, scenario: str, preference: str, agent: ActorCritic) -> None:
        """Run parallel episodes with one agent, then its gradient steps."""
        settings = self.settings
        rng = generator(derive_seed(self.job.seed, "phase", phase, "round", number, preference), "round")
        objective, violated = self._collect(scenario, preference, agent, rng)
        first = number * settings.gradient_steps
        losses, resets = [], agent.resets
        for step in range(first, first + settings.gradient_steps):
            if step and step % settings.reset_interval == 0:
                agent.maybe_reset(violated, rng)
            losses.append(agent.learn(rng, step, 1.0 - number / self.rounds))
        if number % settings.record_every == 0:
            values = {
                "objective": objective,
                "critic_loss": float(np.mean(losses)),
                "critic_resets": agent.resets,
                "violated": violated,
                "reset_now": agent.resets > resets,
            }
            episode, of = (number + 1) * settings.episodes_per_round, {"preference": preference, "acting": "sample"}
            self.job.record(
                values, step=episode, episode=episode, update=number + 1, scenario=scenario.partition("/")[0], of=of
            )

    def _collect(
        self, scenario: str, preference: str, agent: ActorCritic, rng: np.random.Generator
    ) -> tuple[float, float]:
        """Run episodes and store their decisions in memory; return the mean objective of the actor and its number of
        severely violated items.
        """
        settings = self.settings
        env = self.env(scenario, preference)
        committed = round(settings.committed * settings.episodes_per_round)
        targets = rng.integers(len(env.replay.lattice), size=committed)
        seen, _ = env.reset(seed=int(rng.integers(2**31)))
        total = np.zeros(env.num_envs)
        for interval in range(env.replay.intervals):
            masks = env.action_masks()
            actions = agent.act(seen, masks, rng)
            if committed:
                actions[:committed] = committed_choices(env, targets)
            after, rewards, ended, _, final = env.step(actions)
            last = interval == env.replay.intervals - 1
            following = np.stack(list(final["final_obs"])) if last else after
            decisions = {
                "seen": seen,
                "masks": masks,
                "actions": actions.astype(np.int64),
                "rewards": rewards.astype(np.float32),
                "seen_next": following.astype(np.float32),
                "masks_next": masks if last else env.action_masks(),
                "done": ended.astype(np.float32),
            }
            agent.memory.add(decisions)
            total += rewards
            seen = after
        self.job.budget.decisions += env.num_envs * env.replay.intervals
        self.job.budget.episodes += env.num_envs
        self.job.budget.trainings += env.num_envs
        severe = (following[committed:, self.severities] > SEVERE).sum(axis=1)
        return float(-total[committed:].mean()), float(severe.mean())


class MultiPolicyLearner(PreferenceLearner):
    """Learns an agent for each preference. The steps of a phase are episodes of each preference. Only the actors are
    stored.
    """

    kind, settings, learning = "cloud-multi-policy", MultiPolicySettings, _Learning

    def network(self, sizes: Sequence[int], hidden: int, preference: str) -> torch.nn.Sequential:
        """Return the actor network into which stored parameters are loaded."""
        return build_network((sizes[0], sizes[1]), hidden, 0, preference)

    def policy(
        self, networks: dict[str, torch.nn.Sequential], meta: Mapping[str, Any], problem: CloudProblem
    ) -> MultiPolicy:
        """Return the policy of learned actors."""
        return MultiPolicy(networks, problem.component_names(), meta["choice"])
