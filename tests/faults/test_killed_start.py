"""A start that is killed while it composes and freezes the configuration is gone on with by the next one."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from checkouts import write_toy_conf

from schedlab.config import experiment
from schedlab.config.files import remove_leftovers
from schedlab.config.runtime import freeze, record_cache
from schedlab.config.runtime.record_cache import RecordCache
from schedlab.stages.studies import find_study

pytestmark = pytest.mark.slow
SCENARIOS, KILLS = 40, 10
RECORDS = Path(".schedlab/records-small.json")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@pytest.fixture
def folder(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy with many scenarios that a program wrote, each in a file."""
    write_toy_conf(repository, tmp_path)
    shutil.copytree(repository / "tests/toy_study", tmp_path / "tests/toy_study")
    place = tmp_path / "conf/scenario/toy"
    for number in range(SCENARIOS):
        text = (place / "far.yaml").read_text().replace("name: far", f"name: made{number}")
        (place / f"made{number}.yaml").write_text(text.replace("centre: 4.0", f"centre: {number}.5"))
    monkeypatch.setattr(record_cache, "SECONDS", 0.0)  # of work that may be lost, so that no clock decides
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(notes: Path, last: int) -> tuple[int, int, list[str]]:
    """Compose and freeze in a process that is killed before file event number `last` (0: never); returns its status,
    how many events it had, and the keys of what it made.
    """
    shutil.rmtree(notes, ignore_errors=True)
    notes.mkdir()
    process = multiprocessing.get_context("fork").Process(target=freeze_here, args=(notes, last))
    process.start()
    process.join()
    events, made = ((notes / name).read_text() if (notes / name).exists() else "" for name in ("events", "made"))
    return process.exitcode, len(events), made.splitlines()


def freeze_here(notes: Path, last: int) -> None:
    events, made = (os.open(notes / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in ("events", "made"))
    get = RecordCache.get

    def count(name: str, arguments: tuple) -> None:
        if name == "os.rename" or (name == "open" and arguments[2] & WRITES and not isinstance(arguments[0], int)):
            os.write(events, b".")
            if os.lseek(events, 0, os.SEEK_CUR) == last:
                os.kill(os.getpid(), signal.SIGKILL)

    def noted(cache: RecordCache, key: str, make):
        def make_and_note():
            value = make()
            os.write(made, f"{key}\n".encode())
            return value

        return get(cache, key, make_and_note)

    RecordCache.get = noted
    sys.addaudithook(count)
    freeze.write_parts(experiment.load("conf", "small", find_study, RECORDS))


def frozen() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path("results").rglob("*")) if path.is_file()}


def records() -> dict[str, object]:
    """What was read and composed; what was written is known by its time of change."""
    return {key: value for key, value in json.loads(RECORDS.read_text()).items() if not key.startswith("frozen:")}


def left(expected: dict[str, bytes], code: set[str]) -> int:
    """How many parts and records, those of the code (by their keys) among them, a start would still have to make."""
    known = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    scenarios = SCENARIOS - sum("/toy/made" in key for key in known)
    return sum(name not in frozen() for name in expected) + scenarios + len(code - set(known))


def test_each_start_goes_on_where_the_last_was_killed(folder: Path) -> None:
    status, events, made = start(folder / "notes", 0)
    assert status == 0 and len(made) > SCENARIOS
    expected, known = frozen(), records()
    code = {key for key in known if key.startswith("code:")}
    assert len(expected) > SCENARIOS and code
    for name in ("results", ".schedlab"):
        shutil.rmtree(name)
    draws, again, before = random.Random("killed starts"), [], left(expected, code)
    for _ in range(KILLS):
        status, _, more = start(folder / "notes", draws.randint(12, events // 7))
        assert status == -signal.SIGKILL
        again += more
        assert left(expected, code) < before, "it went on"
        before = left(expected, code)
    status, _, more = start(folder / "notes", 0)
    assert status == 0
    made, all_made = ([key for key in keys if not key.startswith("frozen:")] for keys in (made, [*again, *more]))
    twice = sorted((Counter(all_made) - Counter(made)).elements())
    assert len(twice) <= KILLS, f"a kill costs what was being made: {twice}"
    remove_leftovers("results", ".schedlab")
    assert frozen() == expected and records() == known
