"""Workloads for the compiled kernel, and episodes sampled on it like those of `networks.Episodes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log1p

import numpy as np
from gymnasium.utils.seeding import np_random

from schedlab.batsim.files.profiles import Homogeneous
from schedlab.batsim.files.workload import Job
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed, generator
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.studies.hetero.env.env import HeteroEnv, drawn_seed
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR, DecisionSettings, LegacySettings
from schedlab.studies.hetero.kernels import cluster_kernel as kernel
from schedlab.studies.hetero.kernels.backfill_kernel import PAIR_CODES
from schedlab.studies.hetero.kernels.episode_kernel import KernelNetwork, play_compiled
from schedlab.studies.hetero.kernels.run_kernel import Run
from schedlab.studies.hetero.learners.networks import AgentNetwork, EpisodeRecord
from schedlab.studies.hetero.simulator.decisions import random_policies
from schedlab.studies.hetero.simulator.episode import Jobs
from schedlab.studies.hetero.simulator.physics import require_hdeeprm
from schedlab.studies.hetero.simulator.resources import GIGA, KB_PER_GB, KB_PER_MB, OVERSUBSCRIBED, ResourceModel

KERNEL_CASE = {
    "observation": "heads",
    "objective": "avg_job_slowdown",
    "time_weighted": True,
    "void": False,
    "legacy": LegacySettings(),
}


class CompiledJobs:
    """The jobs of a workload and the cluster in the kernel's form, without jobs that never fit.

    walltime  (jobs,) s, -1 for a job without one      rejected  number of jobs that were left out
    Raises UserError for jobs that do more than compute.
    """

    def __init__(self, hierarchy: Hierarchy, jobs: Jobs, where: str) -> None:
        model = ResourceModel(hierarchy)
        feasible = _feasible(jobs, model, where)
        self.jobs, self.cluster = _jobs(feasible, jobs.limits), _cluster(model)
        self.walltime = np.array([job.walltime for job in feasible], float)
        self.rejected = len(jobs.workload.jobs) - len(feasible)

    def scores(self, run: Run, threshold: float) -> dict[str, float]:
        """Return the scores of `outcomes.outcome` that depend on the dates of jobs alone; threshold: lower bound on run
        times in the bounded slowdown, s.
        """
        jobs, length = self.jobs, run.ended - run.started
        turnaround, makespan = run.ended - jobs.submitted, run.ended.max() - jobs.submitted.min()
        scores = {
            "mean_bounded_slowdown": bounded_slowdown(turnaround, length, threshold).mean(),
            "mean_wait": (run.started - jobs.submitted).mean(),
            "mean_turnaround": turnaround.mean(),
            "makespan": makespan,
            "utilisation": (length * jobs.cores).sum() / (self.cluster.size.sum() * makespan),
            "unsuccessful": self.rejected / (self.rejected + len(length)),
            "infeasible": self.rejected,
        }
        return {name: float(value) for name, value in scores.items()}


def supported(settings: DecisionSettings) -> bool:
    """Return whether the kernel supports decisions with these settings."""
    try:
        _require(settings, "")
    except UserError:
        return False
    return True


class CompiledEpisodes:
    """Samples episodes of an environment's first workload. Raises UserError for decisions, jobs and policies that the
    kernel does not support.
    """

    def __init__(self, env: HeteroEnv, where: str = "environment") -> None:
        _require(env.settings, where)
        require_hdeeprm(env.physics, "a learner takes compiled episodes, which run", where)
        self.action_names = env.action_names
        made = CompiledJobs(env.cluster.hierarchy, env.workloads[0], where)
        self.jobs, self.cluster = made.jobs, made.cluster
        self.pairs = pair_codes(self.action_names)

    def sample(self, network: AgentNetwork, seed: int, number: int) -> EpisodeRecord:
        """Return episode `number` of a seed, by sampled actions; it is the same for the same parameters."""
        uniform = generator(seed, "policy-sample", number).random(2 * len(self.jobs.time))
        drawing, _ = np_random(derive_seed(seed, "episode", number))
        drawing.integers(1)  # in place of the number of the workload, which the environment's reset draws
        rng = random_policies(drawn_seed(drawing))
        found = play_compiled(self.jobs, self.cluster, kernel_network(network), self.pairs, uniform, rng)
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
    known = PAIR_CODES, kernel.CORE_CODES
    unknown = [
        name
        for name, parts in pairs.items()
        if any(part not in codes for part, codes in zip(parts, known, strict=True))
    ]
    if unknown:
        expected = f"job policies {', '.join(PAIR_CODES)}; core policies {', '.join(kernel.CORE_CODES)}"
        raise UserError(f"the pair {unknown[0]}", where=f"{where}: decisions.selection", expected=expected)


def pair_codes(names: Sequence[str]) -> np.ndarray:
    """Return the codes of the pairs' job policies and core policies, (pairs, 2)."""
    split = [name.split(PAIR_SEPARATOR) for name in names]
    return np.array([(PAIR_CODES[job], kernel.CORE_CODES[core]) for job, core in split])


