"""The resources of this machine for a training job: GPUs, cores, memory.

Only live runs and the API use this module (docs/guide/cloud_live.md): the results of the pipeline do not depend on the
host. GPUs are those that NVIDIA's command reports; if it is not installed, there are no GPUs, and their service level
does not apply.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import psutil
from pydantic import ConfigDict, model_validator

from schedlab.studies.cloud.live.process import available_cpus
from schedlab.studies.cloud.model.allocation import PRICES, ResourceConfig
from schedlab.studies.cloud.replay.sla import SLAConfig

LEAST_MEMORY = 4  # GB
IDLE_GPUS, USUAL_USE = 10.0, 80.0  # percent: GPUs used less than the first are idle now; the second is the usual limit
FIELDS = "index,uuid,utilization.gpu,memory.used"
PATIENCE = 10  # s that the command may take
PART = "MIG-"  # beginning of the name of a part of a GPU, for which nvidia-smi reports no utilisation
UNKNOWN = (float("nan"), float("nan"))


def gpu_readings() -> dict[str, tuple[float, float]]:
    """Return number -> (utilisation in percent, memory used in GB) of each GPU that may be used; NaN for values that
    are not reported. The key of a part of a GPU (MIG) is its name.
    """
    found, numbers = {}, {}
    for cells in _query(FIELDS):
        if len(cells) == len(FIELDS.split(",")):
            found[cells[0]] = (_number(cells[2]), _number(cells[3]) / 1024)
            numbers[cells[1]] = cells[0]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return found if visible is None else {number: found.get(number, UNKNOWN) for number in _visible(visible, numbers)}


def gpu_kinds() -> list[str]:
    """Return the name and the memory of each GPU of this machine, as NVIDIA's command reports them."""
    return [" ".join(cells) for cells in _query("name,memory.total")]


def _query(fields: str) -> list[list[str]]:
    """Return the values of some fields for each GPU; nothing if NVIDIA's command is not installed or fails."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        query = [command, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]


def _visible(text: str, numbers: dict[str, str]) -> list[str]:
    """Return the numbers of the GPUs that CUDA_VISIBLE_DEVICES allows.

    numbers  long name (UUID) -> number; the variable may contain the beginning of a name
    As in CUDA, an entry that is no GPU (such as -1) ends the list, and an entry that occurs twice leaves no GPU.
    """
    found: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        by_name = name.startswith("GPU-")
        known = [number for uuid, number in numbers.items() if number == name or (by_name and uuid.startswith(name))]
        known = [name] if name.startswith(PART) else known
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
    """The resources that can be allocated, and their prices. Maxima that are not given are all of this machine.

    Minima that are not given are a GPU (if there may be GPUs), a core and 4 GB, or the maximum if that is less.
    """

    model_config = ConfigDict(title="ResourceConfig")  # as the API calls it, in what is said of wrong values

    @model_validator(mode="before")
    @classmethod
    def _of_this_machine(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        found = {**{name: of_machine() for name, of_machine in MOST.items() if name not in values}, **values}
        for name, (most, usual) in LEAST.items():
            found.setdefault(name, min(usual, found[most]) if isinstance(found[most], int | float) else usual)
        return found


class MachineLimits(SLAConfig):
    """The service levels of a job on this machine. A limit that nothing can meet is allowed; the severity of its
    violation then shows by how much it is missed.

    If memory_max is not given, it is half of the machine's memory. If gpu_util_min is not given and the mean
    utilisation of the GPUs is below 10 % now, it is twice this utilisation, at most 20 %; else it is 80 %.
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
    """Return the default of gpu_util_min, percent."""
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


def machine_resources(*prices: float) -> ResourceConfig:
    """Return all resources of this machine. prices: of a GPU, a core and a GB, $/h; those of PRICES if not given."""
    return MachineResources.model_validate(dict(zip(PRICES, prices, strict=False)))


def machine_limits() -> SLAConfig:
    """Return the default service levels on this machine."""
    return MachineLimits()
