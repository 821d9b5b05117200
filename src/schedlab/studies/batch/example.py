"""A small made-up task, for trying the environments out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from schedlab.config.schema import settings_given
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.jobs import Jobs, Machine, jobs_of, machine_of
from schedlab.studies.batch.scenario import Backfill
from schedlab.studies.batch.simulator.stepper import Task
from schedlab.workloads.prepare import make_trace
from schedlab.workloads.settings import WorkloadSettings

LENGTH = 256  # jobs of a window, as published


def example_task(
    settings: EnvironmentSettings | Mapping[str, Any] | None = None, backfill: Backfill = "none", length: int = LENGTH
) -> Task:
    """Return windows of the first half of 4000 drawn jobs, 128 processors. Raises UserError for wrong settings."""
    settings = settings_given(EnvironmentSettings, settings)
    jobs, machine = _workload()
    half = jobs.take(slice(0, len(jobs) // 2))
    return Task(half, machine, range(len(half) - length + 1), (length, length), backfill, settings=settings)


@cache
def _workload() -> tuple[Jobs, Machine]:
    values = {"name": "example", "source": "lublin", "lublin": {"jobs": 4000, "processors": 128, "load": 0.9}}
    trace = make_trace(WorkloadSettings.model_validate(values))[0]
    machine = machine_of(trace)
    return jobs_of(trace, machine), machine
