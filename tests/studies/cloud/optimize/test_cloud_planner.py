"""Planning a live training: limits decide where it begins, and what is left of them where it goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from live_scripts import plain_script, quick_settings

from schedlab.cli.main import main
from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.baseline import combined
from schedlab.studies.cloud.live.model import job_facts
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.optimize.flow import bill_of, loss_warnings
from schedlab.studies.cloud.optimize.plan import plan
from schedlab.studies.cloud.optimize.planner import Aim, Measurements, begin, live_forecast, objectives, onward, rest
from schedlab.studies.cloud.optimize.settings import LimitSettings

MACHINE = ResourceConfig(gpu_count_max=0, gpu_count_min=0, cpu_count_max=16, memory_max=32, memory_min=1)
EVEN = {"cost": 0.33, "time": 0.33, "resource": 0.34}


def measured_log() -> pd.DataFrame:
    """Two epochs each on 1, 2, 4, 8 and 16 cores: 1000 samples at 100/s on a core, a fifth of the work in series."""
    rows = []
    for cores in (1, 2, 4, 8, 16):
        seconds = 10.0 * (0.2 + 0.8 / cores)
        row = {"gpu_count": 0, "cpu_count": cores, "memory_gb": 32, "batch_size": 10, "data_count": 1000}
        row |= {"epoch_time": seconds, "throughput": 1000 / seconds, "cpu_percent": 50.0, "memory_used_gb": 2.0}
        rows.append(pd.DataFrame([{"epoch": epoch, "model_name": "net", **row} for epoch in (1, 2)]))
    return combined(rows)


@pytest.fixture(scope="module")
def job():
    """Measurements, model, facts and forecast of 10 epochs on up to 16 cores, with a start of 3 s."""
    known = Measurements(measured_log(), [3.0] * 5, Path("measured.csv"), False, 4)
    fit = known.fitted()
    facts = job_facts(known.table, known.overheads, False, fit)
    return fit, facts, live_forecast(known, fit, facts, MACHINE, 10, 0)


def aim(found, weights=EVEN, **limits) -> Aim:
    return Aim(weights, float(found.time.min()), float(found.cost.min()), LimitSettings(**limits), 0.9)


def test_the_forecast_is_the_model_of_the_measurements(job):
    _, _, found = job
    cores = found.allocations[:, 1].tolist()
    assert cores == list(range(1, 17)) and set(found.allocations[:, 2]) == {3.0}, "2 GB and a fifth more, whole GB"
    for count in (1, 4, 16):
        assert found.time[count - 1] == pytest.approx(3 + 100 * (0.2 + 0.8 / count), rel=0.02)
    assert found.cost == pytest.approx(found.time * (found.allocations[:, 1] * 0.1 + 3 * 0.02) / 3600)


def test_without_limits_it_begins_on_the_lowest_objective(job):
    _, _, found = job
    for weights in (EVEN, {"cost": 0, "time": 1, "resource": 0}, {"cost": 1, "time": 0, "resource": 0}):
        start, _ = begin(found, aim(found, weights))
        value = objectives(found, aim(found, weights), 10)
        assert start == Allocation(0, int(value.argmin()) + 1, 3)


def test_a_limit_moves_the_start_to_the_cheapest_that_keeps_it(job):
    _, _, found = job
    cheap = {"cost": 1, "time": 0, "resource": 0}
    free, _ = begin(found, aim(found, cheap))
    start, planned = begin(found, aim(found, cheap, time_max=45.0))
    assert free.cpu_count == int(found.cost.argmin()) + 1 and found.time[free.cpu_count - 1] > 45.0
    allowed = np.flatnonzero(planned.likely >= 0.9)
    assert start.cpu_count == allowed[found.cost[allowed].argmin()] + 1 and found.time[start.cpu_count - 1] <= 45.0
    fast = {"cost": 0, "time": 1, "resource": 0}
    most = float(found.cost[7])
    start, _ = begin(found, aim(found, fast, cost_max=most))
    assert found.cost[start.cpu_count - 1] <= most and free.cpu_count < start.cpu_count < 16


def test_impossible_limits_are_named_with_the_fastest_and_the_cheapest(job):
    _, _, found = job
    with pytest.raises(UserError) as caught:
        begin(found, aim(found, time_max=10.0, cost_max=0.001))
    text = str(caught.value)
    assert f"{found.time.min():.1f} s" in text and "$" in text and caught.value.remedy


def test_the_rest_counts_only_what_is_left_and_a_start_elsewhere(job):
    fit, facts, found = job
    held = Allocation(0, 4, 3)
    left, aim_left = rest(found, fit, facts, held, 5, (20.0, 0.01), aim(found, time_max=45.0, cost_max=0.05))
    start = facts.overhead
    assert left.time[3] == pytest.approx((found.time[3] - start) / 2)
    assert left.time[7] == pytest.approx((found.time[7] - start) / 2 + start)
    assert aim_left.limits.time_max == 25.0 and aim_left.limits.cost_max == pytest.approx(0.04)


def test_the_start_elsewhere_does_not_count_against_a_throughput(job):
    fit, facts, found = job
    slow, held = replace(facts, overhead=1e4), Allocation(0, 4, 3)
    enough = aim(found, throughput_min=0.99 * float(found.throughput[7]))
    left, of_left = rest(found, fit, slow, held, 1, (20.0, 0.01), enough)
    likely = plan(left, of_left.limits, 0.9).likely
    assert left.throughput == pytest.approx(found.throughput)
    assert (likely[7:] == 1.0).all() and (likely[:7] == 0.0).all()


def test_it_moves_where_that_pays_and_stays_where_it_does_not(job):
    fit, facts, found = job
    fast = {"cost": 0, "time": 1, "resource": 0}
    held = Allocation(0, 1, 3)
    left, of_left = rest(found, fit, facts, held, 9, (10.0, 0.0), aim(found, fast))
    moved = onward(left, of_left, held, 10, 0.0)
    assert moved == Allocation(0, int(left.time.argmin()) + 1, 3)
    assert onward(left, of_left, held, 10, 0.99) == held, "the gain is within the model's error"
    slow = replace(facts, overhead=1e4)
    left, of_left = rest(found, fit, slow, held, 9, (10.0, 0.0), aim(found, fast))
    assert onward(left, of_left, held, 10, 0.0) == held, "the restart costs more than it saves"


def test_a_limit_that_staying_breaks_moves_it_and_one_that_nothing_keeps_does_not(job):
    fit, facts, found = job
    cheap, held = {"cost": 1, "time": 0, "resource": 0}, Allocation(0, 1, 3)
    left, of_left = rest(found, fit, facts, held, 5, (50.0, 0.0), aim(found, cheap, time_max=80.0))
    moved = onward(left, of_left, held, 10, 0.5)
    assert moved != held and left.time[moved.cpu_count - 1] <= 30.0
    left, of_left = rest(found, fit, facts, held, 5, (79.0, 0.0), aim(found, cheap, time_max=80.0))
    assert onward(left, of_left, held, 10, 0.0) == held


def test_the_bill_counts_measuring():
    base = {"time": 100.0, "cost": 0.04}
    spent = {"seconds": 160.0, "cost": 0.03, "reused": {"seconds": 100.0, "cost": 0.017}}
    bill = bill_of(base, spent, {"seconds": 80.0, "cost": 0.011}, 3.0)
    assert bill["saved_by_run"] == pytest.approx(0.029) and bill["saved_after_measuring"] == pytest.approx(-0.018)
    assert bill["break_even_runs"] == 2
    assert bill_of(base, spent, {"seconds": 80.0, "cost": 0.05}, 3.0)["break_even_runs"] is None


@pytest.mark.parametrize(
    ("losses", "named"),
    [
        ([2.0, 1.0], []),
        ([1.0, 2.0], ["train_loss"]),
        ([1.0, float("nan")], ["train_loss"]),
        ([float("inf")], ["train_loss"]),
    ],
)
def test_a_loss_that_grows_or_is_no_number_is_reported(losses, named):
    tables = [pd.DataFrame({"epoch": [1], "train_loss": [loss]}) for loss in losses]
    assert [text.split()[0] for text in loss_warnings(tables)] == named


@pytest.fixture(scope="module")
def planned(tmp_path_factory) -> Path:
    """The folder of a training that the plan ran, with a limit on cost."""
    folder = tmp_path_factory.mktemp("planned")
    command = ["cloud", "optimize", "--training_file", str(plain_script(folder)), "--output_dir", str(folder / "out")]
    command += [
        "--config",
        str(quick_settings(folder, rl={})),
        "--cost_max",
        "2",
        "--learner",
        "plan",
        "--interval",
        "2",
    ]
    assert main(command) == 0
    return folder


def test_the_plan_runs_without_a_policy_and_is_billed(planned):
    values = json.loads((planned / "out/report.json").read_text())
    assert values["policy"]["learner"] == "plan" and values["policy"]["probability"] == 1.0
    assert values["uncertainty"]["mean"] is None and not (planned / "out/policy.zip").exists()
    bill = values["bill"]
    whole_machine = values["baseline"]["cost"] / values["baseline"]["time"]  # $ of a second
    measuring = bill["measuring"]
    assert 0 < measuring["cost"] < measuring["seconds"] * whole_machine, "one probe held fewer cores"
    assert measuring["seconds"] > values["model"]["start_up_seconds"], "several runs, each with its start"
    assert bill["run"]["seconds"] >= values["optimized"]["time"], "starts of every interval are in it"
    history = pd.read_csv(planned / "out/allocation_history.csv")
    start = values["policy"]["start"]
    run = history[history["episode"] == 1]
    assert run[["gpu_count", "cpu_count", "memory_gb"]].iloc[0].tolist() == [start[name] for name in Allocation._fields]
    assert run["epoch"].tolist() == [2, 4]


@pytest.mark.parametrize("option", ["--time_max", "--cost_max"])
def test_impossible_limits_end_before_the_training(tmp_path, capsys, option):
    out = tmp_path / "out"
    command = ["cloud", "optimize", "--training_file", str(plain_script(tmp_path)), "--output_dir", str(out)]
    command += ["--config", str(quick_settings(tmp_path, rl={}, baseline_samples=1)), option, "1e-9"]
    assert main(command) == 2
    assert "fastest" in capsys.readouterr().err and not list(out.glob("work/*/runs/live*"))


def test_a_dry_run_and_the_plan_of_a_command_measure_and_print_the_plan(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = plain_script(tmp_path)
    config = quick_settings(tmp_path, rl={}, baseline_samples=1)
    assert main(["cloud", "optimize", "--training_file", str(path), "--config", str(config), "--dry_run"]) == 0
    assert "cheapest" in capsys.readouterr().out and not list(tmp_path.glob("cloud-optimize/report*"))
    # The training itself takes what the dry run has measured.
    assert main(["cloud", "optimize", "--training_file", str(path), "--config", str(config)]) == 0
    measuring = json.loads((tmp_path / "cloud-optimize/report.json").read_text())["bill"]["measuring"]
    assert measuring["cost"] == 0 and measuring["reused"]["from"] == ["001"] and measuring["reused"]["cost"] > 0
    assert "of earlier calls (001) were reused" in capsys.readouterr().out
    assert not list(tmp_path.glob("cloud-optimize/work/002/runs/baseline*"))
    command = ["--epochs", "4", "--deadline", "1h", "--json", "--", "python", str(path)]
    assert main(["cloud", "plan", *command]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["feasible"] and values["plan"]["time_s"] < 3600 and values["job"]["epochs"] == 4
    assert main(["cloud", "plan", "--", "python", str(path)]) == 2
    assert "--epochs" in capsys.readouterr().err


def test_money_for_measuring_alone_is_too_little(tmp_path, capsys):
    command = [
        "cloud",
        "optimize",
        "--training_file",
        str(plain_script(tmp_path)),
        "--output_dir",
        str(tmp_path / "out"),
    ]
    command += ["--config", str(quick_settings(tmp_path, rl={}, baseline_samples=1)), "--max_spend", "1e-9"]
    assert main(command) == 2
    assert "--max_spend" in capsys.readouterr().err
