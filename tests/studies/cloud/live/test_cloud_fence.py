"""What the kernel enforces for a live run, where this machine allows it."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from schedlab.studies.cloud.live import child, fence
from schedlab.studies.cloud.live.fence import Fence
from schedlab.studies.cloud.live.process import Ended, Limits, available_cpus, run_limited

MB = 1 << 20
namespaces = pytest.mark.skipif(not fence.available().namespaces, reason="unshare starts no namespaces here")


def run(folder: Path, text: str, memory: int | None = None, seconds: float = 60, disk: int | None = None) -> Ended:
    """Run a script in namespaces."""
    script, spec = folder / "script.py", folder / "spec.json"
    script.write_text(textwrap.dedent(text))
    words = {"private": fence.private_places(memory, [folder]), "user_words": fence.user_words()}
    limits = Limits(available_cpus(), memory, seconds, disk)
    values = {"script": str(script), "cpus": limits.cpus, "memory_bytes": memory, "file_bytes": disk, "values": {}}
    spec.write_text(json.dumps(values | words))
    command = [sys.executable, child.__file__, str(spec)]
    return run_limited(command, folder, {"PATH": os.environ["PATH"]}, limits, fence=Fence(namespaces=True))


@namespaces
def test_a_script_sees_its_own_processes_alone_and_not_the_environment_of_others(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "seen")
    text = """
        import os
        numbers = [name for name in os.listdir("/proc") if name.isdigit()]
        found = ""
        for number in numbers:
            try:
                found += open(f"/proc/{number}/environ").read()
            except OSError:
                pass
        print(len(numbers), "MY_SECRET" in found, os.getuid())
    """
    ended = run(tmp_path, text)
    assert (ended.how, ended.output.split()) == ("done", ["2", "False", str(os.getuid())])


@namespaces
def test_files_in_memory_are_bounded_count_as_memory_and_end_with_the_run(tmp_path):
    name = f"schedlab-{os.getpid()}"
    text = f"""
        import time
        with open("/dev/shm/{name}", "wb", buffering=0) as file:
            for _ in range(150):
                file.write(bytes(1 << 20))
        kept = b"x" * (%d << 20)
        time.sleep(%d)
    """
    ended = run(tmp_path, text % (100, 60), memory=200 * MB)
    assert ended.how == "memory" and not Path("/dev/shm", name).exists()
    ended = run(tmp_path, text % (20, 1), memory=200 * MB)
    assert ended.how == "done" and 150 * MB < max(sample.memory_bytes for sample in ended.samples) < 200 * MB
    ended = run(tmp_path, text % (0, 0), memory=100 * MB)
    assert ended.how == "memory" or "No space left" in ended.output  # whichever is seen first


@namespaces
def test_a_script_that_attacks_the_waiting_process_is_ended_with_all_that_it_started(tmp_path):
    name = f"left by {tmp_path}"
    text = f"""
        import os, signal, subprocess, sys, time
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)", {name!r}]
        subprocess.Popen(sleeper, env={{}}, start_new_session=True)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(1, number)
            except OSError:
                pass
        time.sleep(%d)
    """
    assert run(tmp_path, text % 600, seconds=4).how == "time"
    assert run(tmp_path, text % 0).how == "done"
    assert not [each for each in psutil.process_iter(["cmdline"]) if name in (each.info["cmdline"] or ())]


@pytest.mark.parametrize("files", [1, 20])
def test_the_files_of_a_run_are_limited_together_and_each(tmp_path, files):
    (tmp_path / "script.py").write_text(
        "import sys, time\n"
        "for number in range(int(sys.argv[1])):\n"
        "    open(str(number), 'wb').write(bytes((40 << 20) // int(sys.argv[1])))\n"
        "time.sleep(60)\n"
    )
    spec = tmp_path / "spec.json"
    command = [sys.executable, str(tmp_path / "script.py"), str(files)]
    values = {"cpus": available_cpus(), "memory_bytes": None, "file_bytes": 20 * MB, "command": command}
    spec.write_text(json.dumps(values))
    limits = Limits(available_cpus(), None, 60, 20 * MB)
    ended = run_limited([sys.executable, child.__file__, str(spec)], tmp_path, {"PATH": os.environ["PATH"]}, limits)
    assert ended.how == "disk"


def test_a_control_group_gets_the_limit_and_its_kills_are_for_lack_of_memory(tmp_path, monkeypatch):
    """With a stand-in for systemd-run that notes its options and ends the script as the kernel would."""
    stand_in = tmp_path / "systemd-run"
    stand_in.write_text('#!/bin/sh\necho "$@" > ' + f"{tmp_path}/options\nexit 137\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    limits = Limits(available_cpus(), 200 * MB, 60)
    ended = run_limited(["true"], tmp_path, {"PATH": os.environ["PATH"]}, limits, fence=Fence(control_group=True))
    assert ended.how == "memory"
    options = (tmp_path / "options").read_text().split()
    assert f"MemoryMax={200 * MB + fence.OVERHEAD}" in options and options[-2:] == ["--", "true"]


def test_tmp_stays_the_machines_if_the_run_needs_it():
    assert fence.private_places(5, ["/home/me", "python"]) == {"/dev/shm": 5, "/tmp": 5}
    assert fence.private_places(5, ["/home/me", "/tmp/data/train.py"]) == {"/dev/shm": 5}
