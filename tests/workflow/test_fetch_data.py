"""Data that a scenario lacks: `--config fetch=true` gets it before the run is planned, and the rule `fetch_data` at
any time; what cannot be had is named, and the rest runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkouts import Checkout

from web_server import Web, serving

pytestmark = pytest.mark.slow

NEEDED, NOT_RUN = b"0.5\n", "not run: toy/far: needs the offsets"
HASH = hashlib.sha256(NEEDED).hexdigest()
RULES = "results/small/toy/far/evaluation/rules.parquet"


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as made:
        made.files["/offsets.txt"] = NEEDED
        yield made


@pytest.fixture
def lacking(fresh_toy: Checkout, web: Web, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """The toy, one of whose scenarios needs a file that only the web has."""
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    fresh_toy.edit("tests/toy_study/study.py", "    Problem,\n", "    Problem,\n    Requirement,\n")
    need = 'Requirement("the offsets", Path("offsets.txt"), "the web")'
    fresh_toy.edit("tests/toy_study/study.py", "lambda _: ()", f"lambda made: ({need},) if made.centre == 4 else ()")
    (fresh_toy.folder / "conf/download").mkdir()
    (fresh_toy.folder / "conf/download/offsets.yaml").write_text(
        f"name: offsets\npurpose: a test\nlicence: free\nbase: {web.address}/\n"
        f"files: [{{path: offsets.txt, to: offsets.txt, sha256: {HASH}}}]\n"
    )
    return fresh_toy


def got(checkout: Checkout) -> list[str]:
    """The files of the data folder."""
    folder = checkout.folder / "resources/data"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_run_gets_what_it_lacks_and_runs_everything(lacking: Checkout, web: Web) -> None:
    before = got(lacking)
    assert NOT_RUN in lacking.run("toy", "--dry-run") and not web.asked
    planned = lacking.run(RULES, "--dry-run", "--config", "fetch=true", status=1)
    assert "would be fetched first: offsets" in planned and not web.asked
    output = lacking.run(RULES, "--config", "fetch=true")
    assert "not run" not in output and "[1/1] fetch_data" in output and len(web.asked) == 1
    assert (lacking.folder / RULES).is_file() and got(lacking) == sorted([*before, "offsets.txt"])
    assert "licence: free" in (lacking.folder / "results/small/logs/fetch_data.log").read_text()
    assert "Nothing to be done" in lacking.run(RULES, "--config", "fetch=true") and len(web.asked) == 1


@pytest.mark.parametrize("wrong", [b"another file", None], ids=["another content", "not there"])
def test_what_cannot_be_had_is_named_and_the_rest_runs(lacking: Checkout, web: Web, wrong: bytes | None) -> None:
    before = got(lacking)
    web.files = {"/offsets.txt": wrong} if wrong else {}
    output = lacking.run("results/small/toy/near/evaluation/rules.parquet", "--config", "fetch=true", status=1)
    assert f"error: {web.address}/offsets.txt: " in output and NOT_RUN in output and "Traceback" not in output
    assert "error: could not be fetched: offsets" in output
    assert (lacking.folder / "results/small/toy/near/evaluation/rules.parquet").is_file()
    assert [name for name in got(lacking) if not name.startswith(".partial/")] == before


def test_the_rule_gets_data_without_a_run(lacking: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDLAB_DATA", str(tmp_path / "shared"))
    lacking.run("fetch_data")
    assert (tmp_path / "shared/offsets.txt").read_bytes() == NEEDED
    assert "not run" not in lacking.run("toy", "--dry-run")


def test_a_folder_that_cannot_be_written_is_one_sentence(lacking: Checkout, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("SCHEDLAB_DATA", str(tmp_path / "a file"))
    output = lacking.run("fetch_data", status=1)
    assert "error: " in output and str(tmp_path / "a file") in output and "Traceback" not in output


def test_a_value_that_is_no_truth_value_is_refused(lacking: Checkout) -> None:
    output = lacking.run("toy", "--config", "fetch=yes please", status=1)
    assert "--config: fetch" in output and "Traceback" not in output
