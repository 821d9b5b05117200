"""Rates of the batch study: rules, environments, learning. Drawn jobs on 256 processors at load 0.9."""

from __future__ import annotations

import batch_env
import batch_ppo
import pytest
import yaml
from ramp_dqn import VALUES

BACKFILLS = ("none", "easy", "conservative")
LEARNER = VALUES.parents[1] / "batch/ppo_published.yaml"


@pytest.fixture(scope="module")
def drawn(quick):
    return batch_env.workload(None, 4_000 if quick else 2 * batch_env.JOBS)


@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("rule", ["fcfs", "wfp3"])
def bench_rule(measure, drawn, rule, backfill):
    """A rule that schedules 10,000 drawn jobs as one window (quick: fewer)."""
    jobs, machine = drawn
    measure(batch_env.rule_over(jobs.take(slice(0, len(jobs) // 2)), machine, rule, backfill), "jobs")


@pytest.mark.parametrize("backfill", ["none", "easy"])
def bench_steps_scalar(measure, quick, drawn, backfill):
    """`schedlab/Batch-v0`: steps that choose the first valid row, windows of 256 jobs, resets included."""
    measure(batch_env.scalar(batch_env.task_of(*drawn, backfill), 2_000 if quick else batch_env.STEPS), "steps")


@pytest.mark.parametrize("backfill", ["none", "easy"])
def bench_steps_batched(measure, quick, drawn, backfill):
    """The same steps with 64 windows in parallel."""
    measure(batch_env.batched(batch_env.task_of(*drawn, backfill), 6_400 if quick else 4 * batch_env.STEPS), "steps")


def bench_learning(measure, quick):
    """PPO as published, but with 4 passes: decisions from which it learned, in 100 environments, rollouts included."""
    steps, problem = (16 if quick else 256), batch_ppo.problem_of(10_000)
    values = {
        **yaml.safe_load(LEARNER.read_text()),
        "environments": 100,
        "n_steps": steps,
        "batch_size": 100 if quick else 512,
    }
    values |= {"n_epochs": 4, "target_kl": None}

    def learn() -> int:
        batch_ppo.learned(problem, values, 100 * steps, 0)
        return 100 * steps

    measure(learn, "decisions", rounds=3)
