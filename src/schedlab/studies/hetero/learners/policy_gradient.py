"""HDeepRM's learning agents on whole episodes: REINFORCE (Williams 1992) and advantage actor-critic.

See docs/reference/hetero_model.md. HDeepRM takes a gradient step per episode, standardises returns within the episode
and does not seed torch, and its actor-critic cannot run. Here returns are by default standardised over the episodes of
a step, a baseline from which episodes of one decision learn too, and every draw is derived from the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Problem, Split, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import (
    Checkpoint,
    grouped,
    load_module,
    module_arrays,
    read_checkpoint,
    write_checkpoint,
)
from schedlab.learning.environments import common_spaces
from schedlab.learning.job import LearningJob, Pace
from schedlab.learning.policy_gradient import (
    descend,
    discounted,
    entropy,
    masked_log_probabilities,
    of_actions,
    standardised,
)
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.kernels.episode_kernel import run_agent
from schedlab.studies.hetero.kernels.run_kernel import Run
from schedlab.studies.hetero.learners.compiled_episodes import (
    CompiledEpisodes,
    CompiledJobs,
    kernel_network,
    pair_codes,
    supported,
)
from schedlab.studies.hetero.learners.networks import (
    AgentNetwork,
    EpisodeRecord,
    Episodes,
    Sampler,
    build_network,
    draw,
    probabilities,
)
from schedlab.studies.hetero.learners.settings import ActorCriticSettings, PolicyGradientSettings
from schedlab.studies.hetero.simulator.decisions import random_policies

__all__ = ["AgentPolicy", "PolicyGradientLearner", "PolicyGradientSettings"]
_KIND = "hetero-policy-gradient"


def less_workload_mean(records: Sequence[EpisodeRecord], returns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return each return minus the mean return, from the same date on (interpolated), of all episodes of a workload.

    The workload's part of the return cancels, the actions' part does not. Source: the input-dependent baseline of
    H. Mao et al., "Learning scheduling algorithms for data processing clusters", SIGCOMM 2019, section 5.3.
    """
    made = []
    for record, own in zip(records, returns, strict=True):
        at = np.array(record.times)
        others = [np.interp(at, other.times, theirs, right=0.0) for other, theirs in zip(records, returns, strict=True)]
        made.append(own - np.mean(others, axis=0))
    return made


def loss_of(network: AgentNetwork, records: Sequence[EpisodeRecord], settings: PolicyGradientSettings) -> torch.Tensor:
    """Return the loss of the episodes of an update: the sum over decisions, as in HDeepRM, divided by the number of
    episodes.
    """
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
    logs = masked_log_probabilities(logits, masks)
    advantages = returns if values is None else returns - values.detach()
    loss = -(of_actions(logs, actions) * advantages).sum()
    if values is not None:
        loss = loss + torch.nn.functional.smooth_l1_loss(values, returns, reduction="sum")
    if settings.entropy:
        loss = loss - settings.entropy * entropy(logs).sum()
    return loss / len(records)


