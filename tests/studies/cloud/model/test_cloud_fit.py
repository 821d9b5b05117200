"""The step-time model: recovered from drawn times, as good as specified on recorded ones, and what a wrong log
is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic_step_times import synthetic_step_times

from schedlab.cli.main import main
from schedlab.config.errors import UserError
from schedlab.config.readers import read_yaml
from schedlab.studies.cloud.example import STEP
from schedlab.studies.cloud.model.fit import _Data, fit, leave_one_placement_out, relative_errors
from schedlab.studies.cloud.model.fit_report import fit_report, print_report, report_lines
from schedlab.studies.cloud.model.logs import read_step_times, read_training_log
from schedlab.studies.cloud.model.step_time import (
    PipelineSettings,
    Placement,
    StepParameters,
    memory_needed,
    performance,
    statistical_efficiency,
    step_time,
)

SYNTHETIC = Path("resources/step_times/synthetic.csv")
MODELS = {"cifar10": "cifar10", "imagenet": "imagenet", "ncf": "movielens", "bert": "squad"}
LOGS = {
    "cifar10": "log-cifar10-resnet18.csv",
    "imagenet": "log-imagenet-resnet50.csv",
    "ncf": "log-movielens1m-neumf.csv",
    "bert": "log-squad-bert-base.csv",
}


def drawn(placements: list[tuple[int, int]], noise: float = 0.0) -> pd.DataFrame:
    """Step times of the example's model."""
    rng, step = np.random.default_rng(0), StepParameters(**STEP)
    rows = [(nodes, gpus, float(batch)) for nodes, gpus in placements for batch in (32, 64, 128, 256)]
    table = pd.DataFrame(rows, columns=["nodes", "gpus", "batch"]).assign(model="")
    times = step_time(step, table["nodes"].to_numpy(), table["gpus"].to_numpy(), table["batch"].to_numpy())
    gradient = step.a_c + step.b_c * table["batch"].to_numpy()
    factor = np.exp(noise * rng.standard_normal(len(table)))
    return table.assign(step_time=times * factor, sync_time=(times - gradient) * factor)


ALL = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 2), (2, 4), (2, 8), (3, 12), (4, 16)]


def test_step_time_by_hand():
    p = StepParameters(a_c=0.1, b_c=0.01, a_n=0.5, b_n=0.1, a_r=0.2, b_r=0.05, y=1.0)
    found = step_time(p, np.array([1, 1, 1, 2]), np.array([1, 2, 4, 8]), 10)
    assert found == pytest.approx([0.2, 0.4, 0.5, 1.3])
    assert step_time(p, 1, 2, 10, speed=2.0) == pytest.approx(0.3)  # synchronisation is no faster
    assert step_time(StepParameters(**{**p.values(), "y": 10.0}), 1, 2, 10) == pytest.approx(0.2 * 2**0.1)


def test_performance_by_hand():
    p = StepParameters(a_c=0.1, b_c=0.01, a_n=0.5, b_n=0.1, a_r=0.2, b_r=0.05, y=1.0)
    pipeline = PipelineSettings(core_seconds=0.02, sample_bytes=1e6, dataset_gb=10.0, workers=4, prefetch=2)
    at = Placement(*(np.array([value], float) for value in (1, 1, 1, 4.0, 10, 1)))
    found = performance(p, pipeline, at)
    assert not found.fits and memory_needed(pipeline, 1, 10) == pytest.approx(2 + 1.5 + 1 + 0.02)
    at = Placement(*(np.array([value], float) for value in (1, 1, 1, 9.52, 10, 1)))
    found = performance(p, pipeline, at)
    data = 10 * (0.02 + 0.5 * 1e6 / 500e6)  # half of the data is in memory
    whole = (0.2**4 + data**4) ** 0.25
    assert found.fits and found.throughput == pytest.approx(10 / whole)
    assert found.gpu_util == pytest.approx(0.2 / whole) and found.cpu_util == pytest.approx(0.02 * 10 / whole)
    assert found.memory_util == pytest.approx(1.0)


def test_statistical_efficiency():
    assert statistical_efficiency(1.0, 128, 128) == 1.0
    assert statistical_efficiency(1.0, 1024, 128) == pytest.approx(2 / 9)
    assert statistical_efficiency(1e9, 1024, 128) == pytest.approx(1.0)


def test_parameters_are_recovered():
    rows = drawn(ALL)
    found = fit(rows)
    assert found.median_error < 0.01 and found.rows == len(rows)
    assert relative_errors(found.parameters, drawn([(5, 20), (1, 3)])).max() < 0.1
    assert fit(rows).parameters == found.parameters


