"""The resources of this machine for a training job: GPUs, cores, memory.

For live runs and the API alone (docs/guide/cloud_live.md): nothing that the pipeline computes depends on
its host. GPUs are what NVIDIA's command reports; where it is not installed, items about GPUs do not apply.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import psutil
from pydantic import ConfigDict, model_validator

from schedlab.studies.cloud.live.process import available_cpus
from schedlab.studies.cloud.model.allocation import ResourceConfig
from schedlab.studies.cloud.replay.sla import SLAConfig

LEAST_MEMORY = 4  # GB
IDLE_GPUS, USUAL_USE = 10.0, 80.0  # percent: below the first, GPUs are asked for little, else for the second
FIELDS = "index,uuid,utilization.gpu,memory.used"
PATIENCE = 10  # s that the command may take
PART = "MIG-"  # begin of the name of a part of a GPU, of which the command tells no use
UNKNOWN = (float("nan"), float("nan"))


def gpu_readings() -> dict[str, tuple[float, float]]:
    """Return number -> (utilisation in percent, memory used in GB) of every GPU that may be used; what it does not
    report is NaN. A part of a GPU (MIG) stands there by its name.
    """
    command = shutil.which("nvidia-smi")
    if command is None:
        return {}
    try:
        query = [command, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    found, numbers = {}, {}
    for line in done.stdout.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(FIELDS.split(",")):
            found[cells[0]] = (_number(cells[2]), _number(cells[3]) / 1024)
            numbers[cells[1]] = cells[0]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return found if visible is None else {number: found.get(number, UNKNOWN) for number in _visible(visible, numbers)}


def _visible(text: str, numbers: dict[str, str]) -> list[str]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, by number; numbers: by long names, of which the begin may stand.

    What is no GPU (as -1) ends the list; one that stands there twice leaves none, as with CUDA's own reading of it.
    """
    found: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        known = [
            number
            for uuid, number in numbers.items()
            if number == name or (name.startswith("GPU-") and uuid.startswith(name))
        ]
        if name.startswith(PART):
            known = [name]
        if len(known) != 1:
            break
        found += known
    return found if len(set(found)) == len(found) else []


def gpu_numbers() -> tuple[str, ...]:
    """Return the numbers of the GPUs that may be used."""
    return tuple(gpu_readings())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def memory_gb() -> int:
    """Return the machine's memory in whole GB, at least 1."""
    return max(1, psutil.virtual_memory().total >> 30)


class MachineResources(ResourceConfig):
    """What can be allocated, and what it costs; amounts that are not given are all of this machine.

    The fewest are a GPU (where there may be any), a core and 4 GB, as far as there is that much.
    """

    model_config = ConfigDict(title="ResourceConfig")  # as the API calls it, in what is said of wrong values

    @model_validator(mode="before")
    @classmethod
    def _of_this_machine(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        found = {**values}
        for name, of_machine in MOST.items():
            if name not in found:
                found[name] = of_machine()
        for name, (most, usual) in LEAST.items():
            found.setdefault(name, min(usual, found[most]) if isinstance(found[most], int | float) else usual)
        return found


class MachineLimits(SLAConfig):
    """The limits of a job on this machine. A limit that nothing can meet is no mistake: its severity then shows how far
    away it is.

    Where they are not given, memory_max is half of the machine's memory, and gpu_util_min is twice the use, at most 20
    %, of GPUs that idle now.
    """

    model_config = ConfigDict(title="SLAConfig")

    @model_validator(mode="before")
    @classmethod
    def _of_this_machine(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        given = {name: value for name, value in values.items() if value is not None}
        return {**{name: limit() for name, limit in LIMITS.items() if name not in given}, **given}


def _least_use() -> float:
    """The utilisation that is asked of the GPUs, percent."""
    used = [use for use, _ in gpu_readings().values() if use == use]
    mean = sum(used) / len(used) if used else None
    return USUAL_USE if mean is None or mean >= IDLE_GPUS else min(2.0 * mean, 20.0)


MOST = {
    "gpu_count_max": lambda: len(gpu_readings()),
    "cpu_count_max": lambda: len(available_cpus()),
    "memory_max": memory_gb,
}
LEAST = {"gpu_count_min": ("gpu_count_max", 1), "memory_min": ("memory_max", LEAST_MEMORY)}
LIMITS = {"memory_max": lambda: psutil.virtual_memory().total / (1 << 30) / 2, "gpu_util_min": _least_use}


def machine_resources(
    cost_per_gpu_hour: float = 2.5, cost_per_cpu_hour: float = 0.1, cost_per_gb_hour: float = 0.02
) -> ResourceConfig:
    """Return all of this machine as limits, at prices in $/h."""
    return MachineResources(
        cost_per_gpu_hour=cost_per_gpu_hour, cost_per_cpu_hour=cost_per_cpu_hour, cost_per_gb_hour=cost_per_gb_hour
    )


def machine_limits() -> SLAConfig:
    """Return the default service levels on this machine."""
    return MachineLimits()
