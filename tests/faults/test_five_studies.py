"""The smoke run of the five studies: on one core, killed on two and started again, always the same bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from faults import Bench, kill_points

pytestmark = pytest.mark.xdist_group("five studies")
SEED, COUNT = 0, 2
STUDIES = {"adaptation", "batch", "cloud", "hetero", "ramp"}


@pytest.mark.parametrize("number", range(COUNT))
def test_a_killed_run_on_two_cores_ends_with_the_bytes_of_one_on_one_core(five_studies: Bench, number: int, tell_count) -> None:
    points = [replace(point, target="all") for point in kill_points(SEED, number)]
    wrong = five_studies.try_kills(points)
    tell_count("kill points survived on the smoke run of the five studies", int(not wrong), of=1)
    assert not wrong, f"{'; '.join(map(str, points))}: {wrong}"
    tell_count("hashes of files compared between smoke runs", len(five_studies.reference("all").hashes))


def test_it_is_a_run_of_all_that_the_page_tells(five_studies: Bench, repository: Path) -> None:
    hashes = five_studies.reference("all").hashes
    assert {name.split("/")[2] for name in hashes if name.endswith("/summary.parquet")} == STUDIES
    assert {name.split("/")[2] for name in hashes if name.endswith(".svg")} == STUDIES
    assert "results/smoke/manifest.json" in hashes and "results/smoke/hetero/config/draw.yaml" in hashes
    told = re.search(r"(\d+) hashes of five studies", (repository / "docs/reliability.md").read_text())
    assert told and int(told[1]) == len(hashes), "docs/reliability.md tells another number of hashes"


def test_the_points_are_of_the_main_process_and_of_a_job() -> None:
    assert [point.victim for number in range(COUNT) for point in kill_points(SEED, number)] == ["main", "worker"]
