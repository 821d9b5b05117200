"""What this machine has for a training job: GPUs, cores, memory."""

from __future__ import annotations

import psutil

from schedlab.studies.cloud.allocation import ResourceConfig
from schedlab.studies.cloud.live_gpu import gpu_readings
from schedlab.studies.cloud.live_process import available_cpus
from schedlab.studies.cloud.sla import SLAConfig

LEAST_MEMORY = 4  # GB
IDLE_GPUS = 10.0  # percent: below it, GPUs are asked for little


def memory_gb() -> int:
    """Return the machine's memory in whole GB, at least 1."""
    return max(1, psutil.virtual_memory().total >> 30)


def machine_resources(cost_per_gpu_hour: float = 2.5, cost_per_cpu_hour: float = 0.1, cost_per_gb_hour: float = 0.02) -> ResourceConfig:
    """Return all of this machine as limits, at prices in $/h."""
    gpus, memory = len(gpu_readings()), memory_gb()
    return ResourceConfig(
        gpu_count_max=gpus,
        gpu_count_min=min(1, gpus),
        cpu_count_max=len(available_cpus()),
        cpu_count_min=1,
        memory_max=memory,
        memory_min=min(LEAST_MEMORY, memory),
        cost_per_gpu_hour=cost_per_gpu_hour,
        cost_per_cpu_hour=cost_per_cpu_hour,
        cost_per_gb_hour=cost_per_gb_hour,
    )


def machine_limits() -> SLAConfig:
    """Return the default service levels on this machine: half of its memory; of GPUs that idle now, twice their use (at most 20 %)."""
    used = [use for use, _ in gpu_readings().values() if use == use]
    mean = sum(used) / len(used) if used else None
    wanted = 80.0 if mean is None or mean >= IDLE_GPUS else min(2.0 * mean, 20.0)
    return SLAConfig(memory_max=memory_gb() / 2, gpu_util_min=wanted)
