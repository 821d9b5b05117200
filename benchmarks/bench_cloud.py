"""Rates of the cloud study: steps of the replay, the best constant allocation."""

from __future__ import annotations

import cloud_steps


def bench_steps_scalar(measure, quick):
    """`schedlab/CloudReplay-v0`: steps with random actions, resets included."""
    steps = 10_000 if quick else cloud_steps.STEPS
    measure(counted(cloud_steps.alone(steps), steps), "steps")


def bench_steps_batched(measure, quick):
    """The same steps with 1,024 environments in parallel."""
    steps = (10 if quick else 100) * cloud_steps.PLACES
    measure(counted(cloud_steps.side_by_side(steps), steps), "steps")


def bench_oracle_static(measure, records):
    """`oracle_static` of `cifar10`: computing 2,048 allocations (the job fits 1,968), and choosing the best."""
    search, allocations, fitting = cloud_steps.searching(records)
    assert (allocations, fitting) == (2_048, 1_968), "the docstring tells other numbers"
    measure(counted(search, cloud_steps.SEARCHES), "s")


def counted(work, count):
    """Return the work as one that returns how much it did."""

    def run() -> int:
        work()
        return count

    return run
