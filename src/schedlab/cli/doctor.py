"""`schedlab doctor`: reports what this machine offers, and which parts of the pipeline can run on it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from schedlab.cli import check
from schedlab.config import experiment
from schedlab.config.data_paths import LOCAL_DATA
from schedlab.config.errors import UserError
from schedlab.config.runtime import instructions
from schedlab.stages.studies import find_study

PACKAGES = (
    "torch",
    "snakemake",
    "hydra-core",
    "pybatsim",
    "pandas",
    "matplotlib",
    "seaborn",
    "toml",
    "numpy",
    "numba",
    "gymnasium",
)
COMPOSED_AT = "small"  # scales change sizes, but not the requirements of a scenario, so one of them is enough
UNPINNED = f"no {instructions.LEVEL}: learned results have other bytes than on processors that have it"


def doctor(folder: str) -> int:
    """Print the report. Always return 0: a missing requirement is information, not a failure."""
    for title, lines in (
        ("machine", _machine()),
        ("packages", _packages()),
        ("gpu", _gpu()),
        ("programs", _programs()),
        ("data", _data()),
        ("pipeline", _pipeline(folder)),
    ):
        print(title)
        for line in lines:
            print(f"  {line}")
    return 0


def _machine() -> Iterator[str]:
    yield f"python {platform.python_version()}{'' if sys.version_info >= (3, 11) else ' (3.11 or newer is needed)'}"
    yield f"instructions {instructions.pinned()}{'' if instructions.pins() else f'; {UNPINNED}'}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield f"cores {cores} of {os.cpu_count()}"
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        free = os.sysconf("SC_AVPHYS_PAGES")
        yield f"memory {pages * size / 2**30:.1f} GiB, {free * size / 2**30:.1f} GiB free (scale small needs 3)"
    except (ValueError, OSError):
        yield "memory unknown"
    yield f"disk {shutil.disk_usage('.').free / 2**30:.1f} GiB free here"


def _packages() -> Iterator[str]:
    for name in PACKAGES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name} is missing (run `make setup`)"


def _gpu() -> Iterator[str]:
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    unset = "all (CUDA_VISIBLE_DEVICES is not set)"
    yield f"asked for: {unset if asked is None else asked or 'none (CUDA_VISIBLE_DEVICES is empty)'}"
    try:
        import torch
    except ImportError:
        yield "torch is missing; nothing can be said"
        return
    if not torch.cuda.is_available():
        yield (
            f"there: none (torch {torch.__version__}, built "
            f"{'for CUDA ' + torch.version.cuda if torch.version.cuda else 'for the CPU'})"
        )
        return
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        yield f"there: {index} {torch.cuda.get_device_name(index)}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
    yield from _gpu_use()


def _gpu_use() -> Iterator[str]:
    program = shutil.which("nvidia-smi")
    if not program:
        return
    query = [program, "--query-gpu=index,utilization.gpu,memory.used", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (subprocess.SubprocessError, OSError) as error:
        yield f"use: unknown ({error})"
        return
    for line in answer.strip().splitlines():
        yield f"in use: {line}"


def _programs() -> Iterator[str]:
    for name, use in (
        ("sbatch", "Slurm"),
        ("batsim", "a real Batsim; the embedded simulator needs none"),
        ("dot", "pictures of the rule graph"),
    ):
        path = shutil.which(name)
        yield f"{name}: {path}" if path else f"{name}: not found ({use})"


def _data() -> Iterator[str]:
    folder = os.environ.get("SCHEDLAB_DATA")
    if not folder:
        yield f"SCHEDLAB_DATA is not set; scenarios on other people's data look in {LOCAL_DATA}/"
    elif not Path(folder).is_dir():
        yield f"SCHEDLAB_DATA={folder} is no folder"
    else:
        yield f"SCHEDLAB_DATA={folder}: " + ", ".join(
            sorted(path.name for path in Path(folder).iterdir() if path.is_dir())
        )


def _pipeline(folder: str) -> Iterator[str]:
    if not (Path(folder) / "config.yaml").is_file():
        yield f"no configuration folder '{folder}' here; run in a checkout"
        return
    try:
        studies = experiment.scenario_records(
            folder, COMPOSED_AT, find_study, check.kept_records(Path(folder), COMPOSED_AT)
        )
    except UserError:
        yield "the configuration has mistakes; see `schedlab check`"
        return
    lacking: dict[str, list[str]] = {}
    for study, scenarios in studies.items():
        missing = {name: experiment.missing_data(record) for name, record in scenarios.items()}
        for scale in experiment.SCALE_ORDER:
            of_scale = [name for name, record in scenarios.items() if scale in record["scales"]]
            able = [name for name in of_scale if not missing[name]]
            yield f"{scale}/{study}: {_count(able)} can run" + (
                f", {len(of_scale) - len(able)} cannot" if len(able) < len(of_scale) else ""
            )
        for name, needs in missing.items():
            for need in needs:
                lacking.setdefault(need, []).append(f"{study}/{name}")
    for need, names in lacking.items():
        yield f"{_count(names)} cannot run without {need}: {', '.join(names)}"


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} scenario{'' if len(names) == 1 else 's'}"
