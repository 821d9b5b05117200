"""A run of a user's script: what it is told, what its log becomes, and what is said where it fails."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from live_scripts import fake_nvidia_smi, logging_script, plain_script, script

from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.machine import gpu_numbers, machine_resources
from schedlab.studies.cloud.live.process import ScriptFailed
from schedlab.studies.cloud.live.run import LiveRequest, Watch, find_log, run_script, script_environment
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.fit_cores import fit_table
from schedlab.studies.cloud.model.logs import COLUMNS as ALL
from schedlab.studies.cloud.model.logs import read_training_log

ONE = Allocation(0, 1, 1)
PRICES = ResourceConfig(cost_per_gpu_hour=2.5, cost_per_cpu_hour=0.1, cost_per_gb_hour=0.02)


def request(path: Path, **changed) -> LiveRequest:
    return LiveRequest(**{"script": path, "allocation": ONE, "epochs": 2, "prices": PRICES, "seconds": 60.0, **changed})


def test_the_log_is_completed_and_priced_by_the_allocation(tmp_path):
    run = run_script(request(plain_script(tmp_path), batch=32, total_epochs=8, first_epoch=3), tmp_path / "run")
    table = run.table
    assert run.how == "done" and run.checkpoint == tmp_path / "run" / "checkpoint"
    assert table["epoch"].tolist() == [4, 5] and set(table["total_epochs"]) == {8} and set(table["batch_size"]) == {32}
    needed = {
        "epoch",
        "total_epochs",
        "cpu_percent",
        "memory_used_gb",
        "memory_gb",
        "cpu_count",
        "gpu_count",
        "time_so_far",
    }
    assert needed <= set(table.columns) and needed <= set(ALL)
    assert table["time_so_far"].tolist() == pytest.approx(table["epoch_time"].cumsum().tolist())
    assert table["cost_so_far"].tolist() == pytest.approx((table["time_so_far"] / 3600 * (0.1 + 0.02)).tolist())
    assert table["cpu_percent"].between(0, 100).all() and (table["memory_used_gb"] > 0).all()
    assert run.overhead == pytest.approx(run.seconds - table["epoch_time"].sum())
    assert len(read_training_log(run.folder / "epochs.csv")) == 2
    assert run.summary["throughput"] == table["throughput"].iloc[-1]


def test_an_interval_goes_on_from_a_checkpoint(tmp_path):
    path = plain_script(tmp_path)
    first = run_script(request(path), tmp_path / "first")
    second = run_script(request(path, checkpoint=first.checkpoint, first_epoch=2), tmp_path / "second")
    assert second.table["epoch"].tolist() == [3, 4]
    assert second.table["train_loss"].tolist() == pytest.approx([1 / 3, 1 / 4])
    assert second.checkpoint.read_text() == "4"


def test_a_log_of_another_name_is_found_in_the_private_folder(tmp_path):
    run = run_script(request(plain_script(tmp_path, log='"log-plain.csv"')), tmp_path / "run")
    assert len(run.table) == 2 and find_log(run.folder).name == "log-plain.csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain.py", "run"]


def test_time_and_throughput_are_worked_out_where_the_log_lacks_them(tmp_path):
    text = """
        import os
        with open(os.environ["SCHEDLAB_LOG"], "w") as file:
            file.write("time_so_far,data_count\\n0.01,100\\n0.03,100\\n")
    """
    run = run_script(request(script(tmp_path, text), batch=16), tmp_path / "run")
    assert run.table["epoch_time"].tolist() == pytest.approx([0.01, 0.02])
    assert run.table["throughput"].tolist() == pytest.approx([10000, 5000])


@pytest.mark.parametrize(("rows", "asked", "told"), [(1, 2, "logged 1 epoch of 2"), (2, 5, "logged 2 epochs of 5")])
def test_a_script_that_logs_fewer_epochs_than_asked_fails(tmp_path, rows, asked, told):
    """A training that is not there cannot be joined to what follows: neither a baseline nor an interval of a run."""
    log = "epoch,batch_size,epoch_time,throughput\n" + "".join(f"{row + 1},8,0.001,100\n" for row in range(rows))
    with pytest.raises(ScriptFailed, match=told) as caught:
        run_script(request(script(tmp_path, logging_script(log)), epochs=asked), tmp_path / "run")
    assert "OPTIMIZER_EPOCHS" in str(caught.value)


def test_a_script_that_logs_more_epochs_than_asked_is_told(tmp_path, caplog):
    log = "epoch,batch_size,epoch_time,throughput\n" + "".join(f"{row + 1},8,0.001,100\n" for row in range(3))
    assert len(run_script(request(script(tmp_path, logging_script(log)), epochs=2), tmp_path / "run").table) == 3
    assert "logged 3 epochs of 2" in caplog.text


def test_a_missing_column_is_not_told_as_a_wrong_name_of_another_one(tmp_path):
    """A log with `epoch` lacks its epoch_time; it did not misspell it."""
    path = script(tmp_path, logging_script("epoch,batch_size,throughput\n1,8,100\n2,8,100\n"))
    with pytest.raises(ScriptFailed, match="'epoch_time'") as caught:
        run_script(request(path), tmp_path / "run")
    assert "did you mean" not in str(caught.value) and "time_so_far" in str(caught.value)
    misspelt = script(tmp_path, logging_script("epoch,batch_size,epoch_tme,throughput\n1,8,1,100\n2,8,1,100\n"))
    with pytest.raises(ScriptFailed, match="'epoch_tme'"):
        run_script(request(misspelt), tmp_path / "misspelt")


def test_the_environment_is_private_and_tells_what_was_allocated(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "told")
    told = script_environment(
        request(tmp_path / "x.py", batch=8, seed=5, allocation=Allocation(0, 3, 8), dataset_path=tmp_path), tmp_path
    )
    assert told["CUDA_VISIBLE_DEVICES"] == "" and "MY_TOKEN" not in told
    for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR"):
        assert told[f"{name}_NUM_THREADS"] == "3"
    assert (told["OPTIMIZER_BATCH_SIZE"], told["OPTIMIZER_EPOCHS"], told["OPTIMIZER_RANDOM_SEED"]) == ("8", "2", "5")
    assert (told["OPTIMIZER_NUM_WORKERS"], told["OPTIMIZER_PIN_MEMORY"], told["OPTIMIZER_MEMORY_USED_GB"]) == (
        "3",
        "true",
        "8",
    )
    assert (told["COST_PER_GPU_HOUR"], told["COST_PER_CPU_HOUR"], told["COST_PER_GB_HOUR"]) == ("2.5", "0.1", "0.02")
    assert told["SCHEDLAB_LOG"] == str(tmp_path / "log.csv") and told["OPTIMIZER_DATASET_PATH"] == str(tmp_path)
    assert told["HOME"] == told["TMPDIR"] == str(tmp_path)
    assert told["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert script_environment(request(tmp_path / "x.py"), tmp_path)["OMP_WAIT_POLICY"] == "ACTIVE"
    busy = script_environment(request(tmp_path / "x.py", allocation=Allocation(0, 16, 8), gpu_util=5.0), tmp_path)
    assert busy["OPTIMIZER_NUM_WORKERS"] == "8"


def test_gpus_are_seen_by_their_command_and_given_by_number(tmp_path, monkeypatch):
    fake_nvidia_smi(tmp_path, monkeypatch)
    run = run_script(request(plain_script(tmp_path), allocation=Allocation(2, 1, 1)), tmp_path / "run")
    assert run.table["gpu_utilization_0"].tolist() == [40, 40] and run.table["gpu_utilization_1"].tolist() == [60, 60]
    assert run.table["gpu_memory_used_gb"].tolist() == [3.0, 3.0], "of both, and not of the one that it does not have"
    assert read_training_log(run.folder / "epochs.csv")["gpu_memory_used_gb"].tolist() == [3.0, 3.0]
    assert (
        script_environment(request(tmp_path / "x.py", allocation=Allocation(2, 1, 1)), tmp_path)["CUDA_VISIBLE_DEVICES"]
        == "0,1"
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    told = script_environment(request(tmp_path / "x.py", allocation=Allocation(1, 1, 1)), tmp_path)
    assert (
        told["CUDA_VISIBLE_DEVICES"] == "1" and told["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    )  # as the numbers of the command


def test_memory_of_gpus_that_a_script_reports_stays_what_it_says(tmp_path, monkeypatch):
    fake_nvidia_smi(tmp_path, monkeypatch)
    rows = "batch_size,epoch_time,throughput,{}\n8,0.01,100,7.5\n8,0.01,100,7.5\n"
    told = {}
    for name in ("gpu_memory_used_gb", "gpu_utilization_0"):
        path = script(tmp_path, logging_script(rows.format(name)), f"{name}.py")
        told[name] = run_script(request(path, allocation=Allocation(1, 1, 1)), tmp_path / name).table
    assert (
        told["gpu_memory_used_gb"][["gpu_memory_used_gb", "gpu_utilization_0"]].to_numpy().tolist() == [[7.5, 40.0]] * 2
    )
    assert (
        told["gpu_utilization_0"][["gpu_memory_used_gb", "gpu_utilization_0"]].to_numpy().tolist() == [[1.0, 7.5]] * 2
    )
    assert "gpu_memory_used_gb" not in run_script(request(path), tmp_path / "cpu").table


def test_idle_gpus_that_were_measured_are_no_mistake_in_a_unit(tmp_path, monkeypatch, caplog):
    fake_nvidia_smi(tmp_path, monkeypatch, used=(0.4, 0.6))
    run = run_script(request(plain_script(tmp_path), allocation=Allocation(2, 1, 1)), tmp_path / "run")
    assert run.table["gpu_utilization_1"].tolist() == [0.6, 0.6] and not caplog.records
    assert fit_table(run.table, tmp_path / "log.csv").settings == 1


def test_a_script_states_that_it_reports_shares_of_one(tmp_path, monkeypatch):
    fake_nvidia_smi(tmp_path, monkeypatch)
    rows = "batch_size,epoch_time,throughput,gpu_utilization_0 [share]\n8,0.01,100,0.75\n8,0.01,100,0.5\n"
    run = run_script(request(script(tmp_path, logging_script(rows)), allocation=Allocation(1, 1, 1)), tmp_path / "run")
    assert run.table["gpu_utilization_0"].tolist() == [75.0, 50.0]


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [
        ("", ()),
        ("-1", ()),
        ("1,-1,0", ("1",)),
        ("2, 0", ("2", "0")),
        ("0,0", ()),
        ("1,7,0", ("1",)),
        ("GPU-b3", ("2",)),
        ("GPU-aa2,GPU-aa1", ("1", "0")),
        ("GPU-aa", ()),
        ("GPU-none,0", ()),
        ("1,GPU-aa2", ()),
        ("MIG-c4", ("MIG-c4",)),
        ("NoDevFiles", ()),
    ],
)
def test_gpus_that_are_hidden_from_us_stay_hidden(tmp_path, monkeypatch, visible, numbers):
    fake_nvidia_smi(tmp_path, monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_numbers() == numbers
    assert machine_resources().gpu_count_max == len(numbers)


def test_without_a_gpu_no_use_of_one_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    run = run_script(request(plain_script(tmp_path)), tmp_path / "run")
    assert not [name for name in run.table.columns if name.startswith("gpu_utilization")]
    assert set(run.table["gpu_count"]) == {0}


def test_rows_of_a_growing_log_are_counted_by_what_is_new(tmp_path):
    watch, log = Watch(tmp_path, 0), tmp_path / "log-a.csv"
    assert watch() == 0
    log.write_text("epoch\n1\n")
    assert (watch(), watch()) == (1, 1)
    with log.open("a") as file:
        file.write("2\n3")
    assert watch() == 2
    log.write_text("epoch\n1\n")  # begun anew
    assert watch() == 1
    (tmp_path / "log.csv").write_text("epoch\n1\n2\n3\n")  # another log, which goes before
    assert watch() == 3


def test_a_limit_ends_the_run_and_leaves_what_was_logged(tmp_path):
    slow = plain_script(tmp_path, seconds="0.05 if epoch < 1 else time.sleep(600)")
    run = run_script(request(slow, seconds=6.0), tmp_path / "slow")
    assert run.how == "time" and run.table["epoch"].tolist() == [1] and run.checkpoint is None
    hungry = script(tmp_path, "kept = bytearray(2 << 30)")
    run = run_script(request(hungry), tmp_path / "hungry")
    assert run.how == "memory" and not len(run.table)


WRONG = {
    "raises": ("raise ValueError('no such data')", "ValueError: no such data"),
    "exits": ("import sys; sys.exit(3)", "status 3"),
    "no Python": ("train the network", "SyntaxError"),
    "silent": ("x = 1", "SCHEDLAB_LOG"),
    "empty": ("import os; open(os.environ['SCHEDLAB_LOG'], 'w').close()", "log.csv"),
    "garbage": ("import os; open(os.environ['SCHEDLAB_LOG'], 'wb').write(bytes(range(256)))", "log.csv"),
    "a log without end": (
        "import os\nwith open(os.environ['SCHEDLAB_LOG'], 'w') as log:\n"
        "    while True:\n        log.write('x' * 99 + chr(10))",
        "32 MB",
    ),
    "a log that is large at once": ("import os; open(os.environ['SCHEDLAB_LOG'], 'wb').truncate(33 << 20)", "33 MB"),
    "a pipe": ("import os, time; os.mkfifo('log-pipe.csv'); time.sleep(0.5)", "SCHEDLAB_LOG"),
    "header": ("import os; open(os.environ['SCHEDLAB_LOG'], 'w').write('epoch,epoch_time\\n')", "log.csv"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_script_that_fails_is_told_in_a_sentence(tmp_path, name):
    text, told = WRONG[name]
    with pytest.raises(ScriptFailed) as caught:
        run_script(request(script(tmp_path, text)), tmp_path / "run")
    assert told in str(caught.value) and "Traceback" not in str(caught.value)


def test_what_a_script_prints_does_not_steer_the_terminal(tmp_path):
    text = "import sys\n"
    text += r"sys.stdout.buffer.write(b'fine\n\x1b]0;title\x07\x1b[31mred \x00\xff\xe2\x80\xae end'); sys.exit(3)"
    with pytest.raises(ScriptFailed) as caught:
        run_script(request(script(tmp_path, text)), tmp_path / "run")
    assert "?]0;title??[31mred" in str(caught.value) and str(caught.value).isprintable()
    assert "\x1b[31mred" in (tmp_path / "run/output.txt").read_text(), "as it was"


ROWS = {
    "missing column": ("batch_size,throughput\n8,100\n", "'epoch_time'"),
    "no samples": ("batch_size,epoch_time\n8,0.01\n", "'data_count'"),
    "NaN": ("batch_size,epoch_time,throughput\n8,0.01,100\n8,nan,100\n", "row 3, column epoch_time"),
    "epoch twice": ("epoch,batch_size,epoch_time,throughput\n1,8,.01,9\n2,8,.01,9\n1,8,.01,9\n", "epoch 1"),
    "milliseconds": ("batch_size,epoch_time,throughput\n8,40000,100\n", "epoch_time"),
    "unknown unit": ("batch_size,epoch_time [days],throughput\n8,0.01,60000\n", "epoch_time"),
    "fraction": ("batch_size,epoch_time,throughput,gpu_utilization_0\n8,0.01,100,400\n", "gpu_utilization_0"),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_wrong_log_is_told_with_its_row_or_column(tmp_path, name):
    rows, told = ROWS[name]
    with pytest.raises(ScriptFailed) as caught:
        run_script(request(script(tmp_path, logging_script(rows))), tmp_path / "run")
    assert told in str(caught.value)


def test_what_cannot_be_run_is_refused_before_it_runs(tmp_path):
    path = plain_script(tmp_path)
    with pytest.raises(UserError, match=r"none\.py"):
        run_script(request(tmp_path / "none.py"), tmp_path / "run")
    for seconds in (0.0, float("nan")):
        with pytest.raises(UserError, match="seconds"):
            run_script(request(path, seconds=seconds), tmp_path / "run")
    with pytest.raises(UserError, match="none"):
        run_script(request(path, checkpoint=tmp_path / "none"), tmp_path / "run")
    with pytest.raises(UserError):
        run_script(request(path, allocation=Allocation(0, 10_000, 1)), tmp_path / "run")
    for batch in (0, -8):
        with pytest.raises(UserError):
            run_script(request(path, batch=batch), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    (tmp_path / "used").mkdir()
    with pytest.raises(FileExistsError):
        run_script(request(path), tmp_path / "used")


NO_ALLOCATIONS = {
    "no core": ((0, 0, 1), "core"),
    "one core and a half": ((0, 1.5, 1), "1.5 cores"),
    "no number of cores": ((0, float("nan"), 1), "nan cores"),
    "cores without end": ((0, float("inf"), 1), "inf cores"),
    "half a GPU": ((0.5, 1, 1), "0.5 GPUs"),
    "memory without end": ((0, 1, float("inf")), "inf GB"),
    "more memory than bytes can be counted": ((0, 1, 1e300), "1e\\+300 GB"),
    "cores from the end": ((0, -1, 1), "core"),
    "no memory": ((0, 1, 0), "memory"),
    "not a number": ((0, 1, float("nan")), "memory"),
    "fewer GPUs than none": ((-1, 1, 1), "GPUs"),
    "GPUs that are not there": ((2, 1, 1), "GPUs"),
}


@pytest.mark.parametrize("name", NO_ALLOCATIONS)
def test_an_allocation_that_would_limit_nothing_or_is_not_there_is_refused(tmp_path, monkeypatch, name):
    """No cores and no memory would be no limit, and GPUs that are not there would be paid for."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    allocation, told = NO_ALLOCATIONS[name]
    with pytest.raises(UserError, match=told):
        run_script(request(plain_script(tmp_path), allocation=Allocation(*allocation)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_whole_numbers_with_a_point_and_more_memory_than_a_machine_has_are_allocations(tmp_path):
    run = run_script(request(plain_script(tmp_path), allocation=Allocation(0.0, 1.0, 1e9)), tmp_path / "run")
    assert run.how == "done" and run.table["cpu_count"].tolist() == [1, 1]


def test_the_script_leaves_our_process_as_it_was(tmp_path):
    before = dict(os.environ), Path.cwd(), os.sched_getaffinity(0)
    text = "import os; os.environ['LEFT'] = 'behind'; os.chdir('/'); raise SystemExit(1)"
    with pytest.raises(ScriptFailed):
        run_script(request(script(tmp_path, text)), tmp_path / "run")
    assert (dict(os.environ), Path.cwd(), os.sched_getaffinity(0)) == before


def test_a_column_of_a_log_may_have_blanks(tmp_path):
    text = "import os; open(os.environ['SCHEDLAB_LOG'], 'w').write('epoch, epoch_time, throughput\\n1, .01, 5\\n')"
    run = run_script(request(script(tmp_path, text), batch=4, epochs=1), tmp_path / "run")
    pd.testing.assert_series_equal(run.table["throughput"], pd.Series([5], name="throughput"))