def test_the_slope_of_the_loss_is_that_of_its_differences():
    data, logs = _Data(drawn(ALL, noise=0.05)), np.log([0.03, 5e-4, 0.2, 3e-3, 0.02, 1e-3, 2.7])
    slope = data.loss(logs)[1]
    for number, step in enumerate(1e-6 * np.eye(7)):
        assert slope[number] == pytest.approx((data.loss(logs + step)[0] - data.loss(logs - step)[0]) / 2e-6, abs=1e-7)


def test_what_was_not_measured_is_not_better_than_what_was():
    alone = fit(drawn([(1, 1), (1, 2), (1, 4)])).parameters
    assert alone.a_n == pytest.approx(1.1 * alone.a_r) and alone.b_n == pytest.approx(1.1 * alone.b_r)
    two = fit(drawn([(1, 1), (1, 2)])).parameters
    assert two.b_r < 1e-7 and two.a_r > 1e-3


def test_placements_left_out_tell_between_from_beyond():
    left = leave_one_placement_out(drawn(ALL, noise=0.03))
    assert left.placements == len(ALL) and 0 < left.interpolation < 0.1 and left.extrapolation > 0
    only = leave_one_placement_out(drawn([(1, 1)]))
    assert only.placements == 0 and only.interpolation is only.extrapolation is None


def test_the_bundled_log_is_what_its_page_says(repository):
    pd.testing.assert_frame_equal(
        pd.read_csv(repository / SYNTHETIC, dtype={"placement": str}),
        synthetic_step_times().astype({"placement": "str"}),
    )
    assert fit_report([repository / SYNTHETIC])["median_relative_error"] < 0.03


