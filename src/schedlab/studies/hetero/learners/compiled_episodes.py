"""Samples episodes of an environment's workload on the compiled kernel, like `Episodes`."""

from __future__ import annotations

from math import log1p

import numpy as np
from gymnasium.utils.seeding import np_random

from schedlab.batsim.files.profiles import Homogeneous
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.hetero.env.env import HeteroEnv, drawn_seed
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR, DecisionSettings, LegacySettings
from schedlab.studies.hetero.learners import episode_kernel as kernel
from schedlab.studies.hetero.learners.networks import AgentNetwork, EpisodeRecord
from schedlab.studies.hetero.simulator.decisions import random_policies
from schedlab.studies.hetero.simulator.episode import Jobs
from schedlab.studies.hetero.simulator.resources import GIGA, KB_PER_GB, KB_PER_MB, OVERSUBSCRIBED, ResourceModel

KERNEL_CASE = {
    "observation": "heads",
    "objective": "avg_job_slowdown",
    "time_weighted": True,
    "void": False,
    "legacy": LegacySettings(),
}


class CompiledEpisodes:
    """One workload of an environment. Raises UserError for decisions, jobs and core policies that the kernel does not
    support.
    """

    def __init__(self, env: HeteroEnv, where: str = "environment") -> None:
        _require(env.settings, where)
        self.action_names = env.action_names
        model = ResourceModel(env.cluster.hierarchy)
        self.jobs, self.cluster = _jobs(env.workloads[0], model, where), _cluster(model)
        split = [name.split(PAIR_SEPARATOR) for name in self.action_names]
        self.pairs = np.array([(kernel.JOB_CODES[job], kernel.CORE_CODES[core]) for job, core in split])

    def sample(self, network: AgentNetwork, seed: int, number: int) -> EpisodeRecord:
        """Return episode `number` of a seed, by sampled actions: the same for the same parameters."""
        uniform = generator(seed, "policy-sample", number).random(2 * len(self.jobs.time))
        drawing, _ = np_random(derive_seed(seed, "episode", number))
        drawing.integers(1)  # the number of the workload, which is the only one
        rng = random_policies(drawn_seed(drawing))
        found = kernel.play_compiled(self.jobs, self.cluster, _network(network), self.pairs, uniform, rng)
        observations, actions, times, rewards = found
        masks = np.ones((len(actions), len(self.pairs)), bool)
        return EpisodeRecord(list(observations), list(masks), actions.tolist(), times.tolist(), rewards.tolist())


def _require(settings: DecisionSettings, where: str) -> None:
    for key, wanted in KERNEL_CASE.items():
        if getattr(settings, key) != wanted:
            said = "as by default" if key == "legacy" else wanted
            what = f"{key} is {getattr(settings, key)}" if key != "legacy" else "defects of the original are on"
            expected = f"{said}, where a learner takes compiled episodes (compiled: true)"
            raise UserError(what, where=f"{where}: decisions.{key}", expected=expected)
    pairs = {name: name.split(PAIR_SEPARATOR) for name in settings.selection}
    known = kernel.JOB_CODES, kernel.CORE_CODES
    unknown = [
        name
        for name, parts in pairs.items()
        if any(part not in codes for part, codes in zip(parts, known, strict=True))
    ]
    if unknown:
        expected = f"job policies {', '.join(kernel.JOB_CODES)}; core policies {', '.join(kernel.CORE_CODES)}"
        raise UserError(f"the pair {unknown[0]}", where=f"{where}: decisions.selection", expected=expected)


def _jobs(jobs: Jobs, model: ResourceModel, where: str) -> kernel.KernelJobs:
    """Jobs that the empty platform can run, as arrays."""
    feasible, flops = [], []
    for job in jobs.workload.jobs:
        profile = job.profile
        if not 1 <= job.resources <= model.room_for(round(profile.json["mem"] * KB_PER_MB)):
            continue
        if not isinstance(profile, Homogeneous) or profile.com or profile.total:
            expected = "jobs that compute alone (parallel_homogeneous), where a learner takes compiled episodes"
            raise UserError(f"job {job.id} does more than compute", where=where, expected=expected)
        feasible.append(job)
        flops.append(float(profile.cpu))
    asked = [job.profile.json for job in feasible]
    submitted, cores = (np.array([getattr(job, key) for job in feasible]) for key in ("submission", "resources"))
    time, work = (np.array([float(one[key]) for one in asked]) for key in ("req_time", "req_ops"))
    memory = np.array([round(one["mem"] * KB_PER_MB) for one in asked])
    bandwidth = np.array([round(one["mem_bw"] * KB_PER_GB) for one in asked])
    limits = np.array([log1p(jobs.limits["max_time"]), jobs.limits["max_mem_bw"] * KB_PER_GB])
    keys = np.stack([np.arange(len(asked)), time, cores, memory, bandwidth, time * cores]).astype(float)
    return kernel.KernelJobs(submitted, time, cores, memory, bandwidth, work, np.array(flops), keys, limits)


def _cluster(model: ResourceModel) -> kernel.KernelCluster:
    speed, power = model.gflops_per_core * GIGA, model.power_per_core
    fastest, frugal = np.argsort(-speed, kind="stable"), np.argsort(power, kind="stable")
    bandwidth, node, memory = (np.array(values) for values in (model.bandwidth, model.node_of, model.memory))
    share = float(model.speed_share[OVERSUBSCRIBED])
    return kernel.KernelCluster(model.size, bandwidth, node, speed, memory, fastest, frugal, share)


def _network(network: AgentNetwork) -> kernel.KernelNetwork:
    """The actor's weights; where an action adds up the logits of its parts, its row is the sum of theirs."""
    arrays = {name: parameter.detach().double().numpy() for name, parameter in network.named_parameters()}
    layers = sorted({int(name.split(".")[1]) for name in arrays if name.startswith("actor.")})
    weights, biases = ([arrays[f"actor.{layer}.{kind}"] for layer in layers] for kind in ("weight", "bias"))
    last, last_bias = weights.pop(), biases.pop()
    if network.parts is not None:
        parts = network.parts.double().numpy()
        last, last_bias = np.ascontiguousarray(parts.T @ last), parts.T @ last_bias
    first, inner = (arrays["first.weight"], arrays["first.bias"]), (np.stack(weights), np.stack(biases))
    return kernel.KernelNetwork(*first, *inner, last, last_bias)
