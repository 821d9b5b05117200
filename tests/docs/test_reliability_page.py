"""The page about reliability says how many inputs each reader gets, as it is."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from counts import EXPECTED

KILLS = ("test_kill_points.py", "test_five_studies.py")


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


def test_the_page_has_a_row_for_everything_that_the_tests_count(repository: Path, monkeypatch) -> None:
    """A count is that of the tests' own constants; hashes are those that the page tells of one smoke run, for each run compared with it."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(repository / "tests/fuzz")])
    from fuzz_readers import READERS

    page, tests = (repository / "docs/reliability.md").read_text(), repository / "tests/faults"
    kills = {name: int(re.search(r"^SEED, COUNT = \d+, (\d+)$", (tests / name).read_text(), flags=re.M)[1]) for name in KILLS}
    slurm = re.search(r'"Slurm faults survived", (\d+)', (tests / "test_slurm.py").read_text())
    one_run = re.search(r"(\d+) hashes of five studies, all equal", page)
    assert slurm and one_run
    toy, smoke = kills.values()
    counts = {
        "fuzz inputs tried without a failure": sum(reader.suite for reader in READERS.values()),
        "kill points survived on the toy study": toy,
        "restarts killed as well on the toy study": sum(number % 8 == 7 for number in range(toy)),
        "kill points survived on the smoke run of the five studies": smoke,
        "other faults survived": other_faults(ast.parse((tests / "test_disks_and_neighbours.py").read_text())),
        "Slurm faults survived": int(slurm[1]),
    }
    expected = {what: f"{number:,} of {number:,}" for what, number in counts.items()}
    expected["hashes of files compared between smoke runs"] = f"{smoke * int(one_run[1]):,}"
    expected["hashes of files compared between local runs and Slurm"] = f"{int(one_run[1]):,}"
    expected["outputs of ended jobs that a restart left as they were"] = "differs"
    assert set(expected) == set(EXPECTED)
    _, _, section = page.partition("| counted | number | what that is |\n|---|---:|---|\n")
    rows = re.findall(r"^\| (.+?) \| ([\d,of ]+|differs) \| .* \|$", section.partition("\n\n")[0], flags=re.M)
    assert dict(rows) == expected


def other_faults(test: ast.Module) -> int:
    """The moments at which a disk is full, the cases of results that cannot be written, and the two runs at once."""
    nodes = list(ast.walk(test))
    (shares,) = (node.iter for node in nodes if isinstance(node, ast.For) and ast.unparse(node.target) == "share")
    (listed,) = (node.value for node in nodes if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "cases")
    appended = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "cases.append"]
    return len(shares.elts) + len(listed.elts) + len(appended) + 1


def test_the_pages_tell_the_slurm_jobs_that_the_test_counts(repository: Path) -> None:
    most = re.search(r"^MOST_JOBS = (\d+)$", (repository / "tests/faults/test_slurm.py").read_text(), flags=re.M)
    assert most
    for name in ("reliability", "slurm"):
        assert f"at most {most[1]} Slurm jobs" in (repository / f"docs/{name}.md").read_text().replace("\n", " "), name
