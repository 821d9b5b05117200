"""The smoke run of the five studies has the same bytes on one core, killed on two and started again, and where jobs are
forced. The first two request the instructions of different processors from the libraries; .ci/run requests those of a
third.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from checkouts import Checkout

from faults import Bench, kill_points
from processors import requesting

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("five studies")]
SEED, COUNT = 0, 1
STUDIES = {"adaptation", "batch", "cloud", "hetero", "ramp"}


@pytest.mark.parametrize("number", range(COUNT))
def test_a_killed_run_on_two_cores_ends_with_the_bytes_of_one_on_one_core(five_studies: Bench, number: int) -> None:
    points = [replace(point, target="all") for point in kill_points(SEED, number)]
    with requesting("AVX2"):
        wrong = five_studies.try_kills(points)
    assert not wrong, f"{'; '.join(map(str, points))}: {wrong}"


# of each study an input that one short job makes, and the rule of that job
SHORT = {
    "adaptation": ("early/inputs/job-0-replicate-0.parquet", "simulate_adaptation_0_0"),
    "batch": ("inputs/make_trace-*/trace.swf.gz", "make_trace"),
    "cloud": ("inputs/fit_performance-*/model.json", "fit_performance"),
    "hetero": ("inputs/generate_platform-*/platform.xml", "generate_platform"),
    "ramp": ("inputs/trace_graphs-*/graphs.zip", "trace_graphs"),
}


def test_forced_jobs_deleted_outputs_and_a_deleted_store_are_computed_again_with_the_same_bytes(
    five_studies: Bench, tmp_path: Path
) -> None:
    expected = five_studies.reference("all").hashes
    copy = Checkout(shutil.copytree(five_studies.checkout.folder, tmp_path / "copy", symlinks=True))
    results = copy.folder / "results/smoke"
    inputs = [next((results / study).glob(made)) for study, (made, _) in SHORT.items()]
    policies = [min((results / study / "policies").glob("*/*/policy.zip")) for study in sorted(STUDIES)]
    log = results / "adaptation/early/logs/simulate_adaptation-0-0-0.log"

    def state(file: Path) -> tuple[int, int] | None:
        return (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else None

    def trained(files: list[Path], *arguments: str) -> int:
        """Make some files again, all with the same bytes; returns how many epochs the simulation trained for it."""
        before = {file: state(file) for file in files}
        names = [file.relative_to(copy.folder).as_posix() for file in files]
        copy.run(*names, *five_studies.options, *arguments, cores=1)
        assert not [file for file in files if state(file) == before[file]]
        assert copy.hashes() == expected
        return sum(map(int, re.findall(r"(\d+) trained", log.read_text())))

    of_replicate = trained([*inputs, *policies], "--forceall")
    assert of_replicate > 0
    shutil.rmtree(results / "adaptation/store")
    assert trained(inputs, "-R", *(rule for _, rule in SHORT.values())) > of_replicate, "the trunk as well"
    inputs[0].unlink()
    assert trained(inputs[:1]) == of_replicate


def test_it_is_a_run_of_every_study(five_studies: Bench) -> None:
    hashes = five_studies.reference("all").hashes
    assert {name.split("/")[2] for name in hashes if name.endswith("/summary.parquet")} == STUDIES
    assert {name.split("/")[2] for name in hashes if name.endswith(".svg")} == STUDIES
    assert "results/smoke/manifest.json" in hashes and "results/smoke/hetero/config/draw.yaml" in hashes
