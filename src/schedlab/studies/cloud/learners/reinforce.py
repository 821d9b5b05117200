"""REINFORCE on replayed training jobs, with a network for each preference and episodes in parallel.

The published program records log-probabilities without gradients, so its parameters never change. Here the gradient is
kept, the baseline is the mean return of the parallel episodes from the same interval on, and invalid actions are
masked. A share of the episodes explores, and the best episodes seen are imitated (see `exploration`). Source: R.
Williams 1992; docs/reference/cloud_model.md.

For points of a front that no weighted sum of time and cost reaches, the larger of two weighted distances is minimised
(`scalarisation: chebyshev`): in time from the fastest policy and in cost from the cheapest one, each relative to the
range between these two policies, which are learned first; neither a model nor a front is needed. A small share of the
sum of both distances is added, which breaks ties in favour of the better plan. Sources: Steuer and Choo 1983 (augmented
weighted Chebyshev); Van Moffaert, Drugan and Nowe 2013 (in reinforcement learning).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module, module_arrays
from schedlab.learning.job import LearningJob, Pace
from schedlab.learning.networks import layers
from schedlab.learning.policy_gradient import descend, discounted, entropy, masked, masked_log_probabilities, of_actions
from schedlab.learning.seeding import torch_stream
from schedlab.studies.cloud.learners.exploration import BestEpisodes, Branches, Episodes, committed_choices
from schedlab.studies.cloud.learners.preference_learner import (
    EpisodesNeeded,
    PreferenceLearner,
    PreferenceLearning,
    require_learned,
)
from schedlab.studies.cloud.learners.settings import DROPOUT, PASSES, ReinforceSettings
from schedlab.studies.cloud.problem import CloudProblem, preference_of
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv
from schedlab.studies.cloud.rules.guides import Guides, guides

if TYPE_CHECKING:
    from torch import nn

SURE = math.log(0.9)  # an action at least this probable is no longer imitated, because it will be taken
AUGMENTATION = 0.01  # weight of the sum of both distances
MOST_MULTIPLIER = 1000.0


def build_network(observation: int, actions: int, hidden: int, seed: int, preference: str) -> nn.Sequential:
    """Return the network of a preference: two hidden layers. Its first parameters depend on seed and preference."""
    with torch_stream(seed, "network", preference):
        return layers(observation, (hidden, hidden), actions)


class PreferencePolicy:
    """A learned policy: the most probable action of the network (`network`) of the unit's preference."""

    def __init__(self, networks: Mapping[str, nn.Sequential], needed: Mapping[str, int] = MappingProxyType({})) -> None:
        self.networks, self.network, self.episodes_needed = networks, next(iter(networks.values())), needed

    def reset(self, unit: Unit) -> None:
        """Select the network of the unit's preference. Raises UserError if there is none."""
        preference = preference_of(unit)
        require_learned(preference, self.networks)
        self.network = self.networks[preference]

    @torch.no_grad()
    def act(self, observation: np.ndarray, mask: np.ndarray) -> int:
        """Return the most probable action that the mask allows."""
        logits = self.network(torch.from_numpy(observation)[None])
        return int(masked_log_probabilities(logits, torch.from_numpy(mask)[None])[0].argmax())

    @torch.no_grad()
    def added_uncertainty(self, observation: np.ndarray, mask: np.ndarray, seed: int) -> float:
        """Return the uncertainty of the network: the standard deviation of each action's probability over PASSES passes
        with dropout added behind the hidden layers, averaged over the actions.
        """
        values = torch.from_numpy(np.asarray(observation, dtype=np.float32))[None].repeat(PASSES, 1)
        with torch_stream(seed, "passes"):
            for layer in self.network:
                values = layer(values)
                if isinstance(layer, torch.nn.ReLU):
                    values = torch.nn.functional.dropout(values, DROPOUT, training=True)
        chances = masked(values, torch.from_numpy(mask)[None]).softmax(-1)
        return float(chances.std(0, correction=0).mean())