class AgentPolicy:
    """A learned policy, which takes the most probable action or draws one from a generator that restarts with each
    unit.

    decisions  the scenario's settings of decisions; None: the policy is not played on the compiled kernel
    """

    def __init__(self, network: AgentNetwork, acting: str, decisions: DecisionSettings | None = None) -> None:
        self.network, self._acting = network, acting
        self._rng = generator(0, "policy-act")
        self._pairs, self._seed = None, 0
        if decisions is not None and acting == "greedy" and supported(decisions):
            self._pairs, self._weights = pair_codes(decisions.selection), kernel_network(network)

    def reset(self, unit: Unit) -> None:
        """Seed the generators for a unit."""
        self._rng, self._seed = generator(unit.seed, "policy-act"), derive_seed(unit.seed, "episode", 0)

    def run_compiled(self, jobs: CompiledJobs) -> Run | None:
        """Return the run of a workload on the compiled kernel; None if the kernel does not support the policy."""
        if self._pairs is None:
            return None
        return run_agent(jobs.jobs, jobs.cluster, self._weights, self._pairs, random_policies(self._seed))

    def act(self, observation: np.ndarray, mask: np.ndarray) -> int:
        """Return an action that the mask (actions,) allows."""
        chances = probabilities(self.network, observation, mask)
        return int(chances.argmax()) if self._acting == "greedy" else draw(chances, self._rng)

    def probabilities(self, observation: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return the probability of each action, (actions,) float64."""
        return probabilities(self.network, observation, mask)


class PolicyGradientLearner:
    """Learns on the problems' training units in turn; a phase's steps are episodes. A resumed job writes the same
    bytes.
    """

    def __init__(self, kind: type[PolicyGradientSettings] = PolicyGradientSettings) -> None:
        self._kind = kind

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn phase after phase, each with a fresh Adam, write the final parameters and return the budget used.

        Raises UserError if a scenario has no environment or training unit, or other sizes than the first scenario.
        """
        use_one_thread()
        settings = validate(self._kind, spec.params)
        envs = {scenario: _environments(scenario, problem) for scenario, problem in problems.items()}
        common_spaces({scenario: some[0] for scenario, some in envs.items()})
        env = next(iter(envs.values()))[0]
        shape, names = _shape(env), env.action_names
        network = build_network(shape[0], names, settings.hidden, settings.critic, seed, settings.head)
        job = LearningJob(_KIND, settings.model_dump(), spec, seed, paths, curve)
        if parent := job.parent():
            load_module(network, parent.group("network"), parent.path)
        samplers: dict[str, Sequence[Sampler]] = {}
        for scenario, some in envs.items():
            kind = partial(CompiledEpisodes, where=f"scenario {scenario}") if settings.compiled else Episodes
            samplers[scenario] = [kind(env) for env in some]
        job.run(_Learning(job, network, settings, samplers))
        meta = {"kind": _KIND, "observation": shape[0], "actions": shape[1]}
        meta |= {"hidden": settings.hidden, "critic": settings.critic, "head": settings.head, "acting": settings.acting}
        write_checkpoint(paths.checkpoint, meta, grouped({"network": module_arrays(network)}))
        return job.budget

    def load(self, checkpoint: Path, problem: Problem) -> AgentPolicy:
        """Return the learned policy. Raises UserError if it was learned for other observations or actions."""
        kept = read_checkpoint(checkpoint, _KIND)
        env = _environment(problem)
        meta = kept.meta
        size, _ = _shape(env)
        network = build_network(size, env.action_names, meta["hidden"], meta["critic"], 0, meta["head"])
        load_module(network, kept.group("network"), checkpoint)
        return AgentPolicy(network, meta["acting"], env.settings)


@dataclass
class _Learning:
    """The network with its optimiser, and the mean of its parameters over the last updates of a phase."""

    job: LearningJob
    network: AgentNetwork
    settings: PolicyGradientSettings
    samplers: Mapping[str, Sequence[Sampler]]

    def begin(self, phase: int) -> Pace:
        """Begin with a fresh optimiser."""
        self.optimizer = Adam(self.network.parameters(), self.settings.learning_rate)
        self.averaged, self.mean = 0, dict[str, np.ndarray]()
        steps = self.job.spec.train_on[phase].steps
        return Pace(-(-steps // self.settings.episodes_per_update), self.settings.save_every)

    def step(self, phase: int, update: int) -> None:
        """Sample episodes and take a gradient step."""
        settings, of_phase = self.settings, self.job.spec.train_on[phase]
        begin = update * settings.episodes_per_update
        numbers = range(begin, min(begin + settings.episodes_per_update, of_phase.steps))
        choices = [(scenario, sampler) for scenario in of_phase.scenarios for sampler in self.samplers[scenario]]
        turn = [update] * len(numbers) if settings.standardise == "workload" else numbers
        chosen = [choices[number % len(choices)] for number in turn]
        seed = derive_seed(self.job.seed, "phase", phase)
        records = [one.sample(self.network, seed, number) for (_, one), number in zip(chosen, numbers, strict=True)]
        loss = loss_of(self.network, records, settings)
        descend(self.optimizer, loss)
        self.job.budget.decisions += sum(len(record.actions) for record in records)
        self.job.budget.episodes += len(records)
        if update % settings.record_every == 0:
            for scenario in dict.fromkeys(name for name, _ in chosen):
                mine = [record for (name, _), record in zip(chosen, records, strict=True) if name == scenario]
                self._record(update + 1, scenario, mine, float(loss.detach()))
        updates = -(-of_phase.steps // settings.episodes_per_update)
        if update + 1 > updates * (1 - settings.average):
            self._add_to_mean()

    def end(self, phase: int) -> None:
        """Load the mean parameters if the settings ask for them."""
        del phase
        if self.averaged:
            load_module(self.network, self.mean, "the mean of the last updates")

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the parameters, their mean and the optimiser's memory."""
        groups = {"network": module_arrays(self.network), "optimizer": self.optimizer.arrays(), "mean": self.mean}
        return {"averaged": self.averaged}, grouped(groups)

    def load(self, kept: Checkpoint) -> None:
        """Restore the values that `state` returned."""
        load_module(self.network, kept.group("network"), kept.path)
        self.optimizer.load(kept.group("optimizer"))
        self.averaged, self.mean = kept.meta["averaged"], kept.group("mean")

    def _add_to_mean(self) -> None:
        self.averaged += 1
        now = module_arrays(self.network)
        kept = self.mean if self.averaged > 1 else now
        self.mean = {name: kept[name] + (now[name] - kept[name]) / self.averaged for name in now}

    def _record(self, update: int, scenario: str, records: Sequence[EpisodeRecord], loss: float) -> None:
        """Record mean return and loss, and each action's share and its mean probability in the observed states."""
        done = update * self.settings.episodes_per_update
        values = {"return": float(np.mean([sum(record.rewards) for record in records])), "loss": loss}
        names = self.samplers[scenario][0].action_names
        observations, masks, actions = _joined(records)
        with torch.no_grad():
            logs = masked_log_probabilities(self.network(observations)[0], masks)
        shares = (torch.bincount(actions, minlength=len(names)).double() / len(actions)).tolist()
        chances = logs.double().exp().mean(0).tolist()
        place: Any = {"step": done, "episode": done, "update": update, "scenario": scenario}
        self.job.record(values, **place)
        for name, chance, share in zip(names, chances, shares, strict=True):
            self.job.record({"probability": chance, "share": share}, **place, of={"action": name})


def _joined(records: Sequence[EpisodeRecord]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return observations (decisions, size), masks (decisions, actions) and actions (decisions,) of all episodes in a
    row.
    """
    observations = torch.from_numpy(np.stack([row for record in records for row in record.observations]))
    masks = torch.from_numpy(np.stack([row for record in records for row in record.masks]))
    return observations, masks, torch.tensor([action for record in records for action in record.actions])


def _shape(env: HeteroEnv) -> tuple[int, int]:
    return env.observation_space.shape[0], int(env.action_space.n)


def _environment(problem: Problem) -> HeteroEnv:
    """Return the environment of the first unit."""
    splits: tuple[Split, ...] = ("test", "validation", "train")
    unit = next(unit for split in splits for unit in problem.units(split))
    env: Any = problem.env(unit, unit.seed)
    if env is None:
        raise UserError("there are no decisions to make", where="the policy's scenario", expected="managed pstates")
    return env


def _environments(scenario: str, problem: Problem) -> list[HeteroEnv]:
    envs: list[Any] = [env for unit in problem.units("train") if (env := problem.env(unit, unit.seed)) is not None]
    if not envs:
        expected = "at least one unit of the split train"
        raise UserError("no environment to learn on", where=f"scenario {scenario}", expected=expected)
    return envs


LEARNERS = {
    "reinforce": partial(PolicyGradientLearner, PolicyGradientSettings),
    "actor_critic": partial(PolicyGradientLearner, ActorCriticSettings),
}
