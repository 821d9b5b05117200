"""What it costs to start: imports, the command, environments, Snakemake's dry run. CPU time of the processes that are
started.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import dry_run
import pytest

from schedlab.config import experiment
from schedlab.config.experiment import Experiment
from schedlab.config.runtime import freeze
from schedlab.environments import ENVIRONMENTS
from schedlab.stages.studies import find_study

MADE = [
    name
    for name in ENVIRONMENTS
    if name not in ("schedlab/BatchWeights-v0", "schedlab/CloudLive-v0", "schedlab/MoCloudReplay-v0")
]


def cpu_of_children() -> float:
    """Return the CPU seconds of all processes started here that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


pytestmark = pytest.mark.benchmark(timer=cpu_of_children)


def started(*arguments: str):
    """Return what runs Python once."""

    def run() -> int:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        return 1

    return run


def bench_python(measure):
    """Python alone, to compare with."""
    measure(started("-c", "pass"), "s")


def bench_import(measure):
    """`import schedlab`."""
    measure(started("-c", "import schedlab"), "s")


def bench_help(measure):
    """`schedlab --help`."""
    measure(started("-c", "import schedlab.cli.main as command; command.main(['--help'])"), "s")


@pytest.mark.parametrize("stage", ["evaluate", "learn", "summarise", "draw"])
def bench_stage_import(measure, stage):
    """Import of the module `schedlab.stages.STAGE` in a new process."""
    measure(started("-c", f"import schedlab.stages.{stage}"), "s", rounds=5)


@pytest.mark.parametrize("study", ["adaptation", "batch", "cloud", "hetero", "ramp"])
def bench_study_import(measure, study):
    """Import of `schedlab.studies.STUDY.study` in a new process."""
    measure(started("-c", f"import schedlab.studies.{study}.study"), "s", rounds=3)


@pytest.mark.parametrize("name", MADE, ids=lambda name: name.partition("/")[2])
def bench_environment(measure, name):
    """`gymnasium.make` of an environment in a new process."""
    measure(started("-c", f"import gymnasium, schedlab; gymnasium.make({name!r})"), "s", rounds=3)


def bench_dry_run(measure, tmp_path):
    """Dry run of all studies at scale `small` with a warm cache."""
    folder = dry_run.checkout(tmp_path / "default")

    def run() -> int:
        dry_run.dry_run(folder)
        return 1

    measure(run, "s", rounds=3)


@pytest.mark.benchmark(timer=time.process_time)
def bench_frozen_parts(measure, tmp_path):
    """Making the frozen parts of all studies at scale `small`, hashes of code included, with a warm cache."""
    conf = dry_run.REPOSITORY / "conf"

    def load() -> Experiment:
        return experiment.load(conf, "small", find_study, tmp_path / "records.json")

    def freeze_parts(loaded: Experiment) -> int:
        freeze.write_parts(loaded, tmp_path)
        return 1

    freeze_parts(load())
    measure(freeze_parts, "s", setup=load)
