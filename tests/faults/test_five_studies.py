"""The smoke run of the five studies: on one core, killed on two and started again, always the same bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faults import Bench, kill_points

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("five studies")]
SEED, COUNT = 0, 1
STUDIES = {"adaptation", "batch", "cloud", "hetero", "ramp"}


@pytest.mark.parametrize("number", range(COUNT))
def test_a_killed_run_on_two_cores_ends_with_the_bytes_of_one_on_one_core(five_studies: Bench, number: int) -> None:
    points = [replace(point, target="all") for point in kill_points(SEED, number)]
    wrong = five_studies.try_kills(points)
    assert not wrong, f"{'; '.join(map(str, points))}: {wrong}"


def test_it_is_a_run_of_every_study(five_studies: Bench) -> None:
    hashes = five_studies.reference("all").hashes
    assert {name.split("/")[2] for name in hashes if name.endswith("/summary.parquet")} == STUDIES
    assert {name.split("/")[2] for name in hashes if name.endswith(".svg")} == STUDIES
    assert "results/smoke/manifest.json" in hashes and "results/smoke/hetero/config/draw.yaml" in hashes
