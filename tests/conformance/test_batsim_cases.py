"""The embedded simulator against recorded runs of Batsim 4.2.1: same conversation, same output files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from conformance.batsim_cases import CASES, read_output, replay, simulation_of
from schedlab.batsim.simulator.records import BATSIM_VERSION

ENDED = [case for case in CASES if (case / "out_jobs.csv").exists()]
WITH_ENERGY = [case for case in ENDED if (case / "out_consumed_energy.csv").exists()]
SECONDS, JOULES = 1e-5, 1e-6  # absolute; relative
WALL_CLOCK = ["scheduling_time", "simulation_time", "batsim_version"]


def name_of(case: Path) -> str:
    return case.name


def events_by_date(messages: list[dict[str, Any]]) -> list[tuple[float, Counter[str]]]:
    """Multisets of events, those of one date (within the tolerance) together."""
    dates: list[tuple[float, Counter[str]]] = []
    for message in messages:
        for event in message["events"]:
            data = dict(event["data"])
            if event["type"] == "SIMULATION_BEGINS":
                data["workloads"] = sorted(data["workloads"])  # paths of another machine
            if event["type"] == "ANSWER":
                data["consumed_energy"] = f"{data['consumed_energy']:.7g}"
            if not dates or event["timestamp"] > dates[-1][0] + SECONDS:
                dates.append((event["timestamp"], Counter()))
            dates[-1][1][f"{event['type']} {json.dumps(data, sort_keys=True)}"] += 1
    return dates


@pytest.mark.parametrize("case", ENDED, ids=name_of)
def test_the_conversation_is_the_recorded_one(case: Path) -> None:
    messages = replay(case)
    ours, recorded = (events_by_date([pair[side] for pair in messages]) for side in (0, 1))
    assert [events for _, events in ours] == [events for _, events in recorded]
    assert [date for date, _ in ours] == pytest.approx([date for date, _ in recorded], abs=SECONDS, rel=0)


@pytest.mark.parametrize("case", ENDED, ids=name_of)
def test_events_share_messages_as_recorded(case: Path) -> None:
    for ours, recorded in replay(case):
        assert Counter(event["type"] for event in ours["events"]) == Counter(
            event["type"] for event in recorded["events"]
        )
        assert ours["now"] == pytest.approx(recorded["now"], abs=SECONDS, rel=0)


@pytest.mark.parametrize("case", ENDED, ids=name_of)
def test_jobs_are_the_recorded_ones(case: Path, tmp_path: Path) -> None:
    replay(case, tmp_path / "out")
    keys = ["workload_name", "job_id"]
    ours, recorded = (
        read_output(prefix, "jobs").sort_values(keys).reset_index(drop=True)
        for prefix in (tmp_path / "out", case / "out")
    )
    assert list(ours) == list(recorded)
    exact = [
        *keys,
        "profile",
        "requested_number_of_resources",
        "success",
        "final_state",
        "allocated_resources",
        "metadata",
    ]
    pd.testing.assert_frame_equal(ours[exact], recorded[exact])
    for column in sorted(set(ours) - set(exact)):
        ours_seconds, recorded_seconds = pd.to_numeric(ours[column]), pd.to_numeric(recorded[column])
        relative = JOULES if column in ("consumed_energy", "stretch") else 0.0
        np.testing.assert_allclose(ours_seconds, recorded_seconds, rtol=relative, atol=SECONDS, err_msg=column)


@pytest.mark.parametrize("case", ENDED, ids=name_of)
def test_the_summary_is_the_recorded_one(case: Path, tmp_path: Path) -> None:
    replay(case, tmp_path / "out")
    ours, recorded = read_output(tmp_path / "out", "schedule"), read_output(case / "out", "schedule")
    assert list(ours) == list(recorded)
    assert ours["batsim_version"][0] == BATSIM_VERSION
    np.testing.assert_allclose(
        ours.drop(columns=WALL_CLOCK).astype(float),
        recorded.drop(columns=WALL_CLOCK).astype(float),
        rtol=JOULES,
        atol=SECONDS,
    )


@pytest.mark.parametrize("case", ENDED, ids=name_of)
def test_machine_states_are_the_recorded_ones(case: Path, tmp_path: Path) -> None:
    replay(case, tmp_path / "out")
    ours, recorded = read_output(tmp_path / "out", "machine_states"), read_output(case / "out", "machine_states")
    np.testing.assert_allclose(ours["time"], recorded["time"], rtol=1e-5, atol=SECONDS)  # six significant digits
    assert final_states(ours) == final_states(recorded)  # the order of equal dates is nobody's promise


def final_states(states: pd.DataFrame) -> list[tuple[int, ...]]:
    """The states once everything of a date has happened."""
    return [tuple(group.iloc[-1, 1:]) for _, group in states.groupby(states["time"].round(4), sort=True)]


@pytest.mark.parametrize("case", WITH_ENERGY, ids=name_of)
def test_energy_and_pstates_are_the_recorded_ones(case: Path, tmp_path: Path) -> None:
    replay(case, tmp_path / "out")
    ours, recorded = (read_output(prefix, "consumed_energy") for prefix in (tmp_path / "out", case / "out"))
    assert list(ours) == list(recorded)
    assert list(ours["event_type"]) == list(recorded["event_type"])
    for column in ("time", "energy", "wattmin"):
        np.testing.assert_allclose(ours[column], recorded[column], rtol=JOULES, atol=SECONDS)
    later = recorded["time"].diff() > SECONDS  # between rows of one date the recorded mean is noise
    assert later.any()
    np.testing.assert_allclose(
        ours["epower"][later].astype(float), recorded["epower"][later].astype(float), rtol=JOULES
    )

    ours, recorded = (read_output(prefix, "pstate_changes") for prefix in (tmp_path / "out", case / "out"))
    assert list(ours) == list(recorded)
    np.testing.assert_allclose(ours["time"], recorded["time"], rtol=1e-5, atol=SECONDS)
    assert ours[["machine_id", "new_pstate"]].astype(str).equals(recorded[["machine_id", "new_pstate"]].astype(str))


def test_the_older_name_of_the_power_property_is_read() -> None:
    """Where SimGrid 3.32 aborts (case 27) the property still says what the hosts take: 4 hosts at 95 W idle."""
    case = next(case for case in CASES if case.name.startswith("27"))
    simulation = simulation_of(case)
    assert simulation.meter is not None
    assert simulation.meter.total(10.0) == pytest.approx(4 * 95 * 10)


def test_every_case_is_replayed() -> None:
    assert len(CASES) - len(ENDED) == 1 and len(ENDED) >= 22 and len(WITH_ENERGY) >= 5
