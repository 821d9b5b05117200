"""HDeepRM's learning agents on whole episodes: REINFORCE (Williams 1992) and advantage actor-critic.

Source: specification of the study hetero, section 6. Published: one episode a gradient step, returns standardised
within the episode, torch not seeded, an actor-critic that could not run. Here returns are standardised over the
episodes of a step, a baseline from which episodes of one decision learn too; every draw derives from the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from schedlab.config.contract import Curve, LearnPaths, PolicySpec, Problem, Split, Unit
from schedlab.config.errors import UserError
from schedlab.config.files import content_hash
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import load_module, module_arrays, read_checkpoint, read_progress, write_checkpoint
from schedlab.learning.reinforce import entropy
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.learners.compiled_episodes import CompiledEpisodes
from schedlab.studies.hetero.learners.networks import (
    AgentNetwork,
    EpisodeRecord,
    Episodes,
    Sampler,
    build_network,
    draw,
    log_probabilities,
    probabilities,
)
from schedlab.studies.hetero.learners.settings import PUBLISHED, ActorCriticSettings, PolicyGradientSettings

__all__ = ["PUBLISHED", "AgentPolicy", "PolicyGradientLearner", "PolicyGradientSettings"]
_KIND, _PROGRESS = "hetero-policy-gradient", "hetero-policy-gradient-progress"


def discounted(rewards: Sequence[float], gamma: float) -> np.ndarray:
    """Return G_t = r_t + gamma G_(t+1), (decisions,) float64."""
    found, ahead = np.zeros(len(rewards)), 0.0
    for place in range(len(rewards) - 1, -1, -1):
        ahead = found[place] = rewards[place] + gamma * ahead
    return found


def standardised(values: np.ndarray) -> np.ndarray:
    """Return values less their mean, by their unbiased standard deviation; a single value as it is."""
    if len(values) < 2:
        return values
    return (values - values.mean()) / (values.std(ddof=1) + np.finfo(np.float32).eps)


def less_workload_mean(records: Sequence[EpisodeRecord], returns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return each return less the mean return of all episodes of a workload from the same date on (interpolated).

    What comes from the workload cancels, not the actions' part. Source: the input-dependent baseline of H. Mao et al.,
    "Learning scheduling algorithms for data processing clusters", SIGCOMM 2019, section 5.3.
    """
    made = []
    for record, own in zip(records, returns, strict=True):
        at = np.array(record.times)
        others = [np.interp(at, other.times, theirs, right=0.0) for other, theirs in zip(records, returns, strict=True)]
        made.append(own - np.mean(others, axis=0))
    return made


def loss_of(network: AgentNetwork, records: Sequence[EpisodeRecord], settings: PolicyGradientSettings) -> torch.Tensor:
    """Return the loss of the episodes of an update, summed over decisions as published, by the number of episodes."""
    each = [discounted(record.rewards, settings.gamma) for record in records]
    if settings.standardise == "episode":
        each = [standardised(returns) for returns in each]
    if settings.standardise == "workload":
        each = less_workload_mean(records, each)
    joined = np.concatenate(each)
    if settings.standardise in ("update", "workload"):
        joined = standardised(joined)
    returns = torch.from_numpy(joined.astype(np.float32))
    observations, masks, actions = _joined(records)
    logits, values = network(observations)
    logs = log_probabilities(logits, masks)
    advantages = returns if values is None else returns - values.detach()
    loss = -(logs.gather(1, actions[:, None])[:, 0] * advantages).sum()
    if values is not None:
        loss = loss + torch.nn.functional.smooth_l1_loss(values, returns, reduction="sum")
    if settings.entropy:
        loss = loss - settings.entropy * entropy(logs).sum()
    return loss / len(records)


