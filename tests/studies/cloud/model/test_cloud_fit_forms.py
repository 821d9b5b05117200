"""Fits of logs that were not recorded here: drawn jobs on many designs, and training logs of whatever form a probe or a
script gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.fit import _Data, fit, relative_errors
from schedlab.studies.cloud.model.fit_report import fit_report
from schedlab.studies.cloud.model.logs import read_step_times
from schedlab.studies.cloud.model.step_time import StepParameters, step_time

JOBS = {
    "small batches": StepParameters(0.17, 5.8e-2, 1.38, 9.4e-3, 0.28, 9.6e-3, 1.9),
    "middling": StepParameters(0.0174, 7e-4, 0.1221, 2.64e-3, 0.0329, 8.75e-4, 2.07),
    "slow links": StepParameters(7e-3, 6e-7, 1.46e-2, 5.4e-4, 3.9e-3, 4.3e-4, 1.0),
}
EVERY_JOB = [pytest.param(job, marks=() if job == "middling" else pytest.mark.slow) for job in JOBS]
NOISE = 0.03  # of an epoch's time
Use = Callable[[float, np.random.Generator], float]
AS_RECORDED: Use = lambda share, rng: 100 * share  # noqa: E731
PROBES: dict[str, Use | None] = {
    "as recorded": AS_RECORDED,
    "none": None,
    "idle": lambda share, rng: 0.0,
    "waiting counts": lambda share, rng: 100.0,
    "sixty percent at most": lambda share, rng: 60 * share,
    "whole percents, low": lambda share, rng: float(round(30 * share)),
    "at random": lambda share, rng: float(rng.uniform(30, 70)),
}


def training_log(
    step: StepParameters,
    use: Use | None = AS_RECORDED,
    gpus: Iterable[int] = (1, 2, 4, 8),
    batches: Iterable[int] = (32,),
    epochs: int = 5,
    others: float | None = None,
) -> pd.DataFrame:
    """A log in the form of the recorded ones; batches: on a GPU; others: what is written for GPUs that the job does not
    hold.
    """
    rng, rows = np.random.default_rng(0), []
    for count in gpus:
        for batch in batches:
            exact = float(step_time(step, -(-count // 4), count, batch))
            share = (step.a_c + step.b_c * batch) / exact
            for epoch in range(epochs):
                seconds = exact * np.exp(NOISE * rng.standard_normal()) * 50_000 / (batch * count)
                row = {
                    "epoch": epoch,
                    "model_name": "net",
                    "data_count": 50_000,
                    "batch_size": batch * count,
                    "cpu_count": 8 * count,
                }
                row |= {"gpu_count": count, "epoch_time": seconds, "throughput": 50_000 / seconds, "exact": exact}
                for place in range(8 if use else 0):
                    row[f"gpu_utilization_{place}"] = use(share, rng) if place < count else others
                rows.append(row)
    return pd.DataFrame(rows)


def report_of(table: pd.DataFrame, folder: Path) -> dict:
    """The fit of a log as `schedlab cloud fit` prints it."""
    table.drop(columns="exact", errors="ignore").to_csv(folder / "log.csv", index=False)
    return fit_report([folder / "log.csv"])


def exact_errors(report: dict, table: pd.DataFrame) -> pd.Series:
    """Largest relative error of each number of GPUs, against the times without noise."""
    gpus = table["gpu_count"].to_numpy()
    batch = table["batch_size"].to_numpy() / gpus
    predicted = step_time(StepParameters(**report["parameters"]), -(-gpus // 4), gpus, batch)
    return (predicted / table["exact"] - 1).abs().groupby(table["gpu_count"]).max()


@pytest.mark.parametrize("batches", [(32,), pytest.param((16, 32, 64, 128), marks=pytest.mark.slow)])
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("job", EVERY_JOB)
def test_step_times_are_fitted_whatever_a_probe_takes_for_use(tmp_path, job, probe, batches):
    """A probe's use is no share of computing; taken for one, it put the step on one GPU off by up to 70 %."""
    table = training_log(JOBS[job], PROBES[probe], batches=batches)
    found = report_of(table, tmp_path)
    assert found["median_relative_error"] < 0.1 and exact_errors(found, table).median() < 0.1
    if probe != "at random":
        assert exact_errors(found, table).max() < 0.15


