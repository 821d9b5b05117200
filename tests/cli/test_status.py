"""`schedlab status`: a run that goes on, one that has ended, one that was stopped."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from schedlab.cli.main import main

STATE = {"total": 4, "done": 2, "seconds_left": 90.0, "failed": []}
HOLD = """
import sys, time
from filelock import FileLock
lock = FileLock(sys.argv[1])
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    """A working directory with the state of a run."""
    (tmp_path / ".schedlab").mkdir()
    (tmp_path / ".schedlab/run.lock").touch()

    def write(**changed):
        values = {"written": time.time() - 30, **STATE, "running": [{"job": "learn a", "seconds": 5.0}], **changed}
        (tmp_path / ".schedlab/status.json").write_text(json.dumps(values))
        return tmp_path

    return write


def status(folder, capsys) -> tuple[int, dict]:
    code = main(["status", "--directory", str(folder), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_run_that_goes_on_is_known_by_its_lock(folder, capsys):
    where = folder()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(where / ".schedlab/run.lock")], stdout=subprocess.PIPE
    ) as run:
        run.stdout.readline()
        code, found = status(where, capsys)
        run.kill()
    assert code == 0 and found["state"] == "running" and found["done"] == 2
    assert found["running"][0]["seconds"] == pytest.approx(35, abs=5) and found["seconds_left"] == pytest.approx(
        60, abs=5
    )


@pytest.mark.parametrize(
    ("changed", "state", "code"),
    [
        ({}, "stopped", 1),
        ({"done": 4}, "finished", 0),
        ({"failed": [{"job": "learn a", "logs": ["results/a.log"]}]}, "stopped", 1),
    ],
)
def test_a_run_that_has_ended(folder, capsys, changed, state, code):
    found_code, found = status(folder(**changed), capsys)
    assert (found_code, found["state"], found["running"]) == (code, state, [])
    assert main(["status", "--directory", str(folder(**changed))]) == code
    shown = capsys.readouterr().out
    assert "of 4" in shown and ("results/a.log" in shown) == bool(changed.get("failed"))


def test_a_folder_without_a_run_is_named(tmp_path, capsys):
    assert main(["status", "--directory", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    "changed",
    [
        {"written": None},
        {"written": "now"},
        {"total": [4]},
        {"done": True},
        {"done": 10**400},
        {"seconds_left": "long"},
        {"running": {}},
        {"running": [{"job": "learn a"}]},
        {"running": ["learn a"]},
        {"failed": None},
        {"failed": [{"job": "learn a"}]},
        {"failed": [{"logs": []}]},
    ],
)
def test_a_state_of_another_form_is_an_error_without_traceback(folder, capsys, monkeypatch, changed, held):
    monkeypatch.setattr("schedlab.cli.run.is_held_elsewhere", lambda file: held)
    where = folder(**changed)
    assert main(["status", "--directory", str(where)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {where / '.schedlab/status.json'}: ")


@pytest.mark.parametrize("text", ["{}", "[]", "null", "3", '"running"', "{", ""])
def test_a_state_that_is_no_state_is_an_error_without_traceback(folder, capsys, text):
    file = folder() / ".schedlab/status.json"
    file.write_text(text)
    assert main(["status", "--directory", str(file.parent.parent)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {file}: ")