def test_the_command_prints_one_document(repository, capsys):
    assert main(["cloud", "fit", str(repository / SYNTHETIC)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 44 and set(found["parameters"]) == set(STEP) and found["median_relative_error"] < 0.03
    assert main(["cloud", "fit", str(repository / SYNTHETIC), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main(["cloud", "fit", str(repository / SYNTHETIC), "--text"]) == 0
    assert "44" in capsys.readouterr().out


@pytest.mark.parametrize("model", MODELS)
def test_recorded_models_are_fitted_as_specified(shared_data, repository, model):
    folder = shared_data / "cloud_logs/throughput" / model
    found = fit_report([folder / "placements.csv", folder / "scalability.csv"])
    assert found["median_relative_error"] <= 0.08
    pinned = read_yaml(repository / f"conf/training_job/{MODELS[model]}.yaml")["step"]
    for name in ("a_c", "b_c", "a_n", "b_n", "y"):  # a_r and b_r trade off against each other
        assert found["parameters"][name] == pytest.approx(pinned[name], rel=0.03), name


@pytest.mark.parametrize("model", MODELS)
def test_fifteen_probes_predict_every_other_placement(shared_data, model):
    folder = shared_data / "cloud_logs/throughput" / model
    rows = pd.concat(
        [read_step_times(folder / f"{name}.csv") for name in ("placements", "scalability")], ignore_index=True
    )
    probes = []
    for nodes, gpus in ((1, 1), (1, 2), (1, 4), (2, 2), (4, 16)):
        here = rows[(rows["nodes"] == nodes) & (rows["gpus"] == gpus)].sort_values("batch", kind="stable")
        probes.append(here.iloc[[0, len(here) // 2, len(here) - 1]])
    chosen = pd.concat(probes)
    others = rows.drop(chosen.index)
    assert np.median(relative_errors(fit(chosen).parameters, others)) <= 0.12


@pytest.mark.parametrize("model", MODELS)
def test_training_logs_are_fitted(shared_data, model, capsys):
    assert main(["cloud", "fit", str(shared_data / "cloud_logs/derived" / LOGS[model]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["median_relative_error"] < 0.08 and found["placements"] == 4


def log_text(**changed: str) -> str:
    """A log of two epochs as CSV; keywords change the second row, None takes the column out."""
    row = {
        "epoch": "0",
        "data_count": "1000",
        "batch_size": "10",
        "gpu_count": "1",
        "epoch_time": "10",
        "throughput": "100",
    }
    row["gpu_utilization_0"] = "90"
    second = row | {"epoch": "1"} | changed
    names = [name for name in row if second[name] is not None]
    return "\n".join(",".join(line) for line in (names, [row[n] for n in names], [second[n] for n in names])) + "\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (log_text(throughput=None), "'throughput'"),
        (log_text(throughput="nan"), "row 3, column throughput"),
        (log_text(epoch_time="0"), "row"),
        (log_text(epoch_time="soon"), "epoch_time"),
        (log_text(epoch="0"), "row 3: epoch 0"),
        (log_text(gpu_utilization_0="900"), "column gpu_utilization_0"),
        (log_text(gpu_utilization_0="idle"), "row 3, column gpu_utilization_0"),
        (log_text(data_count="0x10"), "row 3, column data_count"),
        (log_text(gpu_count="9" * 19), "row 3, column gpu_count"),
        (log_text(batch_size="9" * 400), "row 3, column batch_size"),
        (log_text(epoch="x" * 9999), "row 3, column epoch"),
        (log_text().replace("epoch_time", "epoch_time [days]"), "epoch_time"),
        ("", "log.csv"),
        ("epoch,throughput\n", "log.csv"),
        ("epoch,epoch\n1,2\n", "epoch"),
        ("placement,local_bsz,step_time\n1,32,0.1\n", "'sync_time'"),
        ("placement,local_bsz,step_time,sync_time\n1x,32,0.1,0.0\n", "1x"),
        ("placement,local_bsz,step_time,sync_time\n²,32,0.1,0.0\n", "²"),
        ("placement,local_bsz,step_time,sync_time\n1,32,0.1,0.2\n", "sync_time"),
        ("placement,local_bsz,step_time,sync_time\n1,32,-0.1,0.0\n", "row"),
    ],
)
def test_mistakes_in_logs_are_told(tmp_path, text, told):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(UserError, match=told) as error:
        fit_report([tmp_path / "log.csv"])
    assert len(str(error.value).splitlines()) == 1 and "log.csv" in str(error.value)


def test_a_missing_log_and_a_log_without_gpus_are_told(tmp_path, capsys):
    assert main(["cloud", "fit", str(tmp_path / "none.csv")]) == 2
    assert "no such file" in capsys.readouterr().err
    (tmp_path / "log.csv").write_text(log_text().replace(",10,1,10,", ",10,0,10,"))
    with pytest.raises(UserError, match="step times"):
        fit_report([tmp_path / "log.csv"])


def test_an_epoch_that_falls_begins_a_run(tmp_path):
    lines = log_text().splitlines()
    (tmp_path / "log.csv").write_text("\n".join([*lines, *lines[1:]]) + "\n")
    assert read_training_log(tmp_path / "log.csv")["run"].tolist() == [0, 0, 1, 1]


def test_models_of_several_logs_are_fitted_apart(tmp_path):
    for name in ("one", "two"):
        lines = log_text().splitlines()
        (tmp_path / f"{name}.csv").write_text(
            "\n".join([lines[0] + ",model_name", *(f"{line},{name}" for line in lines[1:])])
        )
    assert set(fit_report([tmp_path / "one.csv", tmp_path / "two.csv"])["models"]) == {"one", "two"}


CORE_PARAMETERS = {"a_c": 7.329e-4, "b_c": 1e-9, "core_seconds": 1.207e-8}
COUNTS = {"model": None, "rows": 8, "settings": 4, "free_parameters": 3, "placements": 2}
FITTED = {**COUNTS, "median_relative_error": 0.02, "largest_relative_error": 0.9}
STEP_PARAMETERS = {"a_c": 0.02, "b_c": 7e-4, "a_n": 1e-8, "b_n": 1e-8, "a_r": 0.03, "b_r": 9e-4, "y": 2.0}


@pytest.mark.parametrize(("parameters", "lowest"), [(CORE_PARAMETERS, "b_c"), (STEP_PARAMETERS, "a_n, b_n")])
def test_parameters_on_their_lowest_bound_are_reported(parameters, lowest):
    bounds, free = (
        list(report_lines({**FITTED, "parameters": each})) for each in (parameters, dict.fromkeys(parameters, 0.5))
    )
    assert len(bounds) == len(free) + 1 and sum(f": {lowest}" in line for line in bounds) == 1


def test_a_fit_that_misses_is_warned_of_and_one_without_a_row_to_spare_does_not_boast():
    report = {**FITTED, "model": "mlp", "parameters": CORE_PARAMETERS, "median_relative_error": 0.59}
    assert any("WARNING" in line and "59.00%" in line for line in report_lines(report))
    assert not any("WARNING" in line for line in report_lines({**report, "median_relative_error": 0.1}))
    exact = {**report, "median_relative_error": 0.0, "settings": 3}
    assert len(list(report_lines(exact))) == len(list(report_lines({**exact, "settings": 4}))) + 1


def test_a_warning_stands_beside_the_json_and_not_in_it(capsys, caplog):
    print_report({**FITTED, "parameters": CORE_PARAMETERS, "median_relative_error": 0.59}, as_json=True)
    assert json.loads(capsys.readouterr().out)["median_relative_error"] == 0.59 and "59.00%" in caplog.text
