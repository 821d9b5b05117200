"""`schedlab cloud plan`: what is chosen from logs of a job whose times are known everywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schedlab.cli.main import main
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.allocation import ResourceConfig
from schedlab.studies.cloud.model.fit_cores import iteration_time
from schedlab.studies.cloud.model.instances import offers_of, read_instances
from schedlab.studies.cloud.model.logs import check_training_log
from schedlab.studies.cloud.model.plan import Forecast, Measured, Renting, forecast, forecast_offers, job_of
from schedlab.studies.cloud.model.step_time import StepParameters
from schedlab.studies.cloud.optimize.plan import Plan, plan, text
from schedlab.studies.cloud.optimize.plan_command import seconds_of
from schedlab.studies.cloud.optimize.settings import LimitSettings

STEP, WORK = StepParameters(0.01, 1e-3, 0.1, 1e-2, 0.02, 3e-3, 2.0), 2e-3
EPOCHS, SAMPLES, BATCH = 20, 50_000, 64  # samples of a batch on each GPU
GRID = tuple((gpus, cores) for gpus in (1, 2, 4, 8) for cores in (2, 4, 8, 16, 32))
LIMITS = ResourceConfig(gpu_count_max=8, cpu_count_max=32, memory_max=64, memory_min=1)


def epoch_seconds(gpus, cores, step: StepParameters = STEP, work: float = WORK) -> np.ndarray:
    """s of an epoch by the true model."""
    gpus = np.asarray(gpus, float)
    at = pd.DataFrame({"nodes": 1, "gpus": gpus.astype(int), "cores": cores, "batch": gpus * BATCH})
    return SAMPLES / (gpus * BATCH) * iteration_time(step, work, at)


def training_log(noise: float = 0.0, seed: int = 0, grid=GRID, **columns) -> pd.DataFrame:
    """Three epochs on each allocation; the first of each takes 5 s longer."""
    rng, rows = np.random.default_rng(seed), []
    for number, (gpus, cores) in enumerate(grid):
        for epoch in range(3):
            took = float(epoch_seconds([gpus], [cores])[0]) * float(np.exp(noise * rng.standard_normal()))
            took += 5.0 * (epoch == 0)
            held = {"gpu_count": gpus, "cpu_count": cores, "batch_size": gpus * BATCH, "sample": number}
            row = {"epoch": epoch + 1, "total_epochs": EPOCHS, "model_name": "net", "data_count": SAMPLES, **held}
            rows.append(
                {**row, "epoch_time": took, "throughput": SAMPLES / took, "memory_used_gb": 9.0 + gpus / 8, **columns}
            )
    return pd.DataFrame(rows)


def measured(**given) -> Measured:
    return job_of(check_training_log(training_log(**given), Path("log.csv")), "log.csv", 8)


@pytest.fixture(scope="module")
def exact() -> Forecast:
    return forecast(measured(), LIMITS, resamples=20)


def chosen(found: Plan) -> int:
    assert found.chosen is not None
    return found.chosen


def test_a_job_is_what_its_log_says():
    job = measured().job
    assert (job.model, job.epochs, job.samples, job.batch, job.per_gpu) == ("net", EPOCHS, SAMPLES, BATCH, True)
    assert job.start == pytest.approx(5.0) and job.memory == 10.0 and job.cores_per_gpu is None


def test_a_zero_in_a_log_says_nothing_of_the_job():
    unknown = training_log(data_count=0, total_epochs=0, memory_used_gb=0.0)
    job = job_of(check_training_log(unknown, Path("log.csv")), "log.csv", 8).job
    assert (job.epochs, job.memory) == (3, None)  # the length of the longest run
    assert job.samples == pytest.approx(SAMPLES)  # of throughput and time


def test_the_columns_of_the_printed_plan_stand_apart(exact):
    long = replace(exact, time=exact.time * 1e5, times=exact.times * 1e5, cost=exact.cost * 1e5)
    header, *rows = text(plan(long, LimitSettings(), 0.9)).splitlines()[2:6]
    for row in rows:
        assert row.index("$") == header.index("cost") and row.index("met with") == header.index("limits")


def test_times_and_costs_are_those_of_the_job(exact):
    gpus, cores, memory = exact.allocations.T
    time = 5.0 + EPOCHS * epoch_seconds(gpus, cores)
    assert set(memory) == {12.0}  # a fifth above the largest use
    assert exact.time == pytest.approx(time, rel=0.05)
    assert exact.cost == pytest.approx(exact.time / 3600 * (2.5 * gpus + 0.1 * cores + 0.02 * memory))
    assert len(exact.time) == 8 * 32 and exact.measured.sum() == len(GRID)


@pytest.mark.parametrize(
    ("limits", "sought"),
    [
        ({"time_max": 600.0}, "cost"),
        ({"cost_max": 1.1}, "time"),
        ({"time_max": 500.0, "cost_max": 2.0}, "cost"),
        ({}, "cost"),
    ],
)
def test_the_plan_is_the_best_that_meets_the_limits(exact, limits, sought):
    found = plan(exact, LimitSettings(**limits), probability=0.5)
    meets = (exact.time <= limits.get("time_max", np.inf)) & (exact.cost <= limits.get("cost_max", np.inf))
    values = np.where(meets & (found.likely >= 0.5), getattr(exact, sought), np.inf)
    assert np.isfinite(values).any() and getattr(exact, sought)[chosen(found)] == values.min()
    assert found.likely[chosen(found)] >= 0.5


def test_the_front_is_not_dominated_and_ends_at_the_fastest_and_the_cheapest(exact):
    found = plan(exact, LimitSettings())
    time, cost = exact.time[found.front], exact.cost[found.front]
    assert (np.diff(time) > 0).all() and (np.diff(cost) < 0).all()
    assert found.front[0] == found.fastest and found.front[-1] == found.cheapest
    beaten = (exact.time[:, None] >= time) & (exact.cost[:, None] >= cost)
    assert beaten.any(axis=1).all()


def test_limits_on_throughput_memory_and_use_hold(exact):
    found = plan(exact, LimitSettings(throughput_min=5000.0, gpu_util_min=60.0, cpu_util_min=50.0))
    number = chosen(found)
    assert EPOCHS * SAMPLES / (exact.time[number] - 5.0) >= 5000.0
    assert exact.gpu_util[number] >= 0.6 and exact.cpu_util[number] >= 0.5
    assert plan(exact, LimitSettings(memory_max=11.0)).chosen is None


def test_intervals_hold_the_time_of_a_coming_run_as_often_as_they_say():
    inside = []
    for seed in range(8):
        found = forecast(measured(noise=0.05, seed=seed), LIMITS, seed, resamples=60)
        gpus, cores, _ = found.allocations.T
        ahead = np.exp(np.random.default_rng(seed).normal(0.0, 0.05 / EPOCHS**0.5, len(gpus)))
        low, high = np.quantile(found.times, (0.05, 0.95), axis=0)
        time = found.job.start + EPOCHS * epoch_seconds(gpus, cores) * ahead
        inside.append(((low <= time) & (time <= high)).mean())
    assert 0.75 <= np.mean(inside) <= 0.99  # nominal 0.9; the allocations of a seed share their errors


def test_a_surer_plan_costs_no_less():
    found = forecast(measured(noise=0.1, seed=3), LIMITS, resamples=100)
    means = []
    for probability in (0.5, 0.9, 0.99):
        plans = [plan(found, LimitSettings(time_max=limit), probability) for limit in (220.0, 230.0, 240.0, 260.0)]
        means.append(np.mean([found.cost[chosen(each)] for each in plans]))
    assert means == sorted(means) and means[0] < means[-1]


def test_what_is_measured_next_is_unmeasured_and_a_rival(exact):
    noisy = forecast(measured(noise=0.1, seed=1, grid=((1, 2), (1, 8), (2, 8), (4, 32), (8, 32))), LIMITS, resamples=50)
    found = plan(noisy, LimitSettings(time_max=1500.0))
    assert found.next_one is not None and not noisy.measured[found.next_one]
    assert plan(exact, LimitSettings()).next_one is None  # nothing to learn where every resample says the same


def test_cores_that_vary_with_the_gpus_alone_are_not_free():
    job = measured(grid=((1, 8), (2, 16), (4, 32))).job
    assert job.cores_per_gpu == 8
    found = forecast(measured(grid=((1, 8), (2, 16), (4, 32))), LIMITS, resamples=5)
    assert sorted(map(tuple, found.allocations[:, :2])) == [(1, 8), (2, 16), (3, 24), (4, 32)]
    assert not found.determined
    with pytest.raises(UserError) as error:
        plan(found, LimitSettings(cpu_util_min=10.0))
    assert "cpu_util_min" in error.value.where


def test_a_job_on_cores_alone_is_planned_without_gpus():
    log = training_log(grid=((1, 2), (1, 4), (1, 8), (1, 16))).assign(gpu_count=0)
    found = forecast(
        job_of(check_training_log(log, Path("x")), "x", 8),
        LIMITS.model_copy(update={"gpu_count_max": 0, "gpu_count_min": 0}),
        resamples=5,
    )
    assert set(found.allocations[:, 0]) == {0.0} and len(found.time) == 32


@pytest.fixture
def log(tmp_path) -> Path:
    training_log(noise=0.01).to_csv(tmp_path / "log.csv", index=False)
    return tmp_path / "log.csv"


def answer(capsys, *words: object) -> tuple[int, dict]:
    status = main(["cloud", "plan", *map(str, words), "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_command_prints_one_document_and_the_same_again(log, capsys, tmp_path):
    status, found = answer(capsys, log, "--deadline", "600", "--max", "4,16,64")
    assert status == 0 and found["feasible"] and found["reason"] is None
    keys = {"gpus", "cpu_cores", "memory_gb", "batch_size", "time_s", "cost", "probability"}
    for row in (found["plan"], found["fastest"], found["cheapest"], *found["front"]):
        assert keys <= set(row) and row["gpus"] <= 4 and row["cpu_cores"] <= 16
    assert found["plan"]["time_s"] <= 600 and found["plan"]["probability"] >= 0.9
    assert found["plan"]["batch_size"] == BATCH * found["plan"]["gpus"]
    limits = tmp_path / "limits.yaml"
    limits.write_text("time_max: 600\n")
    assert (status, found) == answer(capsys, log, "--limits", limits, "--max", "4,16,64")


def test_limits_that_nothing_meets_end_with_the_fastest_and_the_cheapest(log, capsys):
    status, found = answer(capsys, log, "--deadline", "10", "--budget", "0.01")
    assert status == 1 and not found["feasible"] and found["plan"] is None
    assert found["reason"] and found["fastest"]["time_s"] > 10 and found["cheapest"]["cost"] > 0.01


def test_the_table_and_the_picture(log, capsys, tmp_path):
    assert main(["cloud", "plan", str(log), "--budget", "2", "--picture", str(tmp_path / "plan.png")]) == 0
    assert "plan" in capsys.readouterr().out
    assert (tmp_path / "plan.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["--probability", "0"], "--probability"),
        (["--max", "0,1,1"], "--max"),
        (["--max", "8,32,4"], "--max"),
        (["--budget", "-1"], "--budget"),
        (["--epochs", "0"], "--epochs"),
        (["--picture", "plan.bmp"], "--picture"),
    ],
)
def test_wrong_options_are_named(log, words, where, capsys):
    assert main(["cloud", "plan", str(log), *words]) == 2
    assert where in capsys.readouterr().err


def test_logs_of_two_models_are_refused(log, tmp_path, capsys):
    training_log().assign(model_name="other").to_csv(tmp_path / "other.csv", index=False)
    assert main(["cloud", "plan", str(log), str(tmp_path / "other.csv")]) == 2
    assert "other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5h", 5400.0), ("2d", 172800.0), ("3M", 180.0)]
)
def test_durations(text, seconds):
    assert seconds_of(text) == seconds


HEADER = "type,gpus,gpu_kind,cores,memory_gb,price,spot_price,interruption_rate,speed"


def instances(folder: Path, *rows: str) -> Path:
    """A catalogue of instance types."""
    (folder / "instances.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return folder / "instances.csv"


def test_a_plan_among_instances_is_the_cheapest_that_keeps_the_deadline(log, capsys, tmp_path):
    types = (
        "one,1,T4,8,32,1,0.4,0.1,1",
        "four,4,T4,32,64,4,1.5,0.2,1",
        "swift,4,A100,32,64,20,8,1,4",
        "bare,0,,8,32,1,,,",
    )
    words = (log, "--instances", instances(tmp_path, *types), "--gpu-kind", "T4", "--gpus-per-node", "8")
    status, found = answer(capsys, *words, "--deadline", "400")
    held = found["plan"]
    assert status == 0 and (held["instance"], held["spot"], held["gpu_kind"], held["gpus"]) == ("four", True, "T4", 4)
    assert held["cost"] == pytest.approx(held["time_s"] / 3600 * 1.5)
    undisturbed = 5.0 + EPOCHS * epoch_seconds([4], [32])[0]
    assert undisturbed < held["time_s"] < 1.1 * undisturbed
    assert found["fastest"]["instance"] == "swift" and not found["fastest"]["spot"]  # its spot instance never lasts
    assert any("swift (spot)" in note for note in found["warnings"])
    assert any("bare" in note and "GPU" in note for note in found["warnings"])


def rented(job: Measured, catalogue: Path, **renting) -> Forecast:
    """The forecast on the offers of a catalogue, by few resamples."""
    offers, _ = offers_of(read_instances(catalogue))
    return forecast_offers(job, offers, Renting(**renting), resamples=3)[0]


def test_more_work_between_checkpoints_takes_longer_when_it_is_interrupted(tmp_path):
    job = measured()
    job = replace(job, job=replace(job.job, epochs=300))
    catalogue = instances(tmp_path, "four,4,T4,32,64,4,1.5,0.5,1")
    found = {epochs: rented(job, catalogue, checkpoint=epochs) for epochs in (1, 10, 100)}
    alone, *times = [found[1].time[0], *(each.time[1] for each in found.values())]
    assert alone < times[0] < times[1] < times[2]
    again = rented(job, catalogue, checkpoint=100)
    assert np.array_equal(again.times, found[100].times) and len(set(again.times[:, 1])) == 3


def test_logs_that_name_kinds_give_their_speeds(tmp_path):
    slow = training_log(gpu_kind="T4", grid=GRID[:10])
    held = {"nodes": 1, "gpus": slow["gpu_count"], "cores": slow["cpu_count"], "batch": slow["batch_size"]}
    steps = pd.DataFrame(held)
    took = SAMPLES / slow["batch_size"] * iteration_time(STEP, WORK, steps, 2.0)
    quick = slow.assign(gpu_kind="L4", epoch_time=took, throughput=SAMPLES / took, sample=slow["sample"] + 100)
    both = check_training_log(pd.concat([slow, quick], ignore_index=True), Path("log.csv"))
    rows = "t,1,T4,32,64,1,,,", "l,1,L4,32,64,1,,,", "p,1,P100,32,64,1,,,"
    found = rented(job_of(both, "log.csv", 8), instances(tmp_path, *rows))
    assert [offer.name for offer in found.offers] == ["t", "l"]  # nothing says how fast a P100 is
    ratio = [float(iteration_time(STEP, WORK, steps.iloc[[12]], speed)[0]) for speed in (1.0, 2.0)]
    assert found.time[0] / found.time[1] == pytest.approx(ratio[0] / ratio[1], rel=0.1)


def test_logs_of_which_kind_are_refused_where_it_matters(tmp_path, capsys):
    names = {}
    for kind in ("T4", "L4", None):
        names[kind] = str(tmp_path / f"{kind}.csv")
        training_log(grid=GRID[:3], **({"gpu_kind": kind} if kind else {})).to_csv(names[kind], index=False)
    assert main(["cloud", "plan", names["T4"], names["L4"]]) == 2  # GPUs of which kind?
    assert "L4, T4" in capsys.readouterr().err
    assert main(["cloud", "plan", names["T4"], names[None]]) == 2
    assert "gpu_kind" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["--region", "north"], "--gpu-kind"),
        (["--region", "north", "--gpu-kind", "T4", "--max", "1,1,1"], "--max"),
        (["--region", "north", "--gpu-kind", "T4", "--interruption-rate", "2"], "--interruption-rate"),
        (["--region", "north", "--gpu-kind", "P100"], "--instances"),
        (["--region", "northern"], "north"),
    ],
)
def test_wrong_options_for_instances_are_named(log, words, where, capsys):
    sample = find_resource("resources/instances/sample.csv")
    assert main(["cloud", "plan", str(log), "--instances", str(sample), *words]) == 2
    assert where in capsys.readouterr().err
