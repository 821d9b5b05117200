"""The page about reliability says how many inputs each reader gets, as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def test_the_page_lists_every_fuzzed_reader_with_its_number_of_inputs(repository: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(repository / "tests/fuzz")])
    from fuzz_readers import READERS

    page = (repository / "docs/reliability.md").read_text()
    rows = dict(re.findall(r"^\| `([\w-]+)` \| .* \| (\d+) \|$", page, flags=re.M))
    assert rows == {name: str(reader.suite) for name, reader in READERS.items()}
    assert f"{sum(reader.suite for reader in READERS.values()):,} inputs in the test suite" in page


def test_the_page_states_the_promises_of_the_code(repository: Path) -> None:
    from schedlab.evaluation.promises import NOT_COMPARED, PROMISES

    page = (repository / "docs/reliability.md").read_text()
    rows = [
        f"| `{kind}` | {', '.join(f'`{part}`' for part in promise.made_by)} | "
        f"{f'{promise.relative:g}' if promise.relative else '0: the same bytes'} | {promise.meaning} |"
        for kind, promise in PROMISES.items()
    ]
    assert [row for row in rows if row not in page] == []
    assert all(f"`{name}`" in page for name in NOT_COMPARED)


def test_the_page_names_the_first_words_of_every_difference(repository: Path) -> None:
    source = (repository / "src/schedlab/evaluation/manifest_differences.py").read_text()
    told = set(re.findall(r"f\"((?:other (?:code|Python|package|seed|configuration|input)|(?:changed|missing) file))", source))
    page = (repository / "docs/reliability.md").read_text()
    assert len(told) == 8
    assert [words for words in told if f"`{words}`" not in page] == []


def test_the_page_tells_the_kill_points_of_the_suite(repository: Path) -> None:
    page = (repository / "docs/reliability.md").read_text()
    toy = re.search(r"^SEED, COUNT = \d+, (\d+)$", (repository / "tests/faults/test_kill_points.py").read_text(), flags=re.M)
    smoke = re.search(r"^SEED, COUNT = \d+, (\d+)$", (repository / "tests/faults/test_five_studies.py").read_text(), flags=re.M)
    assert toy and smoke
    rows = dict(re.findall(r"^\| the (toy study|smoke run of the five studies), in the test suite.* \| (\d+) \| \2 \|$", page, flags=re.M))
    assert rows == {"toy study": toy[1], "smoke run of the five studies": smoke[1]}


def test_the_pages_tell_the_slurm_jobs_that_the_test_counts(repository: Path) -> None:
    most = re.search(r"^MOST_JOBS = (\d+)$", (repository / "tests/faults/test_slurm.py").read_text(), flags=re.M)
    assert most
    for name in ("reliability", "slurm"):
        assert f"at most {most[1]} Slurm jobs" in (repository / f"docs/{name}.md").read_text().replace("\n", " "), name
