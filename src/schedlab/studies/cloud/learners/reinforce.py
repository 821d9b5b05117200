"""REINFORCE on replayed training jobs, a network for each preference; episodes run side by side.

The published program records log-probabilities without gradients, so that no update ever happens. Here the gradient is
kept, the mean return of the episodes side by side from the same interval on is the baseline, and invalid actions are
masked. A share of the episodes explores, and the best episodes seen are imitated (see `exploration`).
Source: R. Williams 1992; specification of the study cloud, A9, A14 (1) and B4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from schedlab.config.contract import Curve, LearnPaths, PolicySpec, Unit
from schedlab.config.errors import UserError
from schedlab.config.files import content_hash
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import load_module, module_arrays, read_checkpoint, read_progress, write_checkpoint
from schedlab.learning.reinforce import entropy
from schedlab.learning.seeding import torch_stream, use_one_thread
from schedlab.studies.cloud.learners.chebyshev import Distance, ends_of
from schedlab.studies.cloud.learners.common import descend, read_policy, require_learned, trained_preferences
from schedlab.studies.cloud.learners.exploration import BestEpisodes, Branches, Episodes, committed_actions
from schedlab.studies.cloud.learners.initialisation import guides
from schedlab.studies.cloud.learners.settings import ReinforceSettings
from schedlab.studies.cloud.problem import CloudProblem, preference_of
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv

if TYPE_CHECKING:
    from torch import nn

KIND, PROGRESS = "cloud-reinforce", "cloud-reinforce-progress"
SURE = math.log(0.9)  # an imitated action that is as probable will be taken


def build_network(observation: int, actions: int, hidden: int, seed: int, preference: str) -> nn.Sequential:
    """Return the network of a preference: two hidden layers; its first parameters hang from seed and name."""
    with torch_stream(seed, "network", preference):
        layers = (
            torch.nn.Linear(observation, hidden),
            torch.nn.Linear(hidden, hidden),
            torch.nn.Linear(hidden, actions),
        )
    return torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])


def masked_logs(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return log-probabilities; those of invalid actions (mask False) are very low."""
    return torch.log_softmax(torch.where(masks, logits, torch.full_like(logits, -1e9)), dim=-1)


class PreferencePolicy:
    """A learned policy: the network of the unit's preference (`network`), its most probable action."""

    def __init__(self, networks: Mapping[str, nn.Sequential]) -> None:
        self.networks, self.network = networks, next(iter(networks.values()))

    def reset(self, unit: Unit) -> None:
        """Take the network of the unit's preference. Raises UserError where none was learned."""
        preference = preference_of(unit)
        require_learned(preference, self.networks)
        self.network = self.networks[preference]

    @torch.no_grad()
    def act(self, observation: np.ndarray, mask: np.ndarray) -> int:
        """Return the most probable action that the mask allows."""
        logits = self.network(torch.from_numpy(observation)[None])
        return int(masked_logs(logits, torch.from_numpy(mask)[None])[0].argmax())


