"""What a job's log holds, what its console says, and that logging is afterwards as it was."""

from __future__ import annotations

import errno
import logging
import sys
from pathlib import Path

import pytest

import schedlab
from schedlab.config.errors import DISK_TROUBLE, UserError
from schedlab.config.runtime import provenance
from schedlab.config.runtime.job_log import job_log


def test_a_log_holds_what_is_printed_and_logged(tmp_path, capsys):
    with job_log(tmp_path / "logs" / "job.log"):
        print("printed")
        print("told", file=sys.stderr)
        logging.getLogger("schedlab.somewhere").info("logged %d", 1)
    assert (tmp_path / "logs" / "job.log").read_text() == "printed\ntold\nlogged 1\n"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "console", "kept"),
    [
        (
            UserError("conf/x.yaml: seeds: is -1; expected a whole number"),
            "error: conf/x.yaml: seeds: is -1; expected a whole number.\n",
            "error: ",
        ),
        (ValueError("of ours"), "error: ValueError: of ours (traceback in job.log)\n", "Traceback"),
    ],
)
def test_an_error_ends_the_job_with_one_line(tmp_path, monkeypatch, capsys, error, console, kept):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="1"), job_log("job.log"):
        raise error
    assert capsys.readouterr().err == console
    assert (tmp_path / "job.log").read_text().startswith(kept)


@pytest.mark.parametrize(
    ("number", "named", "said"),
    [
        (errno.ENOSPC, None, "the disk of job.log: the disk is full; make room, then start the same command again"),
        (errno.EROFS, "results/a.parquet", "results/a.parquet: the file system can only be read; make it writable"),
        (errno.EACCES, "results/a.parquet", "results/a.parquet: access is not permitted; change the owner"),
    ],
)
def test_a_disk_that_cannot_be_written_is_one_paragraph(tmp_path, monkeypatch, capsys, number, named, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="1"), job_log("job.log"):
        raise OSError(number, "as the system says", named)
    console = capsys.readouterr().err
    assert console.startswith(f"error: {said}")
    assert (tmp_path / "job.log").read_text() == console


def test_a_log_that_cannot_be_written_is_one_paragraph(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="1"), job_log(tmp_path / "file" / "job.log"):
        raise AssertionError("the job must not begin")
    assert capsys.readouterr().err.startswith("error: [Errno")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_error_is_told_where_the_log_takes_no_more(capsys):
    with pytest.raises(SystemExit, match="1"), job_log("/dev/full"):
        raise OSError(errno.ENOSPC, "as the system says", "results/a.parquet")
    assert capsys.readouterr().err.startswith(f"error: results/a.parquet: {DISK_TROUBLE[errno.ENOSPC][0]}")


def test_the_log_holds_the_traceback_of_what_an_error_was_made_of(tmp_path, capsys):
    def fail() -> None:
        try:
            {}["weight"]
        except KeyError as error:
            raise UserError("mine.py:3: rule 'mine' failed") from error

    with pytest.raises(SystemExit, match="1"), job_log(tmp_path / "job.log"):
        try:
            fail()
        except UserError as error:
            raise UserError(str(error), where="mine on test-0") from error
    assert capsys.readouterr().err == "error: mine on test-0: mine.py:3: rule 'mine' failed.\n"
    assert "KeyError: 'weight'" in (tmp_path / "job.log").read_text()


@pytest.mark.parametrize("fails", [False, True])
def test_logging_is_afterwards_as_it_was(tmp_path, fails):
    root = logging.getLogger()
    former, level = list(root.handlers), root.level
    try:
        with job_log(tmp_path / "job.log"):
            assert [type(handler) for handler in root.handlers] == [logging.StreamHandler]
            if fails:
                raise UserError("told")
    except SystemExit:
        assert fails
    assert root.handlers == former
    assert root.level == level


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("edited", [False, True])
def test_a_job_whose_code_is_edited_while_it_runs_says_so_in_its_log(tmp_path, monkeypatch, edited, fails):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(schedlab, "__file__", str(package / "__init__.py"))
    provenance.source_hash.cache_clear()
    before = provenance.source_now()
    try:
        with job_log(tmp_path / "job.log"):
            if edited:
                (package / "new.py").write_text("a = 1\n")
            if fails:
                raise UserError("told")
    except SystemExit:
        assert fails
    finally:
        provenance.source_hash.cache_clear()
    told = (tmp_path / "job.log").read_text()
    warned = (
        f"warning: the code of schedlab was edited while this job ran (source {before} when it began, "
        f"{provenance.source_now()} now)"
    )
    assert (warned in told) is edited and ("warning" in told) is edited
