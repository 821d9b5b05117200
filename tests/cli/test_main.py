"""The `schedlab` command as a process: exit statuses, what goes to which stream, and no traceback for a user's
mistake.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import schedlab
from schedlab.cli.main import main
from small_conf import write_conf


def schedlab_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "schedlab.cli.main", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "status", "stream", "told"),
    [
        (("--version",), 0, "stdout", schedlab.__version__),
        ((), 2, "stdout", "usage"),
        (("chek",), 2, "stderr", "invalid choice"),
        (("check",), 2, "stderr", "conf/config.yaml"),
    ],
)
def test_statuses_and_streams_of_the_process_in_an_empty_folder(
    tmp_path: Path, arguments: tuple[str, ...], status: int, stream: str, told: str
) -> None:
    done = schedlab_command(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert told in getattr(done, stream)
    assert getattr(done, "stderr" if stream == "stdout" else "stdout") == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "stream", "told"),
    [
        (("--help",), 0, "out", "adaptation"),
        (("adaptation",), 2, "err", "COMMAND"),
        (("adaptation", "--help"), 0, "out", "calibrate"),
        (("adaptation", "run"), 2, "err", "--scenario"),
        (("claims",), 2, "err", "conf/config.yaml"),
        (("manifest",), 2, "out", "check"),
        (("export", "adaptation/early"), 2, "err", "conf/config.yaml"),
        (("adaptation", "run", "--scenario", "early", "--policy", "never"), 2, "err", "conf/config.yaml"),
        (("adaptation", "rank", "none.csv"), 2, "err", "none.csv"),
        (("adaptation", "predict", "none.npz"), 2, "err", "none.npz"),
    ],
)
def test_statuses_and_streams_in_an_empty_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    status: int,
    stream: str,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        ended = main(list(arguments))
    except SystemExit as end:  # by argparse
        ended = end.code
    assert ended == status
    printed = capsys.readouterr()
    assert told in getattr(printed, stream)
    assert getattr(printed, "err" if stream == "out" else "out") == ""


@pytest.mark.parametrize("command", ["adaptation run", "adaptation predict", "adaptation calibrate", "batch speed"])
def test_commands_that_compute_on_a_device_offer_the_choice_of_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    offered = capsys.readouterr().out.rpartition("--device")[2].partition("\n  -")[0]
    assert "auto" in offered and "cuda" in offered


def test_results_and_logs_go_to_different_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = write_conf(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = ("adaptation", "run", "--scenario", "tiny", "--sequence", "33", "--conf", str(conf))
    done = schedlab_command(*run, cwd=elsewhere)
    assert done.returncode == 0
    assert done.stdout.startswith("scenario tiny ")
    assert "tiny: epoch 1, 60 of 70 s left" in done.stderr
    monkeypatch.chdir(tmp_path)
    assert main(list(run)) == 0
    assert capsys.readouterr().out == done.stdout
    assert list(elsewhere.iterdir()) == []


def test_work_that_fails_ends_with_status_1_and_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "schedlab.cli.main", "check", "--conf", str(write_conf(tmp_path))]
    with Path("/dev/full").open("w") as full:  # a disk without room
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "error: [Errno" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "schedlab.cli.main", "adaptation", "vocab"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_several_mistakes_are_a_paragraph_each(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    conf = write_conf(tmp_path)
    file = conf / "scenario/adaptation/tiny.yaml"
    file.write_text(file.read_text().replace("decisions:", "decisons:").replace("adapt_at: 30", "adapt_at: soon"))
    assert main(["adaptation", "run", "--scenario", "tiny", "--policy", "never", "--conf", str(conf)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("error: conf/scenario/adaptation/tiny.yaml: ") for line in lines)


def test_the_help_of_a_study_imports_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom schedlab.cli.main import main\n"
        "try:\n    main(['adaptation', '--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