def test_gpus_that_a_job_does_not_hold_tell_nothing_of_it(tmp_path):
    table = training_log(JOBS["middling"], others=0.0)
    assert report_of(table, tmp_path)["parameters"] == report_of(training_log(JOBS["middling"]), tmp_path)["parameters"]


def test_use_as_shares_of_one_that_the_header_states_changes_nothing(tmp_path):
    percents, shares = training_log(JOBS["middling"]), training_log(JOBS["middling"], lambda share, rng: share)
    stated = shares.rename(columns=lambda name: f"{name} [share]" if name.startswith("gpu_utilization_") else name)
    assert list(stated) != list(shares)
    expected = report_of(percents, tmp_path)["parameters"]
    assert report_of(stated, tmp_path)["parameters"] == pytest.approx(expected, rel=1e-9)
    idle = training_log(JOBS["middling"], lambda share, rng: 0.04 * share)  # a GPU that is hardly used
    assert report_of(idle, tmp_path)["median_relative_error"] < 0.1


@pytest.mark.parametrize(
    "shape",
    [
        {"epochs": 1},
        {"epochs": 2},
        {"gpus": (1,)},
        {"gpus": (4,), "batches": (8, 16, 64)},
        {"gpus": (1, 2)},
        {"gpus": (8, 16, 32)},
        {"gpus": (1, 2, 3, 4, 6, 8, 12, 16), "batches": (4, 64, 1024)},
    ],
)
@pytest.mark.parametrize("job", EVERY_JOB)
def test_logs_of_other_shapes_are_fitted(tmp_path, job, shape):
    table = training_log(JOBS[job], **shape)
    found = report_of(table, tmp_path)
    assert found["median_relative_error"] < 0.1 and exact_errors(found, table).max() < 0.15


def test_columns_that_may_be_missing_or_empty_are_not_needed(tmp_path):
    table = training_log(JOBS["middling"])
    whole = report_of(table, tmp_path)
    named = report_of(table.assign(model_name=None), tmp_path)
    bare = report_of(table.drop(columns=["model_name", "data_count", "cpu_count"]), tmp_path)
    assert named["parameters"] == bare["parameters"] == whole["parameters"] and (named["rows"], named["settings"]) == (
        16,
        4,
    )


def test_epochs_that_count_on_over_allocations_leave_none_out(tmp_path):
    table = training_log(JOBS["middling"], epochs=1)
    table["epoch"] = range(len(table))
    assert report_of(table, tmp_path)["placements"] == 4


def test_an_epoch_that_was_held_up_does_not_count(tmp_path):
    table = training_log(JOBS["middling"])
    held = table.copy()
    for row in range(2, len(held), 5):
        held.loc[row, "epoch_time"] *= 10
        held.loc[row, "throughput"] /= 10
    assert exact_errors(report_of(held, tmp_path), table).max() < 0.1


def test_rows_on_fewer_cores_do_not_count_as_the_gpus_time(tmp_path):
    table = training_log(JOBS["middling"])
    starved = table.assign(cpu_count=1, epoch_time=3 * table["epoch_time"], throughput=table["throughput"] / 3)
    found = report_of(pd.concat([table, starved]), tmp_path)
    assert exact_errors(found, table).max() < 0.1


def table_of_placements(folder: Path, stray: int) -> Path:
    """Measured placements, of which a number tell more time in synchronisation than the step took."""
    step = JOBS["middling"]
    rows = [(text, batch) for text in ("1", "2", "4", "44", "444") for batch in (32, 64, 128, 256, 512, 1024)]
    table = pd.DataFrame(rows, columns=["placement", "local_bsz"])
    gpus = table["placement"].map(lambda text: sum(map(int, text))).to_numpy()
    table["step_time"] = step_time(step, table["placement"].str.len().to_numpy(), gpus, table["local_bsz"].to_numpy())
    table["sync_time"] = table["step_time"] - (step.a_c + step.b_c * table["local_bsz"])
    table.loc[len(table) - stray :, "sync_time"] = 2 * table["step_time"]
    table.to_csv(folder / "placements.csv", index=False)
    return folder / "placements.csv"


