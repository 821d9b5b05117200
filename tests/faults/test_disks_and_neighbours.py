"""A full disk, results that cannot be written, and a second run beside the first: each is told in a paragraph, and a
restart mends all.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkouts import Checkout

from faults import MADE, WITHOUT_FIGURES, Bench, one_seed
from schedlab.config.errors import DISK_TROUBLE
from schedlab.config.runtime.run_lock import busy

pytestmark = [pytest.mark.slow, pytest.mark.needs_system]
FULL, READ_ONLY = (DISK_TROUBLE[code][0] for code in (errno.ENOSPC, errno.EROFS))  # not the system's words for them
REFUSED = busy(Path()).what


def mount(*arguments: str | Path) -> None:
    """Mount something, or skip where that is not permitted."""
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs leave to mount a file system: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", folder)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def told_in_paragraphs(output: str, snakemake: bool = True) -> bool:
    """Whether an output has no traceback; snakemake=False: but for its own, which Snakemake gives where it cannot keep
    its books.
    """
    frames = [line for line in output.splitlines() if line.strip().startswith('File "')]
    if snakemake:
        return not frames and "Traceback" not in output
    return not any("/src/schedlab/" in line or "/scripts/" in line for line in frames)


def test_a_disk_that_is_full_is_told_and_the_run_goes_on_once_there_is_room(
    small_disk: Path, bench: Bench, monkeypatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # the disk holds what the run writes and nothing else
    expected = bench.reference(WITHOUT_FIGURES)
    checkout = one_seed(small_disk / "checkout")
    before = free_bytes(small_disk)
    checkout.run(WITHOUT_FIGURES)
    used = before - free_bytes(small_disk)
    told = {}
    for share in (0.02, 0.4, 0.8):
        subprocess.run(["rm", "-rf", *(str(checkout.folder / name) for name in MADE)], check=True)
        filler = small_disk / "filler"
        filler.write_bytes(bytes(free_bytes(small_disk) - int(share * used)))
        output = checkout.run(WITHOUT_FIGURES, status=1)
        told[share] = FULL in output
        assert told[share] or "No space left on device" in output, output
        assert told_in_paragraphs(output, snakemake=False), output
        filler.unlink()
        assert share < 0.1 or (checkout.folder / "results/small/toy/near/inputs/targets.json").exists(), (
            "in the midst of the run"
        )
        checkout.run(WITHOUT_FIGURES)
        assert checkout.hashes() == expected.hashes
        assert Bench.names_of(checkout) == expected.names
    # In the midst of a run Snakemake may meet the full disk first, while it keeps its books, and say it in the system's
    # words alone.
    assert told[0.02] and (told[0.4] or told[0.8]), told


def test_results_that_cannot_be_written_are_told_and_made_once_they_can(bench: Bench) -> None:
    expected = bench.reference(WITHOUT_FIGURES)
    bench.clear()
    checkout = bench.checkout
    checkout.run(WITHOUT_FIGURES)
    results = checkout.folder / "results"
    protected = "Write-protected output files"  # what Snakemake says of files that it would have to replace
    one = "results/small/toy/near/evaluation/hill.parquet"
    cases = [("near/config", WITHOUT_FIGURES, READ_ONLY), ("summary.parquet", WITHOUT_FIGURES, protected)]
    cases.append(("near/evaluation", one, READ_ONLY))
    for missing, target, said in cases:
        subprocess.run(["rm", "-rf", str(results / "small/toy" / missing)], check=True)
        mount("--bind", results, results)
        try:
            mount("-o", "remount,ro,bind", results)
            output = checkout.run(target, status=1)
        finally:
            subprocess.run(["umount", results], check=True)
        assert said in output, output
        assert told_in_paragraphs(output), output
        checkout.run(WITHOUT_FIGURES, target)
        assert checkout.hashes() == expected.hashes
        assert bench.names() == expected.names


def start(checkout: Checkout, output: Path) -> subprocess.Popen:
    """Start a run of a checkout."""
    with output.open("w") as stream:
        return subprocess.Popen(
            checkout.command(WITHOUT_FIGURES), cwd=checkout.folder, stdout=stream, stderr=subprocess.STDOUT
        )


def test_of_two_runs_that_begin_at_once_one_is_refused_and_the_other_is_not_harmed(
    bench: Bench, tmp_path: Path
) -> None:
    expected = bench.reference(WITHOUT_FIGURES)
    bench.clear()
    said = [tmp_path / "one.txt", tmp_path / "other.txt"]
    runs = [start(bench.checkout, file) for file in said]
    status = [run.wait(600) for run in runs]
    assert sorted(status) == [0, 1], [file.read_text() for file in said]
    refused = said[status.index(1)].read_text()
    assert REFUSED in refused and "--directory" in refused and told_in_paragraphs(refused), refused
    assert bench.checkout.hashes() == expected.hashes
    assert bench.names() == expected.names
    assert "Nothing to be done" in bench.checkout.run(WITHOUT_FIGURES)
