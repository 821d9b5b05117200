"""Every reader reads or refuses thousands of files made wrong; `make fuzz` tries more of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_readers import READERS, Reader

import fuzz
from schedlab.config.errors import UserError

pytestmark = pytest.mark.slow
SEED = 0


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_no_reader_fails_in_any_other_way_than_it_says(reader: Reader) -> None:
    outcome = fuzz.fuzz(reader, reader.suite, SEED)
    print(fuzz.report(reader, outcome, SEED))
    assert not outcome.failures, fuzz.report(reader, outcome, SEED)
    assert outcome.tried == reader.suite
    assert outcome.refused > outcome.tried // 10, "the changes must do something"
    assert outcome.read > 0, "the changes must leave something to read"


def test_an_input_depends_on_seed_and_number_alone() -> None:
    swf = READERS["swf"]
    assert fuzz.make_input(swf, 0, 7) == fuzz.make_input(swf, 0, 7)
    assert len({fuzz.make_input(swf, seed, number) for seed in range(3) for number in range(30)}) > 60


def _reads_with(error: BaseException | None) -> Reader:
    def read(path: Path) -> None:
        if error is not None and path.read_bytes() != b"1\n":
            raise error

    return Reader("swf", "a.txt", "text", lambda: [b"1\n"], read)


def test_the_fuzzer_sees_what_it_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "valid_files", lambda name: [b"1\n"])
    assert not fuzz.fuzz(_reads_with(UserError("a mistake")), 50, SEED).failures
    for error in (
        KeyError("a"),
        MemoryError(),
        RuntimeWarning("w"),
        UserError("x" * 900, where="y" * 900, expected="z" * 9000),
    ):
        outcome = fuzz.fuzz(_reads_with(error), 50, SEED)
        assert bool(outcome.failures) is not isinstance(error, UserError)
        assert len(outcome.failures) in (0, 10)
    line = fuzz.report(READERS["swf"], fuzz.fuzz(_reads_with(KeyError("a")), 50, SEED), SEED)
    assert "KeyError" in line and "python tests/fuzz/fuzz.py --reader swf --seed 0 --number " in line


def test_a_reader_that_does_not_end_or_fills_the_memory_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(path: Path) -> None:
        wrong = path.read_bytes() != b"1\n"
        while wrong:
            pass

    def greedy(path: Path) -> None:
        bytearray(0 if path.read_bytes() == b"1\n" else 2 * fuzz.MEMORY)

    monkeypatch.setattr(fuzz, "valid_files", lambda name: [b"1\n"])
    monkeypatch.setattr(fuzz, "PATIENCE", 0.05)
    for read, kind in ((endless, fuzz.Hangs), (greedy, MemoryError)):
        failures = fuzz.fuzz(Reader("swf", "a.txt", "text", lambda: [b"1\n"], read), 20, SEED, most_failures=2).failures
        assert [type(failure) for failure in failures.values()] == [kind] * 2
