"""What docs/errata.md says of SLA-MORL's program, each defect by the one switch that shows it, and the ledger's
numbers.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from claim_programs import hold, ledger, program
from schedlab.studies.cloud.example import example_replay
from schedlab.studies.cloud.model.allocation import KEEP, Allocation
from schedlab.studies.cloud.model.cost import percent
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.replay.replay import towards
from schedlab.studies.cloud.replay.reward import Transition, reference_reward
from schedlab.studies.cloud.replay.state import COMPONENTS
from schedlab.studies.cloud.slamorl.published import PRICES, step, trimmed

PROGRAM = program("cloud")
BAD, GOOD, LIMITS, state = PROGRAM.BAD, PROGRAM.GOOD, PROGRAM.LIMITS, PROGRAM.state


def test_actions_change_the_price_and_nothing_else():
    up, down = (step(action, Allocation(4, 16, 32), [BAD, GOOD], "time", LIMITS, compat=True) for action in (26, 0))
    assert up.allocation > down.allocation and up.reward.cost < 0 < down.reward.cost
    log = [name not in ("gpu_count", "cpu_count", "memory_gb") for name in COMPONENTS]
    assert (
        up.state[log].tolist() == down.state[log].tolist()
    )  # what the training does stands in the log: no faster with more
    (small, large) = (published_total("time", goal)[1] for goal in ("smallest", "largest"))
    assert small > 1.2 * large  # here it is faster


def test_severities_stay_after_recovery():
    worst = state(BAD, GOOD, keep_severities=True).vector()[16:22]
    assert worst.tolist() == pytest.approx([1, 1, 0.944444, 0.5625, 1, 1], abs=1e-5)
    assert state(BAD, GOOD).vector()[16:20].tolist() == [0, 0, 0, 0]


def test_memory_in_use_is_divided_by_itself():
    record = GOOD | {"memory_gb": 40.0}
    assert state(record, memory_used_only=True).memory_util == 1.0
    assert state(record).memory_util == 0.25


def test_four_components_are_empty():
    assert state(GOOD, empty_components=True).vector()[22:].tolist() == [0, 0, 0, 0]
    assert state(GOOD | {"total_epochs": 4}).vector()[22] > 0


def test_progress_within_an_epoch_is_not_observed():
    record = GOOD | {"epoch": 1.5, "total_epochs": 4}
    assert state(record, whole_epochs=True).progress == 0.25
    assert state(record).progress == 0.375


def test_idle_gpus_are_never_trimmed():
    idle = GOOD | {"gpu_utilization_0": 50.0, "gpu_utilization_1": 1.0, "gpu_utilization_2": 0.0}
    allocation = Allocation(3, 8, 32)
    assert step(KEEP, allocation, [idle], "cost", LIMITS, compat=True).allocation == allocation
    assert step(KEEP, allocation, [idle], "cost", LIMITS, compat=False).allocation.gpu_count == 1
    assert trimmed(allocation, {"gpu_utilization_0": 0.0, "gpu_utilization_1": 1.0}).gpu_count == 1


def test_the_price_drowns_all_else():
    met = Transition(0.0, 0.0, (), 1, 0.8, 0.8, 1.0, False)
    assert PROGRAM.largest_price_term() == 760.0
    assert reference_reward("balanced", met).sla == 22.5


def published_total(preference: str, goal: str) -> tuple[float, float]:
    """Sum of the published reward, and the training time (s), of going to the smallest or largest allocation."""
    env = CloudReplayEnv(example_replay(legacy={"reward": True}, resource=PRICES), preference)
    fits = np.flatnonzero(env.replay.fits)
    target = np.int64(fits[0] if goal == "smallest" else fits[-1])
    env.reset(seed=0)
    total, over = 0.0, False
    while not over:
        _, reward, over, _, _ = env.step(int(towards(env.replay, np.int64(env.here), target)))
        total += reward
    return total, env.time


@pytest.mark.parametrize("preference", ["balanced", "cost", "time", "resource"])
def test_shrinking_is_rewarded_even_where_time_counts_most(preference):
    small, large = published_total(preference, "smallest"), published_total(preference, "largest")
    assert small[0] > large[0] + 100
    assert small[1] > 1.2 * large[1]


def test_percentages_under_a_dollar():
    assert percent(0.10 - 0.20, 0.20) == pytest.approx(-50.0)
    assert percent(0.00078 - 0.00156, 0.00156) == pytest.approx(-50.0)
    assert percent(0.02, 0.0) == pytest.approx(200.0), "of a cent, where there is no base"
    assert (0.10 - 0.20) / max(1, 0.20) == pytest.approx(-0.10)  # as published: a fraction of at least a dollar


def test_the_ledger_holds_what_the_code_gives():
    claims = ledger("cloud")
    hold(claims, PROGRAM.program())
    differing = ("time-reduction", "cost-reduction", "sla-improvement", "exploration-historical", "exploration-probes")
    assert {claims[name].status for name in differing} == {"differs"}


def test_the_headline_claims_are_those_of_the_recorded_table(repository):
    """Percent less than on the start allocation, mean over the jobs and seeds of REINFORCE; and parts of the learner
    against what they were compared with.
    """
    claims = {claim.id: claim.ours_repaired for claim in ledger("cloud").values()}
    table = pd.read_csv(repository / "docs/results/cloud/summary.csv").query("split == 'test'")
    jobs = table[table["recipe"] == "reinforce"].pivot_table(index="scenario", columns="metric", values="value")
    jobs = jobs.loc[["cifar10", "imagenet", "movielens", "squad"]]
    for claim, metric in (
        ("time-reduction", "time_saved"),
        ("cost-reduction", "cost_saved"),
        ("sla-improvement", "levels_gained"),
    ):
        assert claims[claim] == pytest.approx(jobs[metric].mean(), abs=1e-3)
    parts = table[table["scenario"] == "ablations"].pivot_table(index="policy", columns="metric", values="value")
    for claim, policy, metric in (
        ("exploration-historical", "reinforce-historical", "episodes_needed"),
        ("exploration-probes", "reinforce-baseline", "episodes_needed"),
        ("adapted-weights", "reinforce-adapted", "severity"),
    ):
        left_over = parts.loc[policy, metric] / parts.loc["reinforce-fixed", metric]
        assert claims[claim] == pytest.approx(100 * (1 - left_over), abs=1e-3)