def test_a_stray_time_in_synchronisation_counts_as_not_recorded(tmp_path):
    found = read_step_times(table_of_placements(tmp_path, stray=1))
    assert found["sync_time"].isna().tolist() == [False] * 29 + [True]
    assert fit(found).median_error < 0.01
    with pytest.raises(UserError, match="row 29: sync_time"):
        read_step_times(table_of_placements(tmp_path, stray=3))


def drawn_job(rng: np.random.Generator) -> tuple[StepParameters, np.ndarray]:
    """Parameters over several orders of magnitude, and three to nine batches on a GPU that suit them."""
    batches = np.unique((2.0 ** rng.integers(0, 11) * np.sqrt(2.0) ** np.arange(rng.integers(3, 10))).astype(int))
    a_c = 10 ** rng.uniform(-3, 0)
    b_c = 10 ** rng.uniform(-1, 1) * a_c / np.median(batches)
    a_r = (a_c + b_c * np.median(batches)) * 10 ** rng.uniform(-1.5, 0.7)
    a_n = a_r * 10 ** rng.uniform(0, 1)
    growth = 10 ** rng.uniform(-3, -0.7, size=2)
    return StepParameters(a_c, b_c, a_n, a_n * growth[0], a_r, a_r * growth[1], rng.uniform(1, 5)), batches


DESIGNS = {
    "one node": [(1, 1), (1, 2), (1, 4)],
    "four placements": [(1, 1), (1, 2), (1, 4), (2, 8)],
    "large ones": [(1, 8), (2, 16), (4, 32)],
    "many": [(1, 1), (1, 2), (1, 3), (1, 4), (2, 2), (2, 4), (2, 8), (4, 4), (4, 16), (16, 64)],
}


@pytest.mark.parametrize("told", [True, False], ids=["synchronisation told", "step times alone"])
@pytest.mark.parametrize("design", DESIGNS)
def test_drawn_jobs_are_fitted_as_well_as_by_their_own_parameters(design, told):
    """A job of this form is found again from any start: what error is left is the noise's."""
    rng = np.random.default_rng(1)
    for _ in range(2):
        step, batches = drawn_job(rng)
        rows = pd.DataFrame(
            [(*place, float(b)) for place in DESIGNS[design] for b in batches], columns=["nodes", "gpus", "batch"]
        )
        times = step_time(step, rows["nodes"].to_numpy(), rows["gpus"].to_numpy(), rows["batch"].to_numpy())
        measured = times * np.exp(0.05 * rng.standard_normal(len(rows)))
        computing = np.minimum(
            (step.a_c + step.b_c * rows["batch"]) * np.exp(0.05 * rng.standard_normal(len(rows))), measured
        )
        rows = rows.assign(model="", step_time=measured, sync_time=(measured - computing) if told else np.nan)
        assert fit(rows).median_error < np.median(relative_errors(step, rows)) + 0.03


def test_a_contradicted_part_is_left_out_and_said_to_be():
    step, rng = JOBS["small batches"], np.random.default_rng(0)
    rows = pd.DataFrame(
        [(1, k, float(b)) for k in (1, 2, 4) for b in (16, 32, 64, 128)], columns=["nodes", "gpus", "batch"]
    )
    times = step_time(step, 1, rows["gpus"].to_numpy(), rows["batch"].to_numpy())
    rows = rows.assign(model="net", step_time=times, sync_time=times * rng.uniform(0.1, 0.9, len(rows)))
    found = fit(rows)
    assert found.alone and found.median_error < 0.02
    assert not fit(rows.assign(sync_time=times - (step.a_c + step.b_c * rows["batch"]))).alone


def test_the_slope_of_the_absolute_loss_is_that_of_its_differences():
    rows = pd.DataFrame([(1, k, float(b)) for k in (1, 2, 4) for b in (16, 32, 64)], columns=["nodes", "gpus", "batch"])
    rows = rows.assign(step_time=np.linspace(0.2, 0.9, 9), sync_time=np.nan)
    data, logs = _Data(rows, absolute=True), np.log([0.03, 5e-4, 0.2, 3e-3, 0.02, 1e-3, 2.7])
    slope = data.loss(logs)[1]
    for number, step in enumerate(1e-6 * np.eye(7)):
        assert slope[number] == pytest.approx((data.loss(logs + step)[0] - data.loss(logs - step)[0]) / 2e-6, abs=1e-7)