class AgentPolicy:
    """A learned policy: the most probable action, or a draw from a generator that begins anew with each unit."""

    def __init__(self, network: AgentNetwork, acting: str) -> None:
        self.network, self._acting = network, acting
        self._rng = generator(0, "policy-act")

    def reset(self, unit: Unit) -> None:
        """Begin a unit."""
        self._rng = generator(unit.seed, "policy-act")

    def act(self, observation: np.ndarray, mask: np.ndarray) -> int:
        """Return an action that the mask (actions,) allows."""
        chances = probabilities(self.network, observation, mask)
        return int(chances.argmax()) if self._acting == "greedy" else draw(chances, self._rng)

    def probabilities(self, observation: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return the probability of each action, (actions,) float64."""
        return probabilities(self.network, observation, mask)


class PolicyGradientLearner:
    """Learns on the problems' training units in turn; a phase's steps are episodes. Resumes bit for bit."""

    def __init__(self, kind: type[PolicyGradientSettings] = PolicyGradientSettings) -> None:
        self._kind = kind

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Learn phase after phase, each with a fresh Adam, and write the final parameters.

        Raises UserError where a scenario has no environment or training unit, or other sizes than the first.
        """
        use_one_thread()
        settings = validate(self._kind, spec.params)
        envs = {scenario: _environments(scenario, problem) for scenario, problem in problems.items()}
        shapes = {scenario: _shape(some[0]) for scenario, some in envs.items()}
        first, shape = next(iter(shapes.items()))
        for scenario, found in shapes.items():
            if found != shape:
                what = f"{found[0]} numbers are observed and {found[1]} actions offered"
                expected = f"{shape[0]} and {shape[1]}, as in scenario {first}"
                raise UserError(what, where=f"scenario {scenario}", expected=expected)
        names = envs[first][0].action_names
        network = build_network(shape[0], names, settings.hidden, settings.critic, seed, settings.head)
        if paths.start is not None:
            load_module(network, read_checkpoint(paths.start, _KIND).group("network"), paths.start)
        samplers: dict[str, Sequence[Sampler]] = {}
        for scenario, some in envs.items():
            kind = partial(CompiledEpisodes, where=f"scenario {scenario}") if settings.compiled else Episodes
            samplers[scenario] = [kind(env) for env in some]
        run = _Run(network, settings, samplers, spec, seed, paths.progress / "policy_gradient.zip")
        run.learn()
        for point in run.points:
            curve(**point)
        meta = {"kind": _KIND, "observation": shape[0], "actions": shape[1]}
        meta |= {"hidden": settings.hidden, "critic": settings.critic, "head": settings.head, "acting": settings.acting}
        arrays = {f"network/{name}": array for name, array in module_arrays(network).items()}
        write_checkpoint(paths.checkpoint, meta, arrays)

    def load(self, checkpoint: Path, problem: Problem) -> AgentPolicy:
        """Return the learned policy. Raises UserError where it was learned for other observations or actions."""
        kept = read_checkpoint(checkpoint, _KIND)
        env = _environments("of the policy", problem, ("test", "validation", "train"))[0]
        meta = kept.meta
        size, _ = _shape(env)
        network = build_network(size, env.action_names, meta["hidden"], meta["critic"], 0, meta["head"])
        load_module(network, kept.group("network"), checkpoint)
        return AgentPolicy(network, meta["acting"])


@dataclass
class _Run:
    """One learning job. `points` are those of its curves so far, as keywords."""

    network: AgentNetwork
    settings: PolicyGradientSettings
    samplers: Mapping[str, Sequence[Sampler]]
    spec: PolicySpec
    seed: int
    progress: Path

    def __post_init__(self) -> None:
        self.points: list[dict[str, Any]] = []
        self.phase = self.update = self.averaged = 0
        self.mean: dict[str, np.ndarray] = {}
        phases, params = [str(phase) for phase in self.spec.train_on], self.settings.model_dump()
        self.digest = content_hash({"params": params, "phases": phases, "seed": self.seed})
        self.optimizer = Adam(self.network.parameters(), self.settings.learning_rate)

    def learn(self) -> None:
        """Go on from where an interrupted job of the same values was, to the end of the last phase."""
        self._resume()
        for number in range(self.phase, len(self.spec.train_on)):
            phase = self.spec.train_on[number]
            updates = -(-phase.steps // self.settings.episodes_per_update)
            while self.update < updates:
                left = phase.steps - self._episode()
                self._step(number, phase.scenarios, min(self.settings.episodes_per_update, left))
                if self.update > updates * (1 - self.settings.average):
                    self._add_to_mean()
                if self.update % self.settings.save_every == 0:
                    self._save()
            if self.averaged:
                load_module(self.network, self.mean, self.progress)
            self.phase, self.update, self.averaged = number + 1, 0, 0
            self.optimizer = Adam(self.network.parameters(), self.settings.learning_rate)

    def _episode(self) -> int:
        return self.update * self.settings.episodes_per_update

    def _add_to_mean(self) -> None:
        """Take the parameters into their mean over the updates at the end of a phase."""
        self.averaged += 1
        now = module_arrays(self.network)
        kept = self.mean if self.averaged > 1 else now
        self.mean = {name: kept[name] + (now[name] - kept[name]) / self.averaged for name in now}

    def _step(self, phase: int, scenarios: Sequence[str], count: int) -> None:
        choices = [(scenario, sampler) for scenario in scenarios for sampler in self.samplers[scenario]]
        numbers = range(self._episode(), self._episode() + count)
        turn = [self.update] * count if self.settings.standardise == "workload" else numbers
        chosen = [choices[number % len(choices)] for number in turn]
        seed = derive_seed(self.seed, "phase", phase)
        records = [one.sample(self.network, seed, number) for (_, one), number in zip(chosen, numbers, strict=True)]
        loss = loss_of(self.network, records, self.settings)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.update += 1
        if (self.update - 1) % self.settings.record_every == 0:
            for scenario in dict.fromkeys(name for name, _ in chosen):
                mine = [record for (name, _), record in zip(chosen, records, strict=True) if name == scenario]
                self._record(phase, scenario, mine, float(loss.detach()))

    def _record(self, phase: int, scenario: str, records: Sequence[EpisodeRecord], loss: float) -> None:
        """Note mean return and loss, and each action's share and its probability in the states met."""
        done = self._episode()
        place: dict[str, Any] = {
            "step": done,
            "episode": done,
            "update": self.update,
            "phase": phase,
            "scenario": scenario,
        }
        values = {"return": float(np.mean([sum(record.rewards) for record in records])), "loss": loss}
        names = self.samplers[scenario][0].action_names
        observations, masks, actions = _joined(records)
        with torch.no_grad():
            chances = log_probabilities(self.network(observations)[0], masks).double().exp().mean(0).tolist()
        shares = (torch.bincount(actions, minlength=len(names)).double() / len(actions)).tolist()
        values |= {f"probability {name}": chance for name, chance in zip(names, chances, strict=True)}
        values |= {f"share {name}": share for name, share in zip(names, shares, strict=True)}
        self.points += [{"metric": metric, "value": value, **place} for metric, value in values.items()]

    def _save(self) -> None:
        meta: dict[str, Any] = {"kind": _PROGRESS, "digest": self.digest, "points": self.points}
        meta |= {"phase": self.phase, "update": self.update, "averaged": self.averaged}
        arrays = {f"network/{name}": array for name, array in module_arrays(self.network).items()}
        arrays |= {f"optimizer/{name}": array for name, array in self.optimizer.arrays().items()}
        arrays |= {f"mean/{name}": array for name, array in self.mean.items()}
        write_checkpoint(self.progress, meta, arrays)

    def _resume(self) -> None:
        kept = read_progress(self.progress, _PROGRESS, self.digest)
        if kept is not None:
            load_module(self.network, kept.group("network"), self.progress)
            self.optimizer.load(kept.group("optimizer"))
            self.phase, self.update, self.averaged = (kept.meta[key] for key in ("phase", "update", "averaged"))
            self.points, self.mean = list(kept.meta["points"]), kept.group("mean")


def _joined(records: Sequence[EpisodeRecord]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Observations (decisions, size), masks (decisions, actions) and actions (decisions,) of all episodes in a row."""
    observations = torch.from_numpy(np.stack([row for record in records for row in record.observations]))
    masks = torch.from_numpy(np.stack([row for record in records for row in record.masks]))
    return observations, masks, torch.tensor([action for record in records for action in record.actions])


def _shape(env: HeteroEnv) -> tuple[int, int]:
    return env.observation_space.shape[0], int(env.action_space.n)


def _environments(scenario: str, problem: Problem, splits: Sequence[Split] = ("train",)) -> list[HeteroEnv]:
    units = [unit for split in splits for unit in problem.units(split)]
    envs: list[Any] = [env for unit in units if (env := problem.env(unit, unit.seed)) is not None]
    if not envs:
        expected = "at least one unit of the split train"
        raise UserError("no environment to learn on", where=f"scenario {scenario}", expected=expected)
    return envs


LEARNERS = {
    "reinforce": partial(PolicyGradientLearner, PolicyGradientSettings),
    "actor_critic": partial(PolicyGradientLearner, ActorCriticSettings),
}
