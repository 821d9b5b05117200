"""The learning case, worked out by hand: two jobs, three placements."""

from __future__ import annotations

import pytest
from small_clusters import episode

from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.episode import Episode, learning_case, play

PLACEMENTS = {"high_gflops": (6.363636, 6.6), "high_mem_bw": (5.25, 8.4), "low_power": (7.0, 6.0)}


@pytest.mark.parametrize("job_policy", ["first", "shortest"])
@pytest.mark.parametrize("core_policy", PLACEMENTS)
def test_makespan_and_reward_of_each_placement(job_policy, core_policy):
    makespan, reward = PLACEMENTS[core_policy]
    run = Episode(
        *learning_case(), DecisionSettings(selection=(f"{job_policy}-{core_policy}",), objective="makespan"), 0
    )
    scores = play(run)
    assert scores["makespan"] == pytest.approx(makespan, abs=1e-6)
    assert run.history.actions == [0]
    assert run.history.rewards == pytest.approx([reward])


def test_energy_under_the_state_model():
    scores = play(episode([{}, {}], selection=("first-high_mem_bw",)))
    # until 4.772727 s: 50 + 12.5 + 40 + 10 W; then the first processor's cores at 5 % (40 + 10 and 2 x 2.5 W)
    by_hand = 4.772727 * (50 + 12.5 + 40 + 10) + (5.25 - 4.772727) * (40 + 10 + 2 * 2.5)
    assert by_hand == pytest.approx(563.182, abs=1e-3)
    assert scores["consumed_joules"] == pytest.approx(by_hand, abs=1e-3)


@pytest.mark.parametrize("core_policy", PLACEMENTS)
def test_energy_of_the_model_is_that_of_the_simulator(core_policy):
    run = episode([{}, {}], selection=(f"first-{core_policy}",), objective="energy_consumption", time_weighted=True)
    assert play(run)["consumed_joules"] == pytest.approx(-sum(run.history.rewards), rel=1e-6)


def test_over_subscription_is_logged_with_start_and_length():
    run = episode([{}, {}], selection=("first-high_gflops",))
    play(run)
    spans = run.overuse()["mem_bw"]
    assert spans["nb_procs"] == 2
    assert spans["procs"]["0"] == {"state": False, "values": []}
    assert spans["procs"]["1"]["values"] == [pytest.approx([0.0, 6.363636], abs=1e-6)]
