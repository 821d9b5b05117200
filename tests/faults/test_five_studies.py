"""The smoke run of the five studies: on one core, killed on two and started again, with other instructions of the
processor asked for, always the same bytes.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from checkouts import Checkout

from faults import Bench, kill_points
from processors import ASKED
from schedlab.config.runtime.instructions import PINS

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


@pytest.mark.parametrize("asked", ASKED)
def test_every_study_learns_the_same_bytes_whatever_instructions_are_asked_for(
    five_studies: Bench, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {name: made for name, made in five_studies.reference("all").hashes.items() if "/policies/" in name}
    copy = Checkout(shutil.copytree(five_studies.checkout.folder, tmp_path / "copy", symlinks=True))
    policies = {Path(name).parent for name in expected if name.endswith("policy.zip")}
    assert {policy.parts[2] for policy in policies} == STUDIES
    for policy in policies:
        (copy.folder / policy / "policy.zip").unlink()
    for name in PINS:  # as this test's process has them
        monkeypatch.delenv(name, raising=False)
    for name, value in ASKED[asked].items():
        monkeypatch.setenv(name, value)
    wanted = [str(policy / "policy.zip") for policy in sorted(policies)]
    copy.run(*wanted, *five_studies.options, cores=1)
    found = {name: made for name, made in copy.hashes().items() if "/policies/" in name}
    assert found == expected