def _feasible(jobs: Jobs, model: ResourceModel, where: str) -> list[Job]:
    """Return the jobs that the empty platform can run. Raises UserError for a job that does more than compute."""
    feasible = []
    for job in jobs.workload.jobs:
        profile = job.profile
        if not 1 <= job.resources <= model.room_for(round(profile.json["mem"] * KB_PER_MB)):
            continue
        if not isinstance(profile, Homogeneous) or profile.com or profile.total:
            expected = "jobs that compute alone (parallel_homogeneous), where the compiled kernel plays them"
            raise UserError(f"job {job.id} does more than compute", where=where, expected=expected)
        feasible.append(job)
    return feasible


def _flops(job: Job) -> float:
    assert isinstance(job.profile, Homogeneous)
    return float(job.profile.cpu)


def _jobs(feasible: Sequence[Job], given: Mapping[str, float]) -> kernel.KernelJobs:
    """Return jobs in the kernel's form; given: the limits by which observations are scaled."""
    asked, flops = [job.profile.json for job in feasible], np.array([_flops(job) for job in feasible])
    submitted, cores = (np.array([getattr(job, key) for job in feasible]) for key in ("submission", "resources"))
    time, work = (np.array([float(one[key]) for one in asked]) for key in ("req_time", "req_ops"))
    memory = np.array([round(one["mem"] * KB_PER_MB) for one in asked])
    bandwidth = np.array([round(one["mem_bw"] * KB_PER_GB) for one in asked])
    limits = np.array([log1p(given["max_time"]), given["max_mem_bw"] * KB_PER_GB])
    keys = np.stack([np.arange(len(asked)), time, cores, memory, bandwidth, time * cores]).astype(float)
    return kernel.KernelJobs(submitted, time, cores, memory, bandwidth, work, flops, keys, limits)


def _cluster(model: ResourceModel) -> kernel.KernelCluster:
    speed, power = model.gflops_per_core * GIGA, model.power_per_core
    fastest, frugal = np.argsort(-speed, kind="stable"), np.argsort(power, kind="stable")
    bandwidth, node, memory = (np.array(values) for values in (model.bandwidth, model.node_of, model.memory))
    share = float(model.speed_share[OVERSUBSCRIBED])
    return kernel.KernelCluster(model.size, bandwidth, node, speed, memory, fastest, frugal, share)


def kernel_network(network: AgentNetwork) -> KernelNetwork:
    """Return the actor's weights in the kernel's form. If an action's logit is the sum over its parts, its row is the
    sum of their rows.
    """
    arrays = {name: parameter.detach().double().numpy() for name, parameter in network.named_parameters()}
    layers = sorted({int(name.split(".")[1]) for name in arrays if name.startswith("actor.")})
    weights, biases = ([arrays[f"actor.{layer}.{kind}"] for layer in layers] for kind in ("weight", "bias"))
    last, last_bias = weights.pop(), biases.pop()
    if network.parts is not None:
        parts = network.parts.double().numpy()
        last, last_bias = np.ascontiguousarray(parts.T @ last), parts.T @ last_bias
    first, inner = (arrays["first.weight"], arrays["first.bias"]), (np.stack(weights), np.stack(biases))
    return KernelNetwork(*first, *inner, last, last_bias)
