"""The multi-policy actor-critic: an agent for each preference, critics drawn anew where service levels suffer, and the
choice of one.

The published program has these agents and never uses them. Source: SLA-MORL (arXiv 2508.03509); specification of the
study cloud, A9.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from schedlab.config.contract import Curve, LearnPaths, PolicySpec, Unit
from schedlab.config.files import content_hash
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.checkpoints import load_module, module_arrays, read_checkpoint, read_progress, write_checkpoint
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.cloud.learners.actor_critic import ActorCritic, build_network, probabilities, uncertainty
from schedlab.studies.cloud.learners.common import read_policy, require_learned, trained_preferences
from schedlab.studies.cloud.learners.exploration import committed_actions
from schedlab.studies.cloud.learners.settings import MultiPolicySettings
from schedlab.studies.cloud.problem import CloudProblem, preference_of
from schedlab.studies.cloud.replay.sla import ITEMS
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv

KIND, PROGRESS = "cloud-multi-policy", "cloud-multi-policy-progress"
SEVERE = 0.3  # severity above which a violated item makes a critic's reset more likely
MOST_VIOLATED = 2  # more violated items call for the balanced policy
NEAR = 0.8  # share of a limit from which `sla_first` cares for it


def chosen_preference(state: Mapping[str, float], preference: str, choice: str) -> str:
    """Return the preference whose agent acts in a state (components by name; what a space lacks counts as met).

    `violations`: balanced where more than two items are violated; `sla_first`: what is violated or nearly so, time
    before cost before use; `balanced`: always balanced; there is one policy for all.
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
    """The learned agents: the most probable action of the one that is chosen in each state."""

    def __init__(self, actors: Mapping[str, torch.nn.Sequential], names: list[str], choice: str) -> None:
        self.actors, self.names, self.choice = {key: actor.train(False) for key, actor in actors.items()}, names, choice
        self.preference = self.acting = ""  # the unit's, and whose agent was chosen last

    def reset(self, unit: Unit) -> None:
        """Take the unit's preference. Raises UserError where none was learned."""
        self.preference = preference_of(unit)
        if self.choice != "balanced":
            require_learned(self.preference, self.actors)

    def actor(self, observation: np.ndarray) -> torch.nn.Sequential:
        """Return the actor that is chosen in a state; where no such preference was learned, that of the user's."""
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


