"""The limits of a live run hold, nothing outlives it, and its settings reach the script."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from schedlab.studies.cloud.live import child as live_child
from schedlab.studies.cloud.live.child import entry_function, with_settings
from schedlab.studies.cloud.live.process import TAIL, Ended, Limits, available_cpus, run_limited

MB = 1 << 20


def run(
    tmp_path: Path, text: str, limits: Limits | None = None, values: dict | None = None, progress=lambda: 0
) -> Ended:
    script, spec = tmp_path / "script.py", tmp_path / "spec.json"
    script.write_text(textwrap.dedent(text))
    limits = limits or Limits(available_cpus(), None, 60)
    spec.write_text(
        json.dumps(
            {"script": str(script), "cpus": limits.cpus, "memory_bytes": limits.memory_bytes, "values": values or {}}
        )
    )
    environment = {"PATH": os.environ["PATH"], "ONLY": "this"}
    return run_limited([sys.executable, live_child.__file__, str(spec)], tmp_path, environment, limits, progress)


def gone(pid: int) -> bool:
    """Whether a process ended, waiting for it a while."""
    for _ in range(100):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def test_a_script_runs_as_main_with_an_environment_and_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "told")
    ended = run(
        tmp_path, "import os; print(__name__, os.getcwd(), os.environ.get('MY_SECRET'), os.environ['ONLY'], __file__)"
    )
    assert ended.how == "done" and ended.status == 0
    assert ended.output.split() == ["__main__", str(tmp_path), "None", "this", str(tmp_path / "script.py")]
    assert "ONLY" not in os.environ and "SCHEDLAB_RUN" not in os.environ


def test_the_affinity_holds_for_the_script_and_its_children(tmp_path):
    one = available_cpus()[-1]
    before = available_cpus()
    text = "import os, subprocess, sys; print(sorted(os.sched_getaffinity(0)), flush=True)\n"
    text += "subprocess.run([sys.executable, '-c', 'import os; print(sorted(os.sched_getaffinity(0)))'])"
    ended = run(tmp_path, text, Limits((one,), None, 60))
    assert ended.output.split() == [f"[{one}]", f"[{one}]"]
    assert available_cpus() == before


def test_private_memory_is_limited_for_each_process(tmp_path):
    text = "kept = bytearray(400 << 20)\nprint('never reached')"
    ended = run(tmp_path, text, Limits(available_cpus(), 200 * MB, 60))
    assert ended.how == "memory" and ended.status == live_child.MEMORY and "never" not in ended.output
    assert run(tmp_path, "kept = bytearray(100 << 20)", Limits(available_cpus(), 200 * MB, 60)).how == "done"


def test_memory_that_processes_hold_together_is_watched(tmp_path):
    text = """
        import mmap, time
        kept = mmap.mmap(-1, 400 << 20)      # shared, hence not counted by RLIMIT_DATA
        for place in range(0, len(kept), 4096):
            kept[place] = 1
        time.sleep(60)
    """
    ended = run(tmp_path, text, Limits(available_cpus(), 200 * MB, 60))
    assert ended.how == "memory" and max(sample.memory_bytes for sample in ended.samples) > 200 * MB


def test_memory_that_processes_share_counts_once_and_what_they_ask_for_is_told(tmp_path):
    text = """
        import mmap, os, time
        kept = b"x" * (80 << 20)
        asked = mmap.mmap(-1, 100 << 20, flags=mmap.MAP_PRIVATE)  # never touched
        for _ in range(4):
            if os.fork() == 0:
                time.sleep(1.5)
                os._exit(0)
        for _ in range(4):
            os.wait()
    """
    ended = run(tmp_path, text, Limits(available_cpus(), 300 * MB, 60))
    assert ended.how == "done"
    assert 80 * MB < max(sample.memory_bytes for sample in ended.samples) < 200 * MB
    assert 180 * MB < max(sample.private_bytes for sample in ended.samples) < 300 * MB


def test_memory_of_orphans_is_watched(tmp_path):
    text = """
        import mmap, os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                kept = mmap.mmap(-1, 400 << 20)
                for place in range(0, len(kept), 4096):
                    kept[place] = 1
                time.sleep(60)
            os._exit(0)
        os.wait()
        time.sleep(60)
    """
    assert run(tmp_path, text, Limits(available_cpus(), 200 * MB, 60)).how == "memory"


@pytest.mark.parametrize(
    "text", ["terminate called after throwing 'std::bad_alloc'", "DefaultCPUAllocator: can't allocate memory"]
)
def test_memory_that_a_library_misses_is_told_by_its_words(tmp_path, text):
    assert run(tmp_path, f'import sys; sys.exit("""{text}""")').how == "memory"


def test_a_script_that_hangs_is_ended_with_all_that_it_forked(tmp_path):
    text = """
        import os, subprocess, sys, time
        here = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        away = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        forked = os.fork()
        if forked == 0:
            os.setsid()
            time.sleep(600)
        open("pids", "w").write(f"{here.pid} {away.pid} {forked}")
        time.sleep(600)
    """
    ended = run(tmp_path, text, Limits(available_cpus(), None, 6))
    assert ended.how == "time"
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3 and all(gone(pid) for pid in pids)


LEFT = """
import subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, {more})
open("{pid}", "w").write(str(left.pid))
"""


@pytest.mark.parametrize("more", ["", "env={}"])
def test_what_a_script_leaves_running_is_ended_too(tmp_path, more):
    assert run(tmp_path, LEFT.format(more=more, pid="pid")).how == "done"
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_signal_that_ends_a_script_is_told_by_its_status(tmp_path):
    ended = run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (ended.how, ended.status) == ("error", 128 + signal.SIGSEGV)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_command_that_is_ended_leaves_nothing_running(tmp_path, number, status):
    name = f"name of {tmp_path}"  # of the process left, by which it is found: in namespaces its number is another
    left = LEFT.format(more="env={}", pid=tmp_path / "pid").replace('sleep(600)"]', f'sleep(600)", {name!r}]')
    (tmp_path / "train.py").write_text(left + "time.sleep(600)\n")
    command = [
        "cloud",
        "sweep",
        "--training_file",
        str(tmp_path / "train.py"),
        "--output",
        str(tmp_path / "out.csv"),
        "--cores",
        "1",
    ]
    started = subprocess.Popen(
        [sys.executable, "-c", f"import sys; from schedlab.cli.main import main; sys.exit(main({command!r}))"]
    )
    for _ in range(1200):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            break
        time.sleep(0.1)
    child = next(each for each in psutil.process_iter(["cmdline"]) if name in (each.info["cmdline"] or ()))
    script = child.ppid()
    started.send_signal(number)
    assert started.wait(timeout=60) == status
    assert gone(child.pid) and gone(script)


def test_errors_and_garbage_are_kept_in_the_end_of_the_output(tmp_path):
    text = """
        import os
        for _ in range(200):
            os.write(1, bytes(range(256)) * 64)
        raise ValueError("wrong data")
    """
    ended = run(tmp_path, text)
    assert ended.how == "error" and ended.status == 1
    assert ended.output.endswith("ValueError: wrong data\n") and len(ended.output) <= TAIL
    assert run(tmp_path, "this is no Python").how == "error"


def test_samples_tell_cpu_time_memory_and_progress(tmp_path):
    text = """
        import time
        kept, until = bytearray(100 << 20), time.process_time() + 0.6
        while time.process_time() < until:
            pass
    """
    counter = iter(range(10**6))
    ended = run(tmp_path, text, progress=lambda: next(counter))
    assert len(ended.samples) >= 3 and [sample.progress for sample in ended.samples] == list(range(len(ended.samples)))
    assert max(sample.memory_bytes for sample in ended.samples) > 90 * MB
    assert ended.samples[-1].cpu_seconds > ended.samples[0].cpu_seconds >= 0
    assert ended.seconds >= ended.samples[-1].seconds


SCRIPT = """
batch_size = 64
epochs: int = 10
config = {"batch_size": 32, "lr": 0.1}
config["epochs"] = 5
if True:
    dataset_path = "./data"

