"""A run that is killed anywhere ends as if nothing had happened once it is started again; `make faults` tries more
points.
"""

from __future__ import annotations

import json
import re

import pytest

from faults import VICTIMS, WITHOUT_FIGURES, Bench, KillPoint, kill_points

pytestmark = pytest.mark.slow
SEED = 0
NUMBERS = (1, 2, 4, 7)  # of every victim one, of both targets; the last one's restart is killed as well


@pytest.mark.parametrize("number", NUMBERS)
def test_one_plain_restart_ends_with_the_bytes_of_an_undisturbed_run(bench: Bench, number: int) -> None:
    points = kill_points(SEED, number)
    wrong = bench.try_kills(points)
    assert not wrong, f"{'; '.join(map(str, points))}: {wrong}"


def test_the_points_are_of_every_kind_and_depend_on_seed_and_number_alone() -> None:
    tried = [point for number in NUMBERS for point in kill_points(SEED, number)]
    assert {point.victim for point in tried} == set(VICTIMS) and {point.opened for point in tried} == {True, False}
    assert {point.target for point in tried} == {"all", WITHOUT_FIGURES} and len(tried) > len(NUMBERS)
    points = [point for number in range(25) for point in kill_points(SEED, number)]
    assert {point.victim for point in points} == set(VICTIMS)
    assert {(point.opened, point.target) for point in points} == {
        (cut, to) for cut in (True, False) for to in ("all", WITHOUT_FIGURES)
    }
    assert len(points) > 25, "some restarts are killed as well"
    assert points == [point for number in range(25) for point in kill_points(SEED, number)]
    assert points != [point for number in range(25) for point in kill_points(SEED + 1, number)]


def test_a_killed_training_job_goes_on_from_its_last_checkpoint(bench: Bench) -> None:
    expected = bench.reference(WITHOUT_FIGURES)
    bench.clear()
    status, _ = bench.run(WITHOUT_FIGURES, KillPoint("training", 0.6, False, WITHOUT_FIGURES))
    assert status == 1
    job = bench.checkout.folder / "results/small/toy/policies/hill/seed-0"
    step = json.loads((job / "progress/state.json").read_text())["step"]
    assert 0 < step < 20, "killed in the midst of its learning"
    ended = bench.ended(WITHOUT_FIGURES)
    assert "results/small/toy/near/inputs/targets.json" in ended and not [
        name for name in ended if "/policies/" in name
    ]
    output = bench.checkout.run(WITHOUT_FIGURES)
    assert {name: bench.state(name) for name in ended} == ended
    assert "learn toy/hill/seed-0: " in output and "draw_targets near: " not in output, "a line for each job that ran"
    log = (job / "logs/learn.log").read_text()
    kept = re.search(
        r"^the learning was interrupted; (\d+) of (\d+) points of its curve were recorded before$", log, flags=re.M
    )
    assert kept, log
    assert int(kept[1]) in (step, step + 1), "a point is recorded before its state is saved"
    assert int(kept[2]) == 20
    assert bench.checkout.hashes() == expected.hashes
    assert bench.names() == expected.names


def test_a_file_left_over_a_changed_byte_and_a_repeated_job_are_seen(bench: Bench) -> None:
    expected = bench.reference(WITHOUT_FIGURES)
    bench.clear()
    bench.checkout.run(WITHOUT_FIGURES)
    assert (bench.checkout.hashes(), bench.names()) == (expected.hashes, expected.names)
    file = bench.checkout.folder / "results/small/toy/summary.parquet"
    ended = bench.ended(WITHOUT_FIGURES)
    assert len(expected.jobs) == 5 and sorted(ended) == sorted(name for outputs in expected.jobs for name in outputs)
    bench.checkout.run(WITHOUT_FIGURES, "--forcerun", "summarise")
    assert bench.checkout.hashes() == expected.hashes
    assert (
        {"results/small/toy/summary.parquet"}
        < {name for name in ended if bench.state(name) != ended[name]}
        < set(ended)
    )
    file.with_name(".summary.parquet.abcdefgh.parquet").touch()
    assert bench.names() != expected.names
    file.write_bytes(file.read_bytes()[:-1])
    assert bench.checkout.hashes() != expected.hashes