class MultiPolicyLearner:
    """Learns an agent for each preference; a phase's steps are episodes of each. Resumes bit for bit."""

    def learn(
        self, problems: Mapping[str, CloudProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Learn phase after phase and write the actors.

        Raises UserError where scenarios differ in their spaces or have no training unit.
        """
        use_one_thread()
        run = _Run(problems, spec, seed, paths)
        run.learn()
        for point in run.points:
            curve(**point)
        meta = {"kind": KIND, "hidden": run.settings.hidden, "sizes": list(run.sizes), "choice": run.settings.choice}
        meta |= {
            "preferences": sorted(run.agents),
            "resets": {name: agent.resets for name, agent in run.agents.items()},
        }
        arrays = {
            f"{key}/{name}": array
            for key, agent in run.agents.items()
            for name, array in module_arrays(agent.actor).items()
        }
        write_checkpoint(paths.checkpoint, meta, arrays)

    def load(self, checkpoint: Path, problem: CloudProblem) -> MultiPolicy:
        """Return the learned policy. Raises UserError where it was learned for other observations or actions."""
        kept, sizes = read_policy(checkpoint, KIND, problem)
        actors = {}
        for name in kept.meta["preferences"]:
            actors[name] = build_network((sizes[0], sizes[1]), kept.meta["hidden"], 0, name)
            load_module(actors[name], kept.group(name), checkpoint)
        return MultiPolicy(actors, problem.component_names(), kept.meta["choice"])


class _Run:
    """One learning job: an agent a preference, and the points of its curves so far."""

    def __init__(self, problems: Mapping[str, CloudProblem], spec: PolicySpec, seed: int, paths: LearnPaths) -> None:
        self.settings = validate(MultiPolicySettings, spec.params)
        self.problems, self.spec, self.seed, self.progress = problems, spec, seed, paths.progress / "multi_policy.zip"
        self.sizes, wanted = trained_preferences(problems)
        if self.settings.choice == "balanced" and "balanced" in wanted:
            wanted = ["balanced"]
        self.severities = [
            n for n, name in enumerate(next(iter(problems.values())).component_names()) if name.endswith("_severity")
        ]
        self.agents = {name: ActorCritic((self.sizes[0], self.sizes[1]), self.settings, seed, name) for name in wanted}
        if paths.start is not None:
            parent = read_checkpoint(paths.start, KIND)
            for name, agent in self.agents.items():
                for network in (agent.actor, agent.actor_target):
                    load_module(network, parent.group(name), paths.start)
        self.envs: dict[tuple[str, str], CloudReplayVectorEnv] = {}
        self.points: list[dict[str, Any]] = []
        self.phase = self.round = 0
        values = {"params": self.settings.model_dump(), "phases": [str(phase) for phase in spec.train_on], "seed": seed}
        self.digest = content_hash(values)

    def learn(self) -> None:
        """Go on from where an interrupted job of the same values was, to the end of the last phase."""
        self._resume()
        for number in range(self.phase, len(self.spec.train_on)):
            phase = self.spec.train_on[number]
            rounds = -(-phase.steps // self.settings.episodes_per_round)
            while self.round < rounds:
                scenario = phase.scenarios[self.round % len(phase.scenarios)]
                for preference, agent in self.agents.items():
                    self._round(number, scenario, preference, agent, 1.0 - self.round / rounds)
                self.round += 1
                if self.round % self.settings.save_every == 0:
                    self._save()
            self.phase, self.round = number + 1, 0

    def _round(self, phase: int, scenario: str, preference: str, agent: ActorCritic, left: float) -> None:
        """Episodes side by side with one agent, then its gradient steps; `left`: share of the phase that is left."""
        settings = self.settings
        rng = generator(derive_seed(self.seed, "phase", phase, "round", self.round, preference), "round")
        objective, violated = self._collect(scenario, preference, agent, rng)
        first = self.round * settings.gradient_steps
        losses, resets = [], agent.resets
        for step in range(first, first + settings.gradient_steps):
            if step and step % settings.reset_interval == 0:
                agent.maybe_reset(violated, rng)
            losses.append(agent.learn(rng, step, left))
        if self.round % settings.record_every == 0:
            episode = (self.round + 1) * settings.episodes_per_round
            place = {
                "step": episode,
                "episode": episode,
                "update": self.round + 1,
                "phase": phase,
                "scenario": scenario,
            }
            found = {"objective": objective, "critic loss": float(np.mean(losses))}
            found |= {
                "critic resets": float(agent.resets),
                "violated": violated,
                "reset now": float(agent.resets > resets),
            }
            self.points += [
                {"metric": f"{name} {preference}", "value": value, **place} for name, value in found.items()
            ]

    def _collect(
        self, scenario: str, preference: str, agent: ActorCritic, rng: np.random.Generator
    ) -> tuple[float, float]:
        """Run episodes into memory; return the actor's mean objective and its severely violated items."""
        settings = self.settings
        if (scenario, preference) not in self.envs:
            self.envs[scenario, preference] = CloudReplayVectorEnv(
                self.problems[scenario].replay, settings.episodes_per_round, preference
            )
        env = self.envs[scenario, preference]
        committed = round(settings.committed * settings.episodes_per_round)
        grid = env.replay.lattice
        targets = rng.integers(len(grid), size=committed)
        seen, _ = env.reset(seed=int(rng.integers(2**31)))
        total = np.zeros(env.num_envs)
        for interval in range(env.replay.intervals):
            masks = env.action_masks()
            actions = agent.act(seen, masks, rng)
            if committed:
                here = env.here[:committed]
                straight = committed_actions(grid, here, targets, env.replay.allowed[here])
                actions[:committed] = np.searchsorted(env.actions, straight)
            after, rewards, ended, _, final = env.step(actions)
            last = interval == env.replay.intervals - 1
            following = np.stack(list(final["final_obs"])) if last else after
            agent.memory.add(
                seen=seen,
                masks=masks,
                actions=actions.astype(np.int64),
                rewards=rewards.astype(np.float32),
                seen_next=following.astype(np.float32),
                masks_next=masks if last else env.action_masks(),
                done=ended.astype(np.float32),
            )
            total += rewards
            seen = after
        severe = (following[committed:, self.severities] > SEVERE).sum(axis=1)
        return float(-total[committed:].mean()), float(severe.mean())

    def _save(self) -> None:
        meta = {
            "kind": PROGRESS,
            "digest": self.digest,
            "phase": self.phase,
            "round": self.round,
            "points": self.points,
        }
        arrays = {
            f"{name}/{key}": array for name, agent in self.agents.items() for key, array in agent.arrays().items()
        }
        write_checkpoint(self.progress, meta, arrays)

    def _resume(self) -> None:
        kept = read_progress(self.progress, PROGRESS, self.digest)
        if kept is not None:
            for name, agent in self.agents.items():
                agent.load(kept.group(name), str(self.progress))
            self.phase, self.round, self.points = kept.meta["phase"], kept.meta["round"], list(kept.meta["points"])
