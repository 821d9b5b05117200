"""What a training log or a table of step times is refused for, and what it is only warned of: epochs twice, units,
counts.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schedlab.cli.main import main
from schedlab.config.errors import UserError
from schedlab.studies.cloud.example import synthetic_step_times
from schedlab.studies.cloud.model.analyser import OfflineDataAnalyzer
from schedlab.studies.cloud.model.fit_report import fit_report
from schedlab.studies.cloud.model.logs import check_training_log, read_step_times, read_training_log

SECONDS = (10.0, 9.0, 9.3, 9.1, 9.2, 8.9)


def epochs_log(numbers=(0, 1, 2, 3, 4, 5), **columns) -> pd.DataFrame:
    """A log of epochs on two GPUs of eight, 1000 samples each; columns take the place of its own."""
    seconds = np.array([SECONDS[number % len(SECONDS)] for number in numbers])
    table = pd.DataFrame(
        {"epoch": numbers, "data_count": 1000, "batch_size": 10, "gpu_count": 2, "cpu_count": 8, "epoch_time": seconds}
    )
    table["throughput"] = table["data_count"] / table["epoch_time"]
    return table.assign(**columns)


def written(table: pd.DataFrame, folder: Path) -> Path:
    table.to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


# Epochs that stand there twice


@pytest.mark.parametrize(
    ("numbers", "row"),
    [
        ((0, 1, 1, 2), 4),
        ((0, 1, 2, 1), 5),
        ((0, 1, 2, 3, 1, 2, 3), 6),
        ((0, 2, 1, 3, 2), 6),
        ((1, 2, 3, 1, 2, 3, 2), 8),
    ],
)
@pytest.mark.parametrize("model", [{}, {"model_name": None}, {"model_name": "net", "cpu_count": None}])
def test_an_epoch_that_stands_there_twice_in_a_run_is_told_wherever_it_stands(tmp_path, numbers, row, model):
    with pytest.raises(UserError, match=f"row {row}: epoch {numbers[row - 2]}"):
        read_training_log(written(epochs_log(numbers, **model), tmp_path))


def test_a_copied_row_at_the_end_is_no_run_of_its_own(tmp_path):
    with pytest.raises(UserError, match="row 6: epoch 0"):
        read_training_log(written(epochs_log((0, 1, 2, 3, 0)), tmp_path))


@pytest.mark.parametrize(
    ("numbers", "changed", "runs"),
    [
        ((0, 1, 2, 0, 1, 2), {}, [0, 0, 0, 1, 1, 1]),
        ((1, 2, 3, 1), {"epoch_time": [10.0, 9, 9, 10.1], "throughput": [100.0, 111, 111, 99]}, [0, 0, 0, 1]),
        ((0, 1, 1, 2), {"gpu_count": [1, 1, 2, 2]}, [0, 0, 1, 1]),
        ((0, 1, 0, 1), {"batch_size": [10, 10, 20, 20]}, [0, 0, 1, 1]),
        ((5, 6, 3, 4), {}, [0, 0, 1, 1]),
        ((0, 0, 0), {"gpu_count": [1, 2, 4]}, [0, 1, 2]),
    ],
)
def test_runs_of_one_log_repeat_their_epochs(tmp_path, numbers, changed, runs):
    assert read_training_log(written(epochs_log(numbers, **changed), tmp_path))["run"].tolist() == runs


# Units that cannot be


def half(values: pd.Series, factor: float) -> pd.Series:
    """Every second value in another unit."""
    return values * np.where(np.arange(len(values)) % 2, factor, 1.0)


@pytest.mark.parametrize("factor", [1000.0, 60.0, 1 / 60, 1 / 3600, 1e-3])
def test_a_time_so_far_in_another_unit_is_told(tmp_path, factor):
    table = epochs_log()
    table["time_so_far"] = table["epoch_time"].cumsum() * factor
    with pytest.raises(UserError, match=r"log\.csv.*time_so_far"):
        read_training_log(written(table, tmp_path))


def test_a_time_so_far_that_changes_its_unit_on_the_way_is_told(tmp_path):
    table = epochs_log()
    table["time_so_far"] = table["epoch_time"].cumsum() * np.where(table["epoch"] < 3, 1.0, 1000.0)
    with pytest.raises(UserError, match="time_so_far"):
        read_training_log(written(table, tmp_path))


@pytest.mark.parametrize(
    "so_far",
    [
        lambda t: t.cumsum(),
        lambda t: t.cumsum() + 1e6,  # counted since another begin
        lambda t: (
            t.cumsum() + 150.0 * np.arange(len(t))
        ),  # a start before each epoch, as of intervals that are runs of their own
        lambda t: t.cumsum().floordiv(1),
        lambda t: pd.concat([t[:3].cumsum(), t[3:].cumsum()]),  # resumed, and counted anew
        lambda t: t.cumsum() + np.where(np.arange(len(t)) > 2, 9e4, 0.0),  # held up for a day
        lambda t: t * np.nan,
    ],
)
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_a_time_so_far_in_seconds_passes(tmp_path, so_far, scale):
    table = epochs_log()
    table = table.assign(epoch_time=table["epoch_time"] * scale, throughput=table["throughput"] / scale)
    table["time_so_far"] = so_far(table["epoch_time"])
    assert len(read_training_log(written(table, tmp_path))) == 6


@pytest.mark.parametrize("name", ["epoch_time", "throughput"])
@pytest.mark.parametrize("count", [True, False])
def test_units_that_half_of_the_rows_have_are_told(tmp_path, name, count):
    table = epochs_log(tuple(range(12)))
    table = table.assign(**{name: half(table[name], 1000.0)}).drop(columns=[] if count else ["data_count"])
    told = r"log.csv.*row \d+: throughput"
    with pytest.raises(UserError, match=told):
        read_training_log(written(table, tmp_path))


def test_rows_without_a_number_of_samples_hide_no_unit(tmp_path):
    table = epochs_log()
    table = table.assign(epoch_time=table["epoch_time"] * 1000, data_count=[1000, None, 1000, 1000, None, 1000])
    with pytest.raises(UserError, match="throughput"):
        read_training_log(written(table, tmp_path))


def test_throughputs_that_leave_some_of_the_epoch_out_pass(tmp_path):
    table = epochs_log()
    table = table.assign(throughput=table["throughput"] * [1.2, 1.0, 1.3, 1.0, 1.1, 1.25])  # validation is no training
    assert len(read_training_log(written(table, tmp_path))) == 6
    table = (
        epochs_log().drop(columns="data_count").assign(gpu_count=[1, 1, 1, 2, 2, 2], model_name=["a"] * 3 + ["b"] * 3)
    )
    table["throughput"] *= [1, 1, 1, 40, 40, 40]  # another model, on larger data
    assert len(read_training_log(written(table, tmp_path))) == 6


@pytest.mark.parametrize("name", ["gpu_count", "cpu_count", "batch_size"])
def test_counts_are_whole(tmp_path, name):
    for values in ([2, 2, 2.5, 2, 2, 2], [1.9] * 6):
        row = 2 + int(values[0] == 2) * 2
        with pytest.raises(UserError, match=rf"row {row}, column {name}"):
            read_training_log(written(epochs_log(**{name: values}), tmp_path))
    assert len(read_training_log(written(epochs_log(**{name: [2.0] * 6}), tmp_path))) == 6


def test_no_core_trains_nothing(tmp_path):
    with pytest.raises(UserError, match="row 2, column cpu_count"):
        fit_report([written(epochs_log(gpu_count=0, cpu_count=0), tmp_path)])


# Tables of measured placements


def placements(folder: Path, **changed) -> Path:
    table = synthetic_step_times()
    return written(table.assign(**{name: change(table[name]) for name, change in changed.items()}), folder)


def test_step_times_in_another_unit_than_synchronisation_are_told(tmp_path):
    assert fit_report([placements(tmp_path)])["median_relative_error"] < 0.03
    with pytest.raises(UserError, match=r"column step_time.*sync_time"):
        read_step_times(placements(tmp_path, step_time=lambda t: 1000 * t))


@pytest.mark.parametrize("model", ["cifar10", "imagenet", "ncf", "bert"])
@pytest.mark.parametrize("name", ["placements", "scalability"])
def test_recorded_step_times_in_milliseconds_are_told(shared_data, tmp_path, model, name):
    file = shared_data / f"cloud_logs/throughput/{model}/{name}.csv"
    assert len(read_step_times(file))
    table = pd.read_csv(file, dtype={"placement": str})
    with pytest.raises(UserError, match="column step_time"):
        read_step_times(written(table.assign(step_time=1000 * table["step_time"]), tmp_path))


def test_steps_that_synchronise_in_no_time_pass(tmp_path):
    assert len(read_step_times(placements(tmp_path, sync_time=lambda t: 0.0 * t))) == 44
    alone = synthetic_step_times()
    alone = alone[alone["placement"].astype(str) == "1"]
    assert len(read_step_times(written(alone, tmp_path))) == len(alone), "one placement tells nothing of units"


@pytest.mark.parametrize(
    ("nodes", "gpus", "told"),
    [
        (0, 2, "column num_nodes"),
        (1, 0, "column num_replicas"),
        (1, 1.5, "column num_replicas"),
        (4, 2, "2 GPUs on 4 nodes"),
    ],
)
def test_placements_that_cannot_be_are_told(tmp_path, nodes, gpus, told):
    table = pd.DataFrame(
        {"num_nodes": [1, nodes], "num_replicas": [1, gpus], "local_bsz": 8, "step_time": [1.0, 1.1], "sync_time": 0.1}
    )
    with pytest.raises(UserError, match=f"row 3.*{told}"):
        read_step_times(written(table, tmp_path))


# What may be


IDLE = np.array([0.41, 0.6, 0.52, 0.47, 0.55, 0.58])


def warnings_of(caplog) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    caplog.clear()
    return found


@pytest.mark.parametrize("factor", [1.15, 4.0, 0.25])
def test_a_throughput_that_no_unit_explains_passes_and_is_said_to_be_doubtful(tmp_path, caplog, factor):
    """Validation in the time of an epoch, samples of one GPU of four, another number of samples."""
    table = epochs_log()
    table["throughput"] *= factor
    assert len(read_training_log(written(table, tmp_path))) == 6
    told = warnings_of(caplog)
    assert len(told) == 1 and f"throughput {factor * 1000 / 10:g}" in told[0] and "data_count" in told[0]
    read_training_log(written(epochs_log(), tmp_path))
    assert warnings_of(caplog) == []


@pytest.mark.parametrize("factor", [60.0, 1 / 60, 1000.0])
def test_a_throughput_in_another_unit_is_told_with_what_else_it_can_be(tmp_path, factor):
    table = epochs_log()
    table["throughput"] *= factor
    with pytest.raises(UserError, match=r"throughput.*data_count"):
        read_training_log(written(table, tmp_path))


def test_memory_in_another_unit_than_what_is_held_is_told(tmp_path, caplog):
    with pytest.raises(UserError, match="row 2, column memory_used_gb"):
        read_training_log(written(epochs_log(memory_gb=16, memory_used_gb=8000.0), tmp_path))
    for used, doubtful in ((8.0, 0), (16.0, 0), (16.5, 0), (50.0, 1)):
        assert len(read_training_log(written(epochs_log(memory_gb=16, memory_used_gb=used), tmp_path))) == 6
        assert ["memory_used_gb" in told for told in warnings_of(caplog)] == [True] * doubtful
    for held in (0, None):
        assert len(read_training_log(written(epochs_log(memory_gb=held, memory_used_gb=8000.0), tmp_path))) == 6
    assert warnings_of(caplog) == []


def test_a_cost_that_falls_on_the_way_is_told(tmp_path, caplog):
    table = epochs_log(cost_so_far=[0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    with pytest.raises(UserError, match="row 3, column cost_so_far"):
        read_training_log(written(table, tmp_path))
    anew = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
    assert len(read_training_log(written(epochs_log(cost_so_far=anew), tmp_path))) == 6
    assert ["cost_so_far" in told for told in warnings_of(caplog)] == [True], "once may be a resumption"
    seconds = pd.Series(SECONDS)
    resumed = epochs_log(cost_so_far=anew, time_so_far=pd.concat([seconds[:3].cumsum(), seconds[3:].cumsum()]))
    for passing in (resumed, epochs_log((0, 1, 2, 0, 1, 2), cost_so_far=anew), epochs_log(cost_so_far=0.5)):
        assert len(read_training_log(written(passing, tmp_path))) == 6
    assert warnings_of(caplog) == []


def test_idle_gpus_pass_and_are_said_to_be_doubtful(tmp_path, caplog):
    table = epochs_log(gpu_utilization_0=IDLE, gpu_utilization_1=IDLE[::-1])
    assert len(read_training_log(written(table, tmp_path))) == 6
    told = warnings_of(caplog)
    assert len(told) == 1 and "gpu_utilization_<i>" in told[0]
    for other in (100 * IDLE, np.round(IDLE), 0 * IDLE):
        read_training_log(written(table.assign(gpu_utilization_0=other, gpu_utilization_1=other), tmp_path))
    assert warnings_of(caplog) == []


def test_a_log_is_warned_of_once_by_the_command(tmp_path, capsys, caplog):
    table = epochs_log(gpu_utilization_0=IDLE / 0.6)
    assert main(["cloud", "fit", str(written(table, tmp_path))]) == 0
    assert json.loads(capsys.readouterr().out)["placements"] == 1
    assert len([told for told in warnings_of(caplog) if "gpu_utilization" in told]) == 1


def test_use_below_a_percent_tells_nothing_of_synchronisation_without_a_gpu_alone(tmp_path):
    """It is that of idle GPUs, or shares of one: by either the GPUs would have waited for nearly all of the step."""
    table = epochs_log(gpu_utilization_0=IDLE, gpu_utilization_1=IDLE)
    assert read_step_times(written(table, tmp_path))["sync_time"].isna().all()
    table = table.assign(gpu_utilization_0=100 * IDLE, gpu_utilization_1=100 * IDLE)
    assert read_step_times(written(table, tmp_path))["sync_time"].notna().all()


def test_use_of_cores_as_shares_of_one_is_warned_of(tmp_path, caplog):
    shares = [0.7, 0.9, 0.95, 0.85, 1.0, 0.8]
    read_training_log(written(epochs_log(cpu_percent=shares), tmp_path))
    told = warnings_of(caplog)
    assert len(told) == 1 and "cpu_percent" in told[0]
    read_training_log(written(epochs_log(cpu_percent=shares).drop(columns="cpu_count"), tmp_path))
    assert len(warnings_of(caplog)) == 1
    read_training_log(written(epochs_log(cpu_percent=shares, cpu_count=[8, 8, 8, 8, 64, 64]), tmp_path))
    assert len(warnings_of(caplog)) == 1, "what some rows may be does not explain the others"
    read_training_log(written(epochs_log(cpu_percent=shares, cpu_count=128), tmp_path))  # a core of 128 is busy
    read_training_log(written(epochs_log(cpu_percent=[100 * value for value in shares]), tmp_path))
    read_training_log(written(epochs_log(cpu_percent=[0.0] * 6), tmp_path))
    assert warnings_of(caplog) == []


def test_what_was_measured_here_is_taken_as_it_is(tmp_path, caplog):
    """Idle GPUs and cores of a run of ours are no mistake in a unit: the result is kept, the model fitted."""
    table = epochs_log(gpu_utilization_0=IDLE, cpu_percent=IDLE, model_name="net", cost_so_far=1.0)
    table["time_so_far"] = table["epoch_time"].cumsum()
    analyser = OfflineDataAnalyzer(tmp_path / "store.jsonl")
    assert analyser.update_with_result(table, "net") and analyser.performance("net").settings == 1
    assert len(check_training_log(table, tmp_path / "log.csv")) == 6 and warnings_of(caplog) == []


def slow_starts(**columns) -> pd.DataFrame:
    """The log of a run of four epochs of a second on ours, with a start of five minutes before three of them."""
    table = epochs_log(
        (1, 2, 3, 4), model_name="net", epoch_time=1.0, throughput=1000.0, cost_so_far=[1.0, 1.1, 2.0, 2.1]
    )
    return table.assign(**{"time_so_far": [301.0, 602.0, 603.0, 904.0], **columns})


def test_times_of_a_training_that_was_measured_here_are_not_doubted(tmp_path, caplog):
    """Its starts may be as long as they were; the kept log and the result are taken, and so they are again."""
    table = slow_starts(memory_private_gb=1.0, memory_gb=0.1, memory_used_gb=2.0)
    store = tmp_path / "store.jsonl"
    assert OfflineDataAnalyzer(store).update_with_result(table, "net")
    again = OfflineDataAnalyzer(store)
    again.add_log(written(table, tmp_path))
    assert again.performance("net").settings == 1 and warnings_of(caplog) == []
    with pytest.raises(UserError, match="time_so_far"):
        OfflineDataAnalyzer().update_with_result(table.drop(columns=["memory_private_gb", "memory_gb"]), "net")


def test_a_training_that_is_over_is_not_lost_by_its_units(tmp_path, caplog):
    """The rest of what the script logged is doubted aloud, but kept and fitted; in logs of others it is refused."""
    table = (
        slow_starts(memory_private_gb=1.0).drop(columns="data_count").assign(throughput=[1000.0, 1000.0, 1000.0, 1.0])
    )
    analyser = OfflineDataAnalyzer(tmp_path / "store.jsonl")
    assert analyser.update_with_result(table, "net") and len(analyser.tables) == 1
    assert ["throughput" in told for told in warnings_of(caplog)] == [True]
    assert analyser.performance("net").settings == 1
    with pytest.raises(UserError, match="throughput"):
        analyser.add_log(written(table, tmp_path))


# What a fit says of itself


def test_a_fit_tells_rows_settings_and_free_parameters(tmp_path):
    blocks = [epochs_log(gpu_count=gpus, batch_size=16 * gpus, cpu_count=8 * gpus) for gpus in (1, 2, 4, 8)]
    path = written(pd.concat(blocks), tmp_path)
    found = fit_report([path])
    assert (found["rows"], found["settings"], found["placements"]) == (20, 4, 4)  # the first epoch of each warms up
    assert found["free_parameters"] == 6  # one batch: all but a_c
    alone = fit_report([written(epochs_log((0,)), tmp_path)])
    assert (alone["rows"], alone["settings"], alone["placements"], alone["free_parameters"]) == (1, 1, 1, 3)


def test_the_work_of_a_core_is_told_with_its_settings(tmp_path):
    blocks = [epochs_log(gpu_count=1, cpu_count=cores, throughput=50.0 * cores, data_count=None) for cores in (1, 2)]
    cores = fit_report(
        [written(pd.concat(blocks).assign(epoch_time=10.0, throughput=[100.0] * 6 + [150.0] * 6), tmp_path)]
    )["cores"]
    assert (cores["rows"], cores["settings"], cores["free_parameters"]) == (10, 2, 1)


def test_a_fit_of_cores_alone_tells_the_same(tmp_path):
    blocks = [epochs_log(gpu_count=0, cpu_count=cores, batch_size=batch) for cores in (1, 2, 4) for batch in (10, 20)]
    found = fit_report([written(pd.concat(blocks), tmp_path)])
    assert (found["rows"], found["settings"], found["free_parameters"]) == (30, 6, 3)