class ReinforceLearner:
    """Learns each preference of the problems' training units on its own. Resumes bit for bit."""

    def learn(
        self, problems: Mapping[str, CloudProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Learn phase after phase, each with a fresh Adam, and write the final parameters.

        Raises UserError where scenarios differ in their spaces or have no training unit.
        """
        use_one_thread()
        run = _Run(problems, spec, seed, paths)
        run.learn()
        for point in run.points:
            curve(**point)
        meta = {"kind": KIND, "hidden": run.settings.hidden, "sizes": run.sizes, "preferences": sorted(run.networks)}
        write_checkpoint(paths.checkpoint, meta, run.arrays())

    def load(self, checkpoint: Path, problem: CloudProblem) -> PreferencePolicy:
        """Return the learned policy. Raises UserError where it was learned for other observations or actions."""
        kept, sizes = read_policy(checkpoint, KIND, problem)
        networks = {}
        for name in kept.meta["preferences"]:
            networks[name] = build_network(sizes[0], sizes[1], kept.meta["hidden"], 0, name)
            load_module(networks[name], kept.group(name), checkpoint)
        return PreferencePolicy(networks)


class _Run:
    """One learning job: networks and optimisers by preference, and the points of its curves so far."""

    def __init__(self, problems: Mapping[str, CloudProblem], spec: PolicySpec, seed: int, paths: LearnPaths) -> None:
        self.settings = validate(ReinforceSettings, spec.params)
        self.problems, self.spec, self.seed, self.progress = problems, spec, seed, paths.progress / "reinforce.zip"
        self.sizes, wanted = trained_preferences(problems)
        observed, actions = self.sizes
        hidden = self.settings.hidden
        self.networks = {name: build_network(observed, actions, hidden, seed, name) for name in wanted}
        if paths.start is not None:
            parent = read_checkpoint(paths.start, KIND)
            for name, network in self.networks.items():
                load_module(network, parent.group(name), paths.start)
        self.envs: dict[tuple[str, str], CloudReplayVectorEnv] = {}
        self.points: list[dict[str, Any]] = []
        self.best: dict[str, BestEpisodes] = {}
        self.guides = {
            name: guides(problem, self.settings.initialisation).targets for name, problem in problems.items()
        }
        self.ends = ends_of(wanted) if self.settings.scalarisation == "chebyshev" else ()
        if self.ends and len(spec.train_on) > 1:
            what, remedy = "distances of two phases have ends of their own and cannot be compared", "learn in one phase"
            raise UserError(
                what, where=f"{spec.name}.yaml: train_on, learner.scalarisation", expected="one phase", remedy=remedy
            )
        self.distances: dict[str, Distance] = {}
        self.phase = self.update = 0
        self.optimizers = self._fresh()
        values = {"params": self.settings.model_dump(), "phases": [str(phase) for phase in spec.train_on], "seed": seed}
        self.digest = content_hash(values)

    def learn(self) -> None:
        """Go on from where an interrupted job of the same values was, to the end of the last phase."""
        self._resume()
        legs = self._legs()
        for leg in range(self.phase, len(legs)):
            number, preferences = legs[leg]
            phase = self.spec.train_on[number]
            updates = -(-phase.steps // self.settings.episodes_per_update)
            while self.update < updates:
                scenario = phase.scenarios[self.update % len(phase.scenarios)]
                for preference in preferences:
                    self._step(number, scenario, preference, 1.0 - self.update / updates)
                self.update += 1
                if self.update % self.settings.save_every == 0:
                    self._save()
            self._distil(phase.scenarios, preferences)
            self.phase, self.update = leg + 1, 0
            self.optimizers = self._fresh()
            self.distances.clear()

    def _legs(self) -> list[tuple[int, list[str]]]:
        """The number of each phase with its preferences; with distances twice, the ends first."""
        groups = [list(self.networks)]
        if self.ends:
            groups = [list(self.ends), [name for name in self.networks if name not in self.ends]]
        return [(number, group) for number in range(len(self.spec.train_on)) for group in groups]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the parameters of all networks by `preference/name`."""
        return {
            f"{key}/{name}": array
            for key, network in self.networks.items()
            for name, array in module_arrays(network).items()
        }

    def _fresh(self) -> dict[str, Adam]:
        return {
            name: Adam(network.parameters(), self.settings.learning_rate) for name, network in self.networks.items()
        }

    def _env(self, scenario: str, preference: str) -> CloudReplayVectorEnv:
        if (scenario, preference) not in self.envs:
            replay = self.problems[scenario].replay
            self.envs[scenario, preference] = CloudReplayVectorEnv(
                replay, self.settings.episodes_per_update, preference
            )
        return self.envs[scenario, preference]

    def _step(self, phase: int, scenario: str, preference: str, left: float) -> None:
        """One gradient step of one preference, and those of imitation; `left`: share of the phase that is left."""
        names = ("phase", phase, "update", self.update, preference)
        settings, network, optimizer = self.settings, self.networks[preference], self.optimizers[preference]
        committed = round(settings.committed * settings.episodes_per_update)
        targets = generator(derive_seed(self.seed, *names), "targets").integers(
            len(self.problems[scenario].replay.lattice), size=committed
        )
        if preference in self.guides[scenario]:
            targets[: (committed + 1) // 2] = self.guides[scenario][preference]
        sample = partial(sample_episodes, self._env(scenario, preference), network)
        far, branches = self._distance(scenario, preference), None
        if far and committed and (best := self._kept(scenario, preference)):
            branches = Branches.drawn(best, committed // 2, generator(derive_seed(self.seed, *names), "branches"))
        seen, reached = sample(derive_seed(self.seed, *names), targets, settings.gamma, branches)
        if phase == self.update == 0 and committed and preference in self.guides[scenario]:
            self._warm(seen.take([0]), network, optimizer)
            seen, reached = sample(derive_seed(self.seed, *names, "warm"), targets, settings.gamma)
        if far:
            seen.returns = np.tile(-far(reached), (len(seen.returns), 1))
        own = seen.take(slice(committed, None))
        baseline = own.returns.mean(axis=1, keepdims=True)
        scale = float(np.sqrt(np.mean((own.returns - baseline) ** 2))) or 1.0
        logs = masked_logs(network(torch.from_numpy(own.observations)), torch.from_numpy(own.masks))
        advantages = torch.from_numpy(((own.returns - baseline) / scale).astype(np.float32))
        loss = -(_chosen(logs, own.actions) * advantages).mean() - settings.entropy * left * entropy(logs).mean()
        optimizer.learning_rate = settings.learning_rate * left
        descend(optimizer, loss)
        if settings.imitated and settings.imitations:
            kept = self._best(scenario, preference).add(seen)
            for other in self.networks if far else ():
                if other != preference and (of_other := self._distance(scenario, other)):
                    self._best(scenario, other).add_shared(seen, -of_other(reached))
            self._imitate(kept, baseline, scale, network, optimizer)
        if self.update % settings.record_every == 0:
            episode = (self.update + 1) * settings.episodes_per_update
            place = {
                "step": episode,
                "episode": episode,
                "update": self.update + 1,
                "phase": phase,
                "scenario": scenario,
            }
            kind = "distance" if far else "objective"
            self.points.append({"metric": f"{kind} {preference}", "value": float(-own.returns[0].mean()), **place})
            greedy = self._greedy(scenario, preference).objective()
            self.points.append({"metric": f"greedy objective {preference}", "value": greedy, **place})

    def _distance(self, scenario: str, preference: str) -> Callable[[np.ndarray], np.ndarray] | None:
        """The distance that a preference learns, from where the ends' policies are now; None: its weighted sum."""
        if not self.ends or preference in self.ends:
            return None
        if scenario not in self.distances:
            reached = [self._greedy(scenario, end) for end in self.ends]
            self.distances[scenario] = Distance.between(*(np.array([env.time, env.cost]) for env in reached))
        return partial(self.distances[scenario].of, preference)

    def _warm(self, guided: Episodes, network: nn.Sequential, optimizer: Adam) -> None:
        """Imitate the first committed episode, which goes to where the initialisation points."""
        seen, masks = torch.from_numpy(guided.observations), torch.from_numpy(guided.masks)
        for _ in range(self.settings.warm_start):
            descend(optimizer, -_chosen(masked_logs(network(seen), masks), guided.actions).mean())

    def _greedy(self, scenario: str, preference: str) -> CloudReplayEnv:
        """The environment after an episode of most probable actions."""
        problem, policy = self.problems[scenario], PreferencePolicy({preference: self.networks[preference]})
        env, over = CloudReplayEnv(problem.replay, preference), False
        observation, _ = env.reset(seed=derive_seed(self.seed, "greedy") % 2**31)
        while not over:
            observation, _, done, cut, _ = env.step(policy.act(observation, env.action_masks()))
            over = done or cut
        return env

    def _imitate(
        self, best: Episodes, baseline: np.ndarray, scale: float, network: nn.Sequential, optimizer: Adam
    ) -> None:
        """Raise the chances of the best episodes' actions where they return more than the policy's own."""
        seen, masks = torch.from_numpy(best.observations), torch.from_numpy(best.masks)
        gains = torch.from_numpy(np.clip((best.returns - baseline) / scale, 0.0, 1.0).astype(np.float32))
        for _ in range(self.settings.imitations):
            descend(optimizer, -(_chosen(masked_logs(network(seen), masks), best.actions) * gains).mean())

    def _distil(self, scenarios: Sequence[str], preferences: Sequence[str]) -> None:
        """Imitate each preference's best episode alone: of several at once, networks learn a mixture."""
        for preference in preferences:
            network, optimizer = (
                self.networks[preference],
                Adam(self.networks[preference].parameters(), self.settings.learning_rate),
            )
            best = [kept.take([0]) for scenario in scenarios if (kept := self._kept(scenario, preference))]
            for _ in range(self.settings.distilled if best else 0):
                chosen = [self._logs(network, of) for of in best]
                if min(float(of.detach().min()) for of in chosen) > SURE:
                    break
                descend(optimizer, -torch.stack([of.mean() for of in chosen]).mean())

    def _logs(self, network: nn.Sequential, of: Episodes) -> torch.Tensor:
        """The log-probabilities of the episodes' actions."""
        return _chosen(masked_logs(network(torch.from_numpy(of.observations)), torch.from_numpy(of.masks)), of.actions)

    def _kept(self, scenario: str, preference: str) -> Episodes | None:
        """The best episodes seen; none where none are to be imitated."""
        best = self.best.get(f"{scenario} {preference}")
        return best.kept if best else None

    def _best(self, scenario: str, preference: str) -> BestEpisodes:
        return self.best.setdefault(f"{scenario} {preference}", BestEpisodes(self.settings.imitated))

    def _save(self) -> None:
        meta = {
            "kind": PROGRESS,
            "digest": self.digest,
            "phase": self.phase,
            "update": self.update,
            "points": self.points,
        }
        arrays = self.arrays()
        for name, optimizer in self.optimizers.items():
            arrays |= {f"optimizer {name}/{key}": array for key, array in optimizer.arrays().items()}
        for name, best in self.best.items():
            if best.kept is not None:
                arrays |= {f"best {name}/{key}": array for key, array in best.kept.arrays().items()}
        write_checkpoint(self.progress, meta, arrays)

    def _resume(self) -> None:
        kept = read_progress(self.progress, PROGRESS, self.digest)
        if kept is not None:
            for name, network in self.networks.items():
                load_module(network, kept.group(name), self.progress)
                self.optimizers[name].load(kept.group(f"optimizer {name}"))
            for name in {key.split("/")[0].removeprefix("best ") for key in kept.arrays if key.startswith("best ")}:
                self.best[name] = BestEpisodes(self.settings.imitated)
                self.best[name].load(kept.group(f"best {name}"))
            self.phase, self.update, self.points = kept.meta["phase"], kept.meta["update"], list(kept.meta["points"])


def sample_episodes(
    env: CloudReplayVectorEnv,
    network: nn.Sequential,
    seed: int,
    targets: np.ndarray,
    gamma: float = 1.0,
    branches: Branches | None = None,
) -> tuple[Episodes, np.ndarray]:
    """Run episodes side by side by sampled valid actions, the first ones committed to targets (numbers of allocations).

    The same ones for the same seed and parameters. Also returns their time (s) and cost ($), (N, 2). Returns are
    discounted by gamma; branches: courses that the last of the committed episodes follow first.
    """
    rng, grid, committed = generator(seed, "actions"), env.replay.lattice, len(targets)
    observation, _ = env.reset(seed=derive_seed(seed, "episodes") % 2**31)
    kept: tuple[list[np.ndarray], ...] = ([], [], [], [])
    for interval in range(env.replay.intervals):
        mask = env.action_masks()
        with torch.no_grad():
            chances = masked_logs(network(torch.from_numpy(observation)), torch.from_numpy(mask)).double().exp().numpy()
        drawn = rng.random((env.num_envs, 1)) * chances.sum(axis=1, keepdims=True)
        actions = (drawn < chances.cumsum(axis=1)).argmax(axis=1)
        if committed:
            here = env.here[:committed]
            straight = committed_actions(grid, here, targets, env.replay.allowed[here])
            actions[:committed] = np.searchsorted(env.actions, straight)
        if branches is not None:
            actions[:committed] = branches.followed(interval, actions[:committed])
        for values, value in zip(kept[:3], (observation, mask, actions), strict=True):
            values.append(value)
        observation, rewards, _, _, final = env.step(actions)
        kept[3].append(rewards)
    observations, masks, actions, rewards = (np.stack(values) for values in kept)
    ended = final["final_info"]["scores"]
    reached = np.stack([ended["time"], ended["cost"]], axis=1)
    return Episodes(observations, masks, actions, discounted(rewards, gamma)), reached


def _chosen(logs: torch.Tensor, actions: np.ndarray) -> torch.Tensor:
    """The log-probabilities of the actions taken."""
    return logs.gather(-1, torch.from_numpy(actions)[..., None])[..., 0]


def discounted(rewards: np.ndarray, gamma: float) -> np.ndarray:
    """Return G_t = r_t + gamma G_(t+1) along the first axis, float64."""
    found, ahead = np.zeros_like(rewards), np.zeros(rewards.shape[1:])
    for place in range(len(rewards) - 1, -1, -1):
        ahead = found[place] = rewards[place] + gamma * ahead
    return found
