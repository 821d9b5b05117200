"""Outputs of earlier parts are taken by who goes back to them, and only so."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from schedlab.stages import earlier_outputs
from schedlab.stages.earlier_outputs import PARTS, make_or_take
from schedlab.stages.report import job_costs


@pytest.fixture
def job(tmp_path: Path) -> Callable[[str], bool]:
    """Run a job with a part of a text; tells whether it was computed. Its outputs hold the text."""
    part, file, folder = tmp_path / "part.yaml", tmp_path / "made/table", tmp_path / "made/details"

    def run(text: str) -> bool:
        computed = []

        def make() -> None:
            computed.append(text)
            folder.mkdir(parents=True, exist_ok=True)
            for path in (file, folder / "rows"):
                path.unlink(missing_ok=True)
                path.write_text(text)

        part.write_text(text)
        make_or_take(make, part, [file, folder], tmp_path / "made/logs/job.log", tmp_path / "kept")
        assert file.read_text() == (folder / "rows").read_text() == text
        return bool(computed)

    return run


def test_who_goes_back_takes_what_was_made_and_who_asks_once_more_computes(job, tmp_path: Path) -> None:
    assert job("one") and job("other")
    before = (tmp_path / "part.yaml").stat().st_mtime_ns
    assert not job("one") and (tmp_path / "made/table").stat().st_mtime_ns >= before
    assert not job("other") and not job("one")
    assert job("one"), "forced, or its outputs were deleted"
    assert job("one") and not job("other")


def test_as_many_parts_are_kept_as_are_said(job, tmp_path: Path) -> None:
    names = [str(number) for number in range(PARTS + 2)]
    assert all(job(name) for name in names)
    assert len(list(tmp_path.glob("kept/*/*/0"))) == PARTS
    assert not job(names[-2]) and not job(names[2]) and job(names[1])


def test_outputs_that_were_changed_since_are_not_taken(job, tmp_path: Path) -> None:
    assert job("one")
    (tmp_path / "made/table").write_text("mine")  # the kept file is the same one
    assert job("other") and job("one")
    known = next(tmp_path.glob("kept/*")) / "known.json"
    for spoiled in ("{", "[]", '[["a", {"0": "1"}], ["b", 1]]', known.read_text().replace("cpu_time", "files")):
        known.write_text(spoiled)
        assert job("other") and job("one")


def test_what_taken_outputs_cost_counts_in_the_costs_of_a_study(job, tmp_path: Path, monkeypatch) -> None:
    results = tmp_path / "made"

    def cost() -> dict[str, float]:
        (results / "benchmarks/job.tsv").write_text("s\tcpu_time\tmax_rss\n1.0\t0.5\t10\n")
        ((one,),) = job_costs(tmp_path).values()
        return {key: one[key] for key in ("cpu_time", "earlier")}

    (results / "benchmarks").mkdir(parents=True)
    for seconds, text in ((70.0, "one"), (7.0, "other")):
        monkeypatch.setattr(earlier_outputs.os, "times", lambda seconds=seconds: (seconds - 3.0, 1.0, 1.5, 0.5, 99.0))
        assert job(text) and cost() == {"cpu_time": 0.5, "earlier": 0.0}
    for text, seconds in (("one", 70.0), ("other", 7.0), ("one", 70.0)):
        assert not job(text) and cost() == {"cpu_time": 0.5, "earlier": seconds}
    assert job("one") and cost() == {"cpu_time": 0.5, "earlier": 0.0}, "computed once more"


def keep_often(folder: Path, text: str, times: int) -> None:
    """A job of its own folder of results, whose parts come and go, with a store that others use."""
    part, outputs = folder / "part.yaml", [folder / name for name in ("table", "details")]

    def make() -> None:
        outputs[1].mkdir(parents=True, exist_ok=True)
        for path in (outputs[0], *(outputs[1] / str(number) for number in range(5))):
            path.unlink(missing_ok=True)
            path.write_text(part.read_text())

    os.chdir(folder)
    for number in range(times):
        part.write_text(f"{text} {number % 2}")
        make_or_take(make, part, ["table", "details"], folder / "logs/job.log", folder.parent / "kept")
        made = {path.read_text() for path in (Path("table"), *Path("details").iterdir())}
        assert made == {part.read_text()}, made
        assert len(list(Path("details").iterdir())) == 5


def test_several_runs_of_different_code_share_a_store_also_where_one_is_killed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    processes = {}
    for text in ("one", "other", "one more", "killed"):
        (tmp_path / text / "benchmarks").mkdir(parents=True)
        processes[text] = multiprocessing.get_context("spawn").Process(
            target=keep_often, args=(tmp_path / text, text.removesuffix(" more"), 10_000 if text == "killed" else 40)
        )
    for process in processes.values():
        process.start()
    for text, process in processes.items():
        if text == "killed":
            process.kill()
        process.join()
    assert [process.exitcode for process in processes.values()] == [0, 0, 0, -signal.SIGKILL]
    keep_often(tmp_path / "killed", "killed", 4)


def test_a_job_that_fails_keeps_nothing_and_the_last_part_stays_the_last(job, tmp_path: Path, monkeypatch) -> None:
    assert job("one") and job("other")
    part = tmp_path / "part.yaml"
    part.write_text("third")
    with pytest.raises(OSError, match="full"):
        make_or_take(
            lambda: (_ for _ in ()).throw(OSError("full")),
            part,
            [tmp_path / "made/table"],
            tmp_path / "log",
            tmp_path / "kept",
        )
    assert not job("one") and not job("other")
    monkeypatch.setattr(earlier_outputs.os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links")))
    assert job("fourth") and job("one"), "where there are no links nothing is kept"