class Keep:
    batch_size = 1

def train(batch_size=7):
    return batch_size
print(batch_size, epochs, config, dataset_path, Keep.batch_size, train())
"""


def test_module_level_settings_are_set_and_nothing_else(tmp_path):
    values = {"batch_size": 128, "epochs": 2, "dataset_path": "/elsewhere", "absent": 1}
    ended = run(tmp_path, SCRIPT, values=values)
    assert ended.output.strip() == "128 2 {'batch_size': 128, 'lr': 0.1, 'epochs': 2} /elsewhere 1 7"
    assert (tmp_path / "script.py").read_text() == SCRIPT
    assert not list(tmp_path.rglob("*.pyc"))
    assert ast.unparse(with_settings(ast.parse(SCRIPT), {})) == ast.unparse(ast.parse(SCRIPT))


def test_settings_in_blocks_are_set_and_several_names_of_one_statement_are_left(tmp_path):
    text = """
        first = batch_size = 64
        match 1:
            case 1:
                epochs = 10
        try:
            config = {}
            config["lr"] = 1
        except ValueError:
            lr = 0
        print(first, batch_size, epochs, config)
    """
    assert run(tmp_path, text, values={"batch_size": 128, "epochs": 2, "lr": 3}).output.strip() == "64 64 2 {'lr': 3}"


def test_what_is_worked_out_from_turn_to_turn_is_no_setting(tmp_path):
    """With another value in its place, a loop that waits for it would never end."""
    text = """
        batch_size = 64
        config = {"batch_size": 64}
        turns = 0
        while batch_size < 100 and turns < 9:
            batch_size = batch_size * 2
            turns += 1
        while config["batch_size"] < 100 and turns < 9:
            larger = 2 * config["batch_size"]
            config["batch_size"] = larger
            turns += 1
        print(batch_size, config["batch_size"], turns)
        for size in (7, 9):
            epochs = size
            lr = 5
        batch_size = batch_size // 2
        config["batch_size"] = config["batch_size"] + 1
        print(batch_size, config["batch_size"], epochs, lr)
    """
    values = {"batch_size": 32, "epochs": 2, "lr": 3}
    assert run(tmp_path, text, values=values).output.split() == ["128", "128", "4", "64", "129", "9", "3"]
    given = {"batch_size": 200, "epochs": 2, "lr": 3}
    assert run(tmp_path, text, values=given).output.split() == ["200", "200", "0", "100", "201", "9", "3"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def train_net(): pass\ndef main(): pass", "main"),
        ("def train_net(): pass\ndef train_other(): pass", "train_net"),
        ("def helper(): pass\ndef train_model(lr=1): pass", "train_model"),
        ("def train(data): pass\ndef main(*, x): pass", None),
        ("def train(): pass\ntrain()", None),
        ("def train(): pass\nresult = [train() for _ in range(3)]", None),
        ("def train(): pass\nif __name__ == '__main__':\n    train()", None),
        ("x = 1", None),
    ],
)
def test_the_function_that_trains_is_found(text, name):
    assert entry_function(ast.parse(text)) == name


def test_the_function_that_trains_is_called(tmp_path):
    assert run(tmp_path, "def train_it():\n    print('trained')").output.strip() == "trained"