def ends_of(preferences: Sequence[str]) -> tuple[str, str]:
    """Return the preference of time alone and that of cost alone.

    Raises UserError if one of them is missing, and if a preference weighs unused resources.
    """
    weights = {name: weights_of(name) for name in preferences}
    found = [[name for name, of in weights.items() if of[goal] == 1.0] for goal in ("time", "cost")]
    if not all(found) or any(of["resource"] for of in weights.values()):
        expected = "weights of cost and time alone, with the ends 0:1:0 and 1:0:0 among them"
        raise UserError(
            "there is no range of time and cost to learn in",
            where="preferences, scalarisation: chebyshev",
            expected=expected,
        )
    return found[0][0], found[1][0]


@dataclass(frozen=True)
class Distance:
    """Distances from the least time and the least cost, `origin` (s, $), in units of `span` (s, $)."""

    origin: np.ndarray
    span: np.ndarray

    @staticmethod
    def between(fastest: np.ndarray, cheapest: np.ndarray) -> Distance:
        """Return the distances scaled by the range between two policies, each given by its time and cost, (2,)."""
        points = np.stack([fastest, cheapest])
        span = np.ptp(points, axis=0)
        return Distance(points.min(axis=0), np.where(span > 0, span, 1.0))

    def of(self, preference: str, points: np.ndarray) -> np.ndarray:
        """Return the larger weighted distance of times and costs (N, 2), plus a small share of the sum of both,
        (N,).
        """
        shares = (points - self.origin) / self.span
        weights = weights_of(preference)
        return (shares * [weights["time"], weights["cost"]]).max(axis=1) + AUGMENTATION * shares.sum(axis=1)


