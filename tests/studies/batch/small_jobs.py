"""Small windows of jobs, drawn so that ties of every kind are common."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.jobs import Jobs, Machine
from schedlab.studies.batch.simulator.stepper import Drawn, Stepper, Task


def jobs_from(rows: list[tuple[float, float, float, int]], machine: Machine | None = None) -> Jobs:
    """Jobs of (submit, run, requested, processors), numbered from 1, users, groups and so on in turn, some missing."""
    machine = machine or Machine(8, 8)
    submit, run, requested, procs = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    procs = procs.astype(np.int64)
    ids = np.arange(1, len(rows) + 1)
    nodes = -(-procs * machine.nodes // machine.processors)
    memory, none = ids % 5 * 100.0 - 100.0, np.full(len(ids), -1)
    zeros = np.zeros_like(ids)
    later = none, none, zeros, none.astype(float), zeros.astype(float)  # queue, partition, preceding, think, priority
    return Jobs(ids, submit, run, requested, procs, nodes, ids % 3, ids % 2, ids % 4 - 1, memory, *later)


@st.composite
def windows(draw: st.DrawFn, most: int = 24, in_order: bool = True) -> tuple[Jobs, Machine]:
    """A window of jobs and the machine; some run longer than they requested, some request nothing."""
    machine = draw(st.sampled_from([Machine(8, 8), Machine(5, 10), Machine(3, 12)]))
    row = st.tuples(
        st.integers(0, 4),
        st.integers(1, 6),
        st.integers(-1, 8).filter(bool),
        st.integers(1, machine.processors),
    )
    rows = draw(st.lists(row, min_size=1, max_size=most))
    gaps = [gap if gap < 4 else 0 for gap, *_ in rows]
    submit = np.cumsum(gaps) if in_order else np.array(gaps) * 3
    return jobs_from([(when, *rest) for when, (_, *rest) in zip(submit.tolist(), rows, strict=True)], machine), machine


def stepper_on(jobs: Jobs, machine: Machine, backfill: str, start: int = 0, **values) -> Stepper:
    """A stepper at the beginning of the window of all jobs from `start` on."""
    environment = EnvironmentSettings(
        **{name: values.pop(name) for name in list(values) if name in EnvironmentSettings.model_fields}
    )
    length = len(jobs) - start
    task = Task(jobs, machine, range(start, start + 1), (length, length), backfill, settings=environment, **values)
    stepper = Stepper(task, 1)
    stepper.open(0, Drawn(start, length, np.random.default_rng(7)))
    return stepper
