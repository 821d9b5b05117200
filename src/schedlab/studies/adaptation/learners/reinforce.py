"""REINFORCE over the table (Williams 1992): as published, and repaired with baseline and entropy bonus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from schedlab.config.contract import Curve, LearnPaths, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.files import content_hash
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import load_module, module_arrays, read_progress, write_checkpoint
from schedlab.learning.reinforce import MovingMean, cooled, entropy, normalised
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.adaptation.learners.encoders import Encoding
from schedlab.studies.adaptation.learners.network_policy import (
    Batch,
    Group,
    NetworkPolicy,
    batches_of,
    groups_of,
    load_policy,
    phase_settings,
    save_network,
    start_network,
)
from schedlab.studies.adaptation.learners.policy_network import PolicyNetwork
from schedlab.studies.adaptation.learners.settings import ReinforceSettings
from schedlab.studies.adaptation.problem import AdaptationProblem

_PROGRESS = "adaptation-reinforce-progress"
_BLOCK = 1024  # episodes whose random numbers are drawn together: no generator state in checkpoints
_CURVES = ("objective", "reward", "accuracy", "probability_best")


class ReinforceLearner:
    """Learns a policy network from sampled episodes; resumes an interrupted job with the same result bit for bit."""

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Learn phase after phase, each with a fresh Adam, and write the final parameters (never the parent's)."""
        use_one_thread()
        settings = validate(ReinforceSettings, spec.params)
        network, encoding = start_network(settings, problems, seed, paths)
        run = _Run(network, encoding, problems, spec, seed)
        progress = paths.progress / "reinforce.zip"
        begin = run.resume(progress)
        for number in range(begin, len(spec.train_on)):
            run.phase(number, progress)
        run.emit(curve)
        save_network(paths, settings, network, encoding, problems)

    def load(self, checkpoint: Path, problem: AdaptationProblem) -> NetworkPolicy:
        """Return the learned policy."""
        return load_policy(checkpoint, problem)


@dataclass
class _PhaseState:
    """What changes within a phase, beside the network: everything that a resumed job needs."""

    optimizer: Adam
    baselines: list[MovingMean]
    curves: dict[str, np.ndarray]  # a value an episode
    episode: int = 0
    batches: dict[tuple[int, ...], list[tuple[Batch, list[int]]]] = field(default_factory=dict)