class _Learning(PreferenceLearning):
    """The learning job: networks and optimisers by preference. A phase is learned in one leg; with distances in two,
    because those need the fastest and the cheapest policy first.
    """

    def __init__(self, job: LearningJob, problems: Mapping[str, CloudProblem], settings: ReinforceSettings) -> None:
        super().__init__(job, problems, settings, settings.episodes_per_update)
        spec, wanted = job.spec, self.preferences
        self.networks = {
            name: build_network(self.sizes[0], self.sizes[1], settings.hidden, job.seed, name) for name in wanted
        }
        if parent := job.parent():
            for name, network in self.networks.items():
                load_module(network, parent.group(name), parent.path)
        self.needed = EpisodesNeeded()
        # By scenario and preference.
        self.best = defaultdict[str, BestEpisodes](lambda: BestEpisodes(settings.imitated))
        source = settings.initialisation
        found = {name: Guides({}, 0) if source == "cold" else guides(it, source) for name, it in problems.items()}
        self.guides = {name: guide.targets for name, guide in found.items()}
        self.multipliers = dict[str, np.ndarray]()  # (scenario, preference) -> multipliers of its constraints
        job.budget.decisions += sum(guide.intervals for guide in found.values())  # the probes' decisions
        self.ends = ends_of(wanted) if settings.scalarisation == "chebyshev" else ()
        if self.ends and len(spec.train_on) > 1:
            where = f"{spec.name}.yaml: train_on, learner.scalarisation"
            what = "distances of two phases differ in their ends"
            raise UserError(what, where=where, expected="one phase", remedy="learn in one phase")
        groups = [list(self.networks)]
        if self.ends:
            groups = [list(self.ends), [name for name in self.networks if name not in self.ends]]
        self.legs = [(phase, group) for phase in range(len(spec.train_on)) for group in groups]
        self.phases = len(self.legs)

    def networks_to_keep(self) -> Mapping[str, nn.Sequential]:
        """Return the network of each preference."""
        return self.networks

    def about(self) -> dict[str, Any]:
        """Return the number of episodes that each preference needed."""
        longest = self.job.spec.train_on[0].steps
        names = () if self.ends else self.networks  # the regret is about the weighted sum, not about distances
        return {"episodes_needed": {name: self.needed.first.get(name, longest) for name in names}}

    def begin(self, phase: int) -> Pace:
        """Begin a leg with fresh optimisers."""
        self.optimizers = {
            name: Adam(network.parameters(), self.settings.learning_rate) for name, network in self.networks.items()
        }
        self.distances: dict[str, Distance] = {}
        steps = self.job.spec.train_on[self.legs[phase][0]].steps
        self.updates = -(-steps // self.settings.episodes_per_update)
        return Pace(self.updates, self.settings.save_every)

    def step(self, phase: int, update: int) -> None:
        """Make an update of each preference that is learned in this leg."""
        number, preferences = self.legs[phase]
        scenarios = self.job.spec.train_on[number].scenarios
        for preference in preferences:
            self._step(number, update, scenarios[update % len(scenarios)], preference)

    def end(self, phase: int) -> None:
        """Imitate only the best episode of each preference, since with several episodes networks learn a mixture."""
        number, preferences = self.legs[phase]
        for preference in preferences:
            network = self.networks[preference]
            optimizer = Adam(network.parameters(), self.settings.learning_rate)
            scenarios = self.job.spec.train_on[number].scenarios
            best = [kept.take([0]) for scenario in scenarios if (kept := self.best[f"{scenario} {preference}"].kept)]
            for _ in range(self.settings.distilled if best else 0):
                chosen = [_logs(network, of) for of in best]
                if min(float(of.detach().min()) for of in chosen) > SURE:
                    break
                descend(optimizer, -torch.stack([of.mean() for of in chosen]).mean())

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all parameters, the optimisers' states and the best episodes."""
        groups = {f"optimizer {name}": optimizer.arrays() for name, optimizer in self.optimizers.items()}
        kept = {name: best.kept.arrays() for name, best in self.best.items() if best.kept is not None}
        groups |= {f"best {name}": arrays for name, arrays in kept.items()}
        groups |= {name: module_arrays(network) for name, network in self.networks.items()}
        multipliers = {name: values.tolist() for name, values in self.multipliers.items()}
        return {"best": list(kept), "needed": self.needed.first, "multipliers": multipliers}, grouped(groups)

    def load(self, kept: Checkpoint) -> None:
        """Restore the values that `state` returned."""
        for name, network in self.networks.items():
            load_module(network, kept.group(name), kept.path)
            self.optimizers[name].load(kept.group(f"optimizer {name}"))
        self.needed.first = dict(kept.meta["needed"])
        self.multipliers = {name: np.array(values) for name, values in kept.meta["multipliers"].items()}
        for name in kept.meta["best"]:
            self.best[name].kept = Episodes(**kept.group(f"best {name}"))

    def _step(self, phase: int, update: int, scenario: str, preference: str) -> None:
        """Take one gradient step for one preference, then its imitation steps."""
        left = 1.0 - update / self.updates  # share of the phase that is left
        names = ("phase", phase, "update", update, preference)
        seed, settings = derive_seed(self.job.seed, *names), self.settings
        network, optimizer = self.networks[preference], self.optimizers[preference]
        committed = round(settings.committed * settings.episodes_per_update)
        targets = generator(seed, "targets").integers(len(self.problems[scenario].replay.lattice), size=committed)
        if preference in self.guides[scenario]:
            targets[: (committed + 1) // 2] = self.guides[scenario][preference]
        far, branches = self._distance(scenario, preference), None
        if far and settings.branches and committed and (best := self.best[f"{scenario} {preference}"].kept):
            branches = Branches.drawn(best, committed // 2, generator(seed, "branches"))
        seen, reached = self._sampled(scenario, preference, seed, targets, branches)
        if phase == update == 0 and committed and preference in self.guides[scenario]:
            self._warm(seen.take([0]), network, optimizer)
            seen, reached = self._sampled(scenario, preference, derive_seed(self.job.seed, *names, "warm"), targets)
        if far:
            seen.returns = np.tile(-far(reached), (len(seen.returns), 1))
        multipliers = self._multipliers(scenario, preference)
        own = seen.take(slice(committed, None))
        returns = own.penalised(multipliers)
        baseline, scale = returns.mean(axis=1, keepdims=True), _spread(returns)
        logs = _all_logs(network, own)
        advantages = torch.from_numpy(((returns - baseline) / scale).astype(np.float32))
        chosen = of_actions(logs, torch.from_numpy(own.actions))
        optimizer.learning_rate = settings.learning_rate * left
        descend(optimizer, -(chosen * advantages).mean() - settings.entropy * left * entropy(logs).mean())
        if settings.imitated and settings.imitations:
            kept = self.best[f"{scenario} {preference}"].add(seen, multipliers)
            for other in self.networks if far and settings.shared else ():
                if other != preference and (of_other := self._distance(scenario, other)):
                    self.best[f"{scenario} {other}"].add_shared(seen, -of_other(reached))
            spread = _spread(own.returns) if len(multipliers) else scale  # rare excesses would hide other gains
            gains = np.clip((kept.penalised(multipliers) - baseline) / spread, 0.0, 1.0)
            self._imitate(kept, torch.from_numpy(gains.astype(np.float32)), network, optimizer)
        if len(multipliers):
            self.multipliers[f"{scenario} {preference}"] = self._dual_step(
                multipliers, own, reached[committed:], scenario
            )
        episode = (update + 1) * settings.episodes_per_update
        if not self.ends and phase == 0 and preference not in self.needed.first:
            reached_now = self._greedy(scenario, preference).penalised()
            self.needed.note(self.problems[scenario], preference, reached_now, episode)
        if update % settings.record_every == 0:
            place: Any = {
                "step": episode,
                "episode": episode,
                "update": update + 1,
                "phase": phase,
                "scenario": scenario.partition("/")[0],
            }
            greedy = self._greedy(scenario, preference)
            values = {"sample": -own.returns[0].mean(), "greedy": greedy.objective()}
            if len(multipliers):
                of = {"preference": preference, "acting": "greedy"}
                self.job.point("excess", float(greedy.excess.sum()), **place, of=of)
            for acting, value in values.items():
                metric = "distance" if far and acting == "sample" else "objective"
                self.job.point(metric, value, **place, of={"preference": preference, "acting": acting})

    def _sampled(
        self, scenario: str, preference: str, seed: int, targets: np.ndarray, branches: Branches | None = None
    ) -> tuple[Episodes, np.ndarray]:
        """Sample episodes (`sample_episodes`) and add them to the budget."""
        env = self.env(scenario, preference)
        self.job.budget.decisions += env.num_envs * env.replay.intervals
        self.job.budget.episodes += env.num_envs
        self.job.budget.trainings += env.num_envs
        return sample_episodes(env, self.networks[preference], seed, targets, self.settings.gamma, branches)

    def _distance(self, scenario: str, preference: str) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return the distance that a preference minimises, scaled by the current policies of time alone and cost alone;
        None if it minimises its weighted sum.
        """
        if not self.ends or preference in self.ends:
            return None
        if scenario not in self.distances:
            reached = [self._greedy(scenario, end) for end in self.ends]
            self.distances[scenario] = Distance.between(*(np.array([env.time, env.cost]) for env in reached))
        return partial(self.distances[scenario].of, preference)

    def _warm(self, guided: Episodes, network: nn.Sequential, optimizer: Adam) -> None:
        """Imitate the first committed episode, which goes to the allocation that the initialisation recommends."""
        for _ in range(self.settings.warm_start):
            descend(optimizer, -_logs(network, guided).mean())

    def _greedy(self, scenario: str, preference: str) -> CloudReplayEnv:
        """Return the environment after an episode with the most probable actions."""
        problem, policy = self.problems[scenario], PreferencePolicy({preference: self.networks[preference]})
        env, over = CloudReplayEnv(problem.replay, preference), False
        observation, _ = env.reset(seed=derive_seed(self.job.seed, "greedy") % 2**31)
        while not over:
            observation, _, done, cut, _ = env.step(policy.act(observation, env.action_masks()))
            over = done or cut
        return env

    def _multipliers(self, scenario: str, preference: str) -> np.ndarray:
        """Return the multipliers of a preference in a scenario, (k,); they begin at the scenario's value."""
        first = self.env(scenario, preference).multipliers
        return self.multipliers.get(f"{scenario} {preference}", first)

    def _dual_step(self, multipliers: np.ndarray, own: Episodes, reached: np.ndarray, scenario: str) -> np.ndarray:
        """Return the multipliers after a step of dual ascent: higher where episodes exceed a limit on average, lower
        where they stay below it. Time and cost have slack; the other constraints have none.
        """
        limits = self.problems[scenario].replay.constraints
        over = own.excess[0].mean(axis=0)
        for place in limits.totals:
            column = reached[:, 0 if limits.items[place] == "time" else 1]
            over[place] = float((column / max(limits.limits[limits.items[place]], 1e-12) - 1.0).mean())
        return np.clip(multipliers + self.settings.multiplier_rate * over, 0.0, MOST_MULTIPLIER)

    def _imitate(self, best: Episodes, gains: torch.Tensor, network: nn.Sequential, optimizer: Adam) -> None:
        """Raise the probability of the best episodes' actions, weighted by `gains`, (E, N): how much their returns
        exceed the policy's.
        """
        for _ in range(self.settings.imitations):
            descend(optimizer, -(_logs(network, best) * gains).mean())


def _spread(returns: np.ndarray) -> float:
    """Return the standard deviation of returns (E, N) from their mean in each interval; 1 if it is 0."""
    return float(np.sqrt(np.mean((returns - returns.mean(axis=1, keepdims=True)) ** 2))) or 1.0


def _all_logs(network: nn.Sequential, of: Episodes) -> torch.Tensor:
    """Return the log-probabilities of all actions in the states of episodes, (E, N, actions)."""
    return masked_log_probabilities(network(torch.from_numpy(of.observations)), torch.from_numpy(of.masks))


def _logs(network: nn.Sequential, of: Episodes) -> torch.Tensor:
    """Return the log-probabilities of the actions taken, (E, N)."""
    return of_actions(_all_logs(network, of), torch.from_numpy(of.actions))


def sample_episodes(
    env: CloudReplayVectorEnv,
    network: nn.Sequential,
    seed: int,
    targets: np.ndarray,
    gamma: float = 1.0,
    branches: Branches | None = None,
) -> tuple[Episodes, np.ndarray]:
    """Run parallel episodes with sampled valid actions; the first ones are committed to targets. Return the episodes,
    and their time (s) and cost ($), (N, 2). The same seed and parameters give the same episodes.

    targets   numbers of the allocations to which the committed episodes go
    gamma     discount factor of the returns
    branches  courses that the last of the committed episodes follow at first
    """
    rng, committed = generator(seed, "actions"), len(targets)
    observation, _ = env.reset(seed=derive_seed(seed, "episodes") % 2**31)
    kept: tuple[list[np.ndarray], ...] = ([], [], [], [], [])
    for interval in range(env.replay.intervals):
        mask = env.action_masks()
        with torch.no_grad():
            logs = masked_log_probabilities(network(torch.from_numpy(observation)), torch.from_numpy(mask))
        chances = logs.double().exp().numpy()
        drawn = rng.random((env.num_envs, 1)) * chances.sum(axis=1, keepdims=True)
        actions = (drawn < chances.cumsum(axis=1)).argmax(axis=1)
        if committed:
            actions[:committed] = committed_choices(env, targets)
        if branches is not None:
            actions[:committed] = branches.followed(interval, actions[:committed])
        for values, value in zip(kept[:3], (observation, mask, actions), strict=True):
            values.append(value)
        observation, rewards, _, _, final = env.step(actions)
        kept[3].append(rewards + env.added_excess @ env.multipliers if len(env.multipliers) else rewards)
        kept[4].append(env.added_excess)
    observations, masks, actions, rewards, excess = (np.stack(values) for values in kept)
    ended = final["final_info"]["scores"]
    reached = np.stack([ended["time"], ended["cost"]], axis=1)
    left = excess[::-1].cumsum(axis=0)[::-1]
    return Episodes(observations, masks, actions, discounted(rewards, gamma), left), reached


class ReinforceLearner(PreferenceLearner):
    """Learns each preference separately, with a new Adam optimiser in each phase."""

    kind, settings, learning = "cloud-reinforce", ReinforceSettings, _Learning

    def network(self, sizes: Sequence[int], hidden: int, preference: str) -> nn.Sequential:
        """Return the network into which stored parameters are loaded."""
        return build_network(sizes[0], sizes[1], hidden, 0, preference)

    def policy(
        self, networks: dict[str, nn.Sequential], meta: Mapping[str, Any], problem: CloudProblem
    ) -> PreferencePolicy:
        """Return the policy of learned networks."""
        del problem
        return PreferencePolicy(networks, meta["episodes_needed"])
