"""What a training log or a table of step times is refused for: epochs twice, units, counts, values that cannot be."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic_step_times import synthetic_step_times

from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.analyser import OfflineDataAnalyzer
from schedlab.studies.cloud.model.fit_report import fit_report
from schedlab.studies.cloud.model.logs import read_step_times, read_training_log

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


# Units that a header states


@pytest.mark.parametrize(
    ("name", "unit", "factor"),
    [
        ("epoch_time", "ms", 1e-3),
        ("epoch_time", "min", 60.0),
        ("time_so_far", "h", 3600.0),
        ("throughput", "samples/min", 1 / 60),
        ("memory_used_gb", "MB", 1 / 1024),
        ("gpu_memory_used_gb", "B", 2.0**-30),
        ("data_size_mb", "GB", 1024.0),
        ("cost_so_far", "cent", 0.01),
        ("cpu_percent", "share", 100.0),
        ("gpu_utilization_1", "share", 100.0),
        ("epoch_time", "s", 1.0),
        ("gpu_utilization_0", "%", 1.0),
    ],
)
def test_a_header_states_the_unit_of_its_column(tmp_path, name, unit, factor):
    values = np.array([0.25, 0.3, 0.5, 0.6, 0.7, 0.9])
    plain = read_training_log(written(epochs_log(**{name: values * factor}), tmp_path))
    stated = written(epochs_log(**{name: values}).rename(columns={name: f"{name} [{unit}]"}), tmp_path)
    pd.testing.assert_frame_equal(read_training_log(stated), plain, check_like=True)


def test_steps_in_milliseconds_are_those_in_seconds(tmp_path):
    table = synthetic_step_times()
    seconds = read_step_times(written(table, tmp_path))
    table = table.assign(step_time=1000 * table["step_time"]).rename(columns={"step_time": "step_time [ms]"})
    pd.testing.assert_frame_equal(read_step_times(written(table, tmp_path)), seconds)


@pytest.mark.parametrize(
    ("column", "where"),
    [
        ("epoch_time [GB]", r"column epoch_time \[GB\]"),
        ("epoch_time []", r"column epoch_time \[\]"),
        ("epoch [s]", "log.csv"),  # an epoch has no unit: the column `epoch` is missing
    ],
)
def test_a_unit_that_a_column_cannot_have_is_refused(tmp_path, column, where):
    name = column.split()[0]
    with pytest.raises(UserError, match=name) as caught:
        read_training_log(written(epochs_log().rename(columns={name: column}), tmp_path))
    assert re.search(where, caught.value.where)


def test_a_column_in_two_units_stands_there_twice(tmp_path):
    with pytest.raises(UserError, match="epoch_time"):
        read_training_log(written(epochs_log(**{"epoch_time [ms]": 1.0}), tmp_path))


def test_a_value_that_is_no_number_is_named_with_its_unit(tmp_path):
    table = epochs_log().rename(columns={"epoch_time": "epoch_time [ms]"}).astype({"epoch_time [ms]": object})
    table.loc[2, "epoch_time [ms]"] = "fast"
    with pytest.raises(UserError, match=r"row 4, column epoch_time \[ms\]"):
        read_training_log(written(table, tmp_path))


def test_brackets_of_columns_that_are_not_ours_are_left_alone(tmp_path):
    table = read_training_log(written(epochs_log(**{"loss [nats]": 0.5}), tmp_path))
    assert "loss [nats]" in table.columns


# Values that cannot be


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1000.0])
@pytest.mark.parametrize("name", ["epoch_time", "throughput", "time_so_far", "memory_used_gb", "cost_so_far"])
def test_an_amount_is_taken_as_it_stands(tmp_path, caplog, name, scale):
    """No unit is guessed, whatever the other columns say."""
    values = scale * np.arange(1.0, 7.0)
    table = read_training_log(written(epochs_log(memory_gb=16, **{name: values}), tmp_path))
    assert table[name].tolist() == pytest.approx(values.tolist()) and not caplog.records


@pytest.mark.parametrize("value", [-1.0, None])
@pytest.mark.parametrize("name", ["epoch_time", "throughput"])
def test_negative_and_missing_amounts_are_refused(tmp_path, name, value):
    table = epochs_log()
    table.loc[3, name] = value
    with pytest.raises(UserError, match=f"row 5, column {name}"):
        read_training_log(written(table, tmp_path))


@pytest.mark.parametrize("name", ["cpu_percent", "gpu_utilization_0", "gpu_utilization_12"])
def test_a_use_above_all_is_refused(tmp_path, name):
    assert len(read_training_log(written(epochs_log(**{name: [0.0, 0.5, None, 99.0, 100.0, 100.4]}), tmp_path))) == 6
    with pytest.raises(UserError, match=f"row 4, column {name}"):
        read_training_log(written(epochs_log(**{name: [0.0, 0.5, 101.0, 99.0, 100.0, 100.0]}), tmp_path))
    with pytest.raises(UserError, match=f"row 4, column {name}"):
        read_training_log(written(epochs_log(**{f"{name} [share]": [0.0, 0.5, 1.01, 0.9, 1.0, 1.0]}), tmp_path))


@pytest.mark.parametrize(
    ("numbers", "times", "row"),
    [
        ((0, 1, 2, 3), [10, 19, 28, 37], None),
        ((0, 1, 2, 3), [10, 19, 19, 37], None),
        ((0, 1, 2, 3), [1e6, 2e6, None, 3e6], None),
        ((0, 1, 0, 1), [10, 19, 10, 19], None),  # another run
        ((0, 1, 2, 3), [10, 19, 18, 37], 4),
        ((0, 1, 2, 3), [10, 19, None, 9], 5),
        ((0, 1, 0, 1), [10, 19, 10, 9], 5),
    ],
)
def test_a_time_that_runs_backwards_is_refused(tmp_path, numbers, times, row):
    path = written(epochs_log(numbers, time_so_far=times), tmp_path)
    if row is None:
        assert len(read_training_log(path)) == 4
        return
    with pytest.raises(UserError, match=f"row {row}, column time_so_far"):
        read_training_log(path)


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


# Devices that idle

IDLE = np.array([0.41, 0.6, 0.52, 0.47, 0.55, 0.58])  # percent


def test_use_below_a_percent_tells_nothing_of_synchronisation_without_a_gpu_alone(tmp_path):
    """GPUs that idle would by it have waited for each other for nearly all of the step."""
    table = epochs_log(gpu_utilization_0=IDLE, gpu_utilization_1=IDLE)
    assert read_step_times(written(table, tmp_path))["sync_time"].isna().all()
    table = table.assign(gpu_utilization_0=100 * IDLE, gpu_utilization_1=100 * IDLE)
    assert read_step_times(written(table, tmp_path))["sync_time"].notna().all()


def test_a_run_with_slow_starts_and_idle_devices_is_taken_and_read_again(tmp_path, caplog):
    table = epochs_log(
        (1, 2, 3, 4), model_name="net", gpu_utilization_0=0.5, cpu_percent=0.5, cost_so_far=[1.0, 1.1, 2.0, 2.1]
    ).assign(epoch_time=1.0, time_so_far=[301.0, 602.0, 603.0, 904.0])
    store = tmp_path / "store.jsonl"
    assert OfflineDataAnalyzer(store).update_with_result(table, "net")
    again = OfflineDataAnalyzer(store)
    again.add_log(written(table, tmp_path))
    assert again.performance("net").settings == 1 and not caplog.records
    with pytest.raises(UserError, match="time_so_far"):
        OfflineDataAnalyzer().update_with_result(table.assign(time_so_far=[301.0, 2.0, 3.0, 4.0]), "net")


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