class _Run:
    """One learning job: its phases, and the file that it can be continued from."""

    def __init__(
        self,
        network: PolicyNetwork,
        encoding: Encoding,
        problems: Mapping[str, AdaptationProblem],
        spec: PolicySpec,
        seed: int,
    ) -> None:
        self.network, self.encoding, self.spec, self.seed = network, encoding, spec, seed
        self.settings = [phase_settings(ReinforceSettings, spec, phase) for phase in spec.train_on]
        phases = zip(spec.train_on, self.settings, strict=True)
        self.groups = [groups_of(problems, phase.scenarios, settings.slope) for phase, settings in phases]
        for settings, groups in zip(self.settings, self.groups, strict=True):
            for group in groups:
                _check_returns(group, settings)
        self.recorded: list[dict[str, np.ndarray]] = []
        self._begun: _PhaseState | None = None
        self.drawn: tuple[tuple[int, int], np.ndarray] = ((-1, -1), np.zeros(0))
        self.digest = _digest(spec, seed, self.groups)

    @property
    def state(self) -> _PhaseState:
        """The state of the phase that runs."""
        assert self._begun is not None
        return self._begun

    def resume(self, progress: Path) -> int:
        """Take up what an interrupted job of the same values left; return the phase to go on with."""
        kept = read_progress(progress, _PROGRESS, self.digest)
        if kept is None:
            return 0
        number = int(kept.meta["phase"])
        load_module(self.network, kept.group("network"), progress)
        self.recorded = [kept.group(f"curve/{past}") for past in range(number)]
        self._begun = self._fresh(number)
        self.state.optimizer.load(kept.group("optimizer"))
        self.state.episode = int(kept.meta["episode"])
        self.state.curves = {name: np.array(values) for name, values in kept.group(f"curve/{number}").items()}
        self.state.baselines = [MovingMean(*values) for values in kept.meta["baselines"]]
        return number

    def phase(self, number: int, progress: Path) -> None:
        """Run a phase from where it stands to its end."""
        settings, steps = self.settings[number], self.spec.train_on[number].steps
        state = self._begun = self._begun or self._fresh(number)
        while state.episode < steps:
            before = state.episode
            self._update(number, min(settings.episodes_per_update, steps - before))
            if before // settings.save_every != state.episode // settings.save_every:
                self._save(number, progress)
        self.recorded.append(state.curves)
        self._begun = None

    def emit(self, curve: Curve) -> None:
        """Hand out the curves of all phases: means over `record_every` episodes of each scenario."""
        for number, recorded in enumerate(self.recorded):
            settings, groups = self.settings[number], self.groups[number]
            for place, group in enumerate(groups):
                episodes = np.arange(place, len(recorded["reward"]), len(groups))
                for first in range(0, len(episodes), settings.record_every):
                    some = episodes[first : first + settings.record_every]
                    update = int(some[-1]) // settings.episodes_per_update
                    at: dict[str, Any] = {"step": int(some[-1]) + 1, "episode": int(some[-1]) + 1, "update": update + 1}
                    for name in _CURVES:
                        value = float(recorded[name][some].mean())
                        if np.isfinite(value):
                            curve(name, value, phase=number, scenario=group.scenario, **at)

    def _fresh(self, number: int) -> _PhaseState:
        settings = self.settings[number]
        optimizer = Adam(self.network.parameters(), settings.learning_rate)
        curves = {name: np.zeros(self.spec.train_on[number].steps) for name in _CURVES}
        return _PhaseState(optimizer, [MovingMean() for _ in self.groups[number]], curves)

    def _save(self, number: int, progress: Path) -> None:
        state = self.state
        meta = {
            "kind": _PROGRESS,
            "digest": self.digest,
            "phase": number,
            "episode": state.episode,
            "baselines": [[mean.keep, mean.total, mean.weight] for mean in state.baselines],
        }
        arrays = {f"network/{name}": array for name, array in module_arrays(self.network).items()}
        arrays |= {f"optimizer/{name}": array for name, array in state.optimizer.arrays().items()}
        for past, curves in enumerate([*self.recorded, state.curves]):
            arrays |= {f"curve/{past}/{name}": values for name, values in curves.items()}
        write_checkpoint(progress, meta, arrays)

    def _update(self, number: int, count: int) -> None:
        """Sample `count` episodes, the scenarios in turn, and take one gradient step."""
        settings, state, groups = self.settings[number], self.state, self.groups[number]
        episodes = np.arange(state.episode, state.episode + count)
        of_group = episodes % len(groups)
        uniforms = self._uniforms(number, episodes)
        tau = cooled(settings.temperature, settings.temperature_factor, settings.temperature_every, state.episode)
        losses = []
        for batch, places in self._batches(number, tuple(sorted(set(of_group.tolist())))):
            mine = np.flatnonzero(np.isin(of_group, places))
            local = np.searchsorted(places, of_group[mine])
            sampled = _Sampled.draw(
                _log_probabilities(batch, self.network, settings, tau), batch, local, uniforms[mine]
            )
            losses.append(self._loss(sampled, settings, groups, of_group[mine], episodes[mine]) * (len(mine) / count))
        times = state.episode // settings.learning_rate_every
        fallen = settings.learning_rate * settings.learning_rate_factor**times
        state.optimizer.learning_rate = max(fallen, settings.minimum_learning_rate)
        state.optimizer.zero_grad()
        sum(losses).backward()
        state.optimizer.step()
        state.episode += count

    def _loss(
        self,
        sampled: _Sampled,
        settings: ReinforceSettings,
        groups: list[Group],
        of_group: np.ndarray,
        episodes: np.ndarray,
    ) -> torch.Tensor:
        reward = np.array([groups[g].reward[s] for g, s in zip(of_group, sampled.sequences, strict=True)])
        advantage = self._advantage(_returns(reward, settings), settings, of_group)
        objective = -sampled.taken.mean(-1) * torch.from_numpy(advantage.astype(np.float32))
        accuracy = [groups[g].accuracy[s] for g, s in zip(of_group, sampled.sequences, strict=True)]
        best = sampled.probability([int(groups[g].reward.argmax()) for g in of_group])
        for name, values in zip(_CURVES, (objective.detach().numpy(), reward, accuracy, best), strict=True):
            self.state.curves[name][episodes] = values
        loss = objective.mean()
        return loss - settings.entropy * sampled.entropies().mean() if settings.entropy else loss

    def _advantage(self, returns: np.ndarray, settings: ReinforceSettings, of_group: np.ndarray) -> np.ndarray:
        """Returns less their scenario's moving baseline; first returns are their own baseline."""
        advantage = returns.copy()
        if settings.baseline == "moving":
            for group in np.unique(of_group):
                mean, own = self.state.baselines[group], of_group == group
                advantage[own] -= mean.value if mean.weight else returns[own].mean()
                mean.update(returns[own])
        return normalised(advantage) if settings.normalise else advantage

    def _uniforms(self, number: int, episodes: np.ndarray) -> np.ndarray:
        """Random numbers (episodes, decisions): each episode's are the same however the job is cut."""
        width = max(group.tree.decisions for group in self.groups[number])
        blocks = range(episodes[0] // _BLOCK, episodes[-1] // _BLOCK + 1)
        drawn = np.concatenate([self._block(number, block, width) for block in blocks])
        return drawn[episodes - blocks[0] * _BLOCK]

    def _block(self, number: int, block: int, width: int) -> np.ndarray:
        if self.drawn[0] != (number, block):
            self.drawn = ((number, block), generator(self.seed, "policy-sample", number, block).random((_BLOCK, width)))
        return self.drawn[1]

    def _batches(self, number: int, places: tuple[int, ...]) -> list[tuple[Batch, list[int]]]:
        """The batches of some groups of a phase, each with the groups' places in the phase."""
        known = self.state.batches
        if places not in known:
            groups = self.groups[number]
            known[places] = []
            for tree in dict.fromkeys(groups[place].tree for place in places):
                same = [place for place in places if groups[place].tree == tree]
                known[places].append((batches_of([groups[place] for place in same], self.encoding)[0], same))
        return known[places]


@dataclass(frozen=True)
class _Sampled:
    """Sampled episodes: sequences, log-probabilities of their actions (episodes, decisions), of all (groups, ...)."""

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
        """Entropy of the policy in each state met: (episodes, decisions)."""
        return entropy(self.logs)[self.local[:, None], self.batch.tree.states[self.sequences]]

    def probability(self, sequences: list[int]) -> np.ndarray:
        """Return the probability of a sequence in each episode's group."""
        tree = self.batch.tree
        logs = self.logs.detach().numpy()[self.local[:, None], tree.states[sequences], tree.choices[sequences]]
        return np.exp(logs.sum(-1))


def _log_probabilities(batch: Batch, network: PolicyNetwork, settings: ReinforceSettings, tau: float) -> torch.Tensor:
    """Log-probabilities that episodes are sampled with: (groups, prefixes, actions)."""
    logits = batch.logits(network)
    if tau <= 1:
        return logits.log_softmax(-1)
    if settings.temperature_on == "logits":
        return (logits / tau).log_softmax(-1)
    return (logits.softmax(-1) / tau).log_softmax(-1)


def _returns(reward: np.ndarray, settings: ReinforceSettings) -> np.ndarray:
    """The returns of episodes from their rewards in the table."""
    return reward if settings.returns == "plain" else 100 * np.tan(reward * np.pi / 2)


def _check_returns(group: Group, settings: ReinforceSettings) -> None:
    if settings.returns == "tangent" and not (group.reward.min() >= 0 and group.reward.max() < 1):
        what = "returns: tangent needs an accuracy as reward"
        expected = "rewards from 0 to below 1"
        remedy = "set reward.metric: accuracy, or returns: plain"
        raise UserError(what, where=f"learner.returns (scenario {group.scenario})", expected=expected, remedy=remedy)


def _digest(spec: PolicySpec, seed: int, groups: list[list[Group]]) -> str:
    """Hash of everything that determines the job, so that progress of another one is not taken up."""
    phases = [[list(phase.scenarios), phase.steps, dict(phase.params)] for phase in spec.train_on]
    tables = [[group.reward.tolist() for group in of_phase] for of_phase in groups]
    return content_hash([dict(spec.params), phases, seed, spec.parent, tables])
