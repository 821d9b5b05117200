"""The model of a real job: what goes by cores is fitted, GPUs may be absent, and the sweep that measures it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from live_scripts import logging_script, plain_script, script
from prepared_jobs import model_of

from schedlab.cli.main import main
from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.cloud import prepare
from schedlab.studies.cloud.example import EXAMPLE
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner
from schedlab.studies.cloud.live.baseline import baseline_values, combined, measure, pace, probe_allocations
from schedlab.studies.cloud.live.env import LiveJob
from schedlab.studies.cloud.live.learn import learn
from schedlab.studies.cloud.live.model import JobFacts, anchored, constant_totals, job_facts, live_replay
from schedlab.studies.cloud.live.process import available_cpus
from schedlab.studies.cloud.live.run import LiveRequest, LiveRun
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.fit_cores import CoreFit, core_times, fit_cores, fit_table, iteration_time, on_cpu
from schedlab.studies.cloud.model.fit_report import fit_report
from schedlab.studies.cloud.model.step_time import StepParameters, gradient_time
from schedlab.studies.cloud.optimize.tables import pareto_table
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.sla import SLAConfig
from schedlab.studies.cloud.replay.state import COMPONENTS
from schedlab.studies.cloud.rules.oracle import best_plan, objective_of_staying
from schedlab.studies.cloud.scenario import CloudScenario

CPU, GPU = on_cpu(0.004, 2e-5), StepParameters(0.02, 7e-4, 0.12, 2.6e-3, 0.03, 9e-4, 2.0)
LIMITS = ResourceConfig(
    gpu_count_max=0, gpu_count_min=0, cpu_count_max=16, memory_max=32, cost_per_cpu_hour=0.1, cost_per_gb_hour=0.02
)
SLA = SLAConfig(time_max=100.0, cost_max=0.01, throughput_min=1.0)


def training_log(
    step: StepParameters, work: float, gpus=(0,), cores=(1, 2, 4, 8), batches=(32, 64, 128), noise: float = 0.0
) -> pd.DataFrame:
    """Epochs of 6400 samples as the model has them; the first of each run takes twice as long."""
    rng, rows = np.random.default_rng(0), []
    for gpu in gpus:
        for core in cores:
            for batch in batches:
                at = pd.DataFrame({"nodes": [1], "gpus": [gpu], "cores": [core], "batch": [float(batch * max(1, gpu))]})
                took = (
                    float(iteration_time(step, work, at)[0])
                    * 6400
                    / at["batch"][0]
                    * float(np.exp(noise * rng.standard_normal()))
                )
                for epoch, factor in ((1, 2.0), (2, 1.0)):
                    row = {
                        "epoch": epoch,
                        "batch_size": at["batch"][0],
                        "gpu_count": gpu,
                        "cpu_count": core,
                        "epoch_time": took * factor,
                    }
                    use = {
                        "cpu_percent": 80.0,
                        "memory_used_gb": 1.5,
                        "memory_gb": 32,
                        "model_name": "m",
                        "data_count": 6400,
                    }
                    computing = float(gradient_time(step, batch)) / float(iteration_time(step, work, at)[0])
                    busy = {f"gpu_utilization_{n}": 100.0 * computing for n in range(gpu)}
                    rows.append({**row, "throughput": 6400 / took / factor, **use, **busy})
    return pd.DataFrame(rows)


def test_a_job_on_cores_is_fitted_exactly_and_with_noise_nearly(tmp_path):
    found = fit_table(training_log(CPU, 4e-4), tmp_path / "log.csv")
    assert found.median_error < 0.005 and found.settings == 12
    assert found.core_seconds == pytest.approx(4e-4, rel=0.05)
    assert fit_table(training_log(CPU, 4e-4, noise=0.05), tmp_path / "log.csv").median_error < 0.08


def test_with_gpus_the_work_of_cores_is_fitted_beside_their_step():
    table = training_log(GPU, 2e-3, gpus=(1, 2, 4))
    rows = core_times(table.assign(run=(table["epoch"].diff().fillna(1) <= 0).cumsum()))
    found = fit_cores(rows, GPU)
    assert found.core_seconds == pytest.approx(2e-3, rel=1e-3) and found.largest_error < 1e-3
    with pytest.raises(UserError):
        fit_cores(rows)


def test_a_log_of_gpus_with_several_numbers_of_cores_tells_both_parts(tmp_path):
    """Steps that waited for few cores are no steps of the GPUs."""
    table = training_log(GPU, 2e-3, gpus=(1, 2, 4), cores=(1, 4, 64))
    found = fit_table(table, tmp_path / "log.csv")
    assert found.core_seconds == pytest.approx(2e-3, rel=0.05) and found.median_error < 0.02
    assert found.step.b_c == pytest.approx(GPU.b_c, rel=0.1)


def fitted_job(folder, instances=None, **job) -> tuple[CloudScenario, dict]:
    """The example's scenario with a job of its own, and the model that is fitted to its logs."""
    values = {**EXAMPLE, "job": {"name": "own", "step": None, **job}, "instances": instances}
    scenario = validate(CloudScenario, values)
    return scenario, json.loads(model_of(scenario, folder).read_text())


def test_a_sweep_on_gpus_is_a_job_of_a_scenario_whose_cores_it_tells(tmp_path):
    table, log = training_log(GPU, 2e-3, gpus=(1, 2, 4), cores=(1, 4, 64)), tmp_path / "sweep.csv"
    table.to_csv(log, index=False)
    scenario, model = fitted_job(tmp_path, logs=[str(log)])
    assert model["cores"]["core_seconds"] == pytest.approx(2e-3, rel=0.05) and model["left_out"]["placements"] == 3
    problem = prepare.load_problem(
        prepare.problem_values(scenario), {"model": tmp_path / "model.json", "oracle": oracle(tmp_path)}
    )
    assert problem.scenario.job.pipeline.core_seconds == model["cores"]["core_seconds"]
    table[table["cpu_count"] == 64].to_csv(log, index=False)
    scenario, model = fitted_job(tmp_path, logs=[str(log)])
    assert "cores" not in model  # nothing tells cores from GPUs
    assert prepare.with_fitted_cores(scenario, tmp_path / "model.json") == scenario


def test_the_speeds_of_gpu_kinds_in_logs_are_those_of_the_instances(tmp_path):
    swift = replace(GPU, a_c=GPU.a_c / 3.0, b_c=GPU.b_c / 3.0)
    logs = [
        training_log(step, 1e-6, gpus=(1, 2, 4)).assign(gpu_kind=kind) for kind, step in (("T4", GPU), ("L4", swift))
    ]
    pd.concat(logs).to_csv(tmp_path / "log.csv", index=False)
    header = "type,gpus,gpu_kind,cores,memory_gb,price,spot_price,interruption_rate"
    (tmp_path / "types.csv").write_text(f"{header}\nt,1,T4,64,64,1,,\nl,1,L4,64,64,2,,\n")
    scenario, model = fitted_job(tmp_path, {"file": str(tmp_path / "types.csv")}, logs=[str(tmp_path / "log.csv")])
    speeds = model["gpu_speeds"]
    assert speeds["L4"] / speeds["T4"] == pytest.approx(3.0, rel=0.02)
    steps = pd.concat(logs)[["gpu_kind", "gpu_count", "batch_size"]]
    assert model["settings"] == len(steps.drop_duplicates()) > model["free_parameters"]
    values = prepare.problem_values(scenario)
    assert values["instances"]["file"] is None and len(values["instances"]["types"]) == 2
    problem = prepare.load_problem(values, {"model": tmp_path / "model.json", "oracle": oracle(tmp_path)})
    slow, quick = problem.replay.performance.throughput
    assert quick / slow == pytest.approx(3.0, rel=0.05)


def oracle(folder) -> Path:
    (folder / "oracle.json").write_text('{"preferences": {}}')
    return folder / "oracle.json"


def test_logs_without_gpus_or_of_several_models_are_no_job_of_a_scenario(tmp_path):
    training_log(CPU, 4e-4).to_csv(tmp_path / "cores.csv", index=False)
    with pytest.raises(UserError, match=r"cores\.csv"):
        fitted_job(tmp_path, logs=[str(tmp_path / "cores.csv")])
    both = pd.concat([training_log(GPU, 2e-3, gpus=(1, 2)).assign(model_name=name) for name in ("one", "two")])
    both.to_csv(tmp_path / "both.csv", index=False)
    with pytest.raises(UserError, match=r"both\.csv.* one, two"):
        fitted_job(tmp_path, logs=[str(tmp_path / "both.csv")])


def test_cloud_fit_reads_logs_of_a_cpu(tmp_path):
    training_log(CPU, 4e-4).to_csv(tmp_path / "log.csv", index=False)
    report = fit_report([tmp_path / "log.csv"])
    assert set(report["parameters"]) == {"a_c", "b_c", "core_seconds"} and report["settings"] == 12
    assert report["median_relative_error"] < 0.005


def facts(**changed) -> JobFacts:
    return JobFacts(**{"samples": 6400, "batch": 64, "per_gpu": False, "memory_used": 5.0, "overhead": 3.0, **changed})


def plan(**changed) -> LiveJob:
    values = {
        "epochs": 10,
        "interval": 3,
        "start": LIMITS.most,
        "resource": LIMITS,
        "sla": SLA,
        "gpus_per_node": 8,
        "seed": 0,
    }
    return LiveJob(Path("train.py"), **{**values, **changed})


@pytest.fixture(scope="module")
def fitted():
    return fit_table(training_log(CPU, 4e-4), Path("log.csv"))


def test_the_layout_holds_what_the_model_says(fitted):
    replay = live_replay(fitted, facts(), plan(), "cost")
    assert replay.intervals == 4 and np.isfinite(replay.seconds).all()
    grid = replay.lattice
    number = grid.number(Allocation(0, 1, 8))
    at = pd.DataFrame({"nodes": [1], "gpus": [0], "cores": [1], "batch": [64.0]})
    an_epoch = float(iteration_time(fitted.step, fitted.core_seconds, at)[0]) * 100
    assert replay.seconds[:, number].tolist() == pytest.approx([3 * an_epoch] * 3 + [an_epoch])
    assert constant_totals(replay)[0][number] == pytest.approx(10 * an_epoch + 3.0)
    assert not replay.fits[grid.number(Allocation(0, 1, 4))] and replay.fits[number]
    everywhere = live_replay(fitted, facts(memory_used=100.0), plan(), "cost")
    assert everywhere.fits.all()


def test_an_episode_pays_for_one_start_whether_or_not_it_changes_at_once(fitted):
    replay = live_replay(fitted, facts(), plan(interval=10), "cost")
    times = []
    for action in (13, 9):  # keep; fewer cores and less memory
        env = CloudReplayEnv(replay, "cost")
        env.reset(seed=0)
        env.step(action)
        times.append(env.time)
        assert env.time == pytest.approx(constant_totals(replay)[0][env.here])
    assert times[1] > times[0]


def test_without_gpus_their_item_is_met_and_the_state_is_finite(fitted):
    env = CloudReplayEnv(live_replay(fitted, facts(), plan(), "time"), "time")
    env.reset(seed=0)
    observation = env.step(13)[0]
    assert env.observation_space.contains(observation) and observation[COMPONENTS.index("gpu_util_met")] == 1


def test_what_is_learned_is_near_the_best_plan_and_changes_the_allocation(fitted, tmp_path):
    replay = live_replay(fitted, facts(overhead=0.05), plan(), "cost")
    rl = {"learner": "reinforce", "episodes": 3200, "params": {"hidden": 32, "learning_rate": 0.01}, "seed": 0}
    learned = learn(replay, "cost", rl, tmp_path)
    weights = {"cost": 0.6, "time": 0.2, "resource": 0.2}
    start, best = replay.lattice.start, float(best_plan(replay, weights).values[0, replay.lattice.start])
    stay = float(objective_of_staying(replay, weights)[start])
    assert learned.best == best < stay
    assert best - 1e-9 <= learned.objective < best + 0.35 * (stay - best)
    assert {taken.action for taken in learned.course} != {13}
    assert (
        all(0 <= taken.uncertainty < 1 for taken in learned.course)
        and max(taken.uncertainty for taken in learned.course) > 0
    )
    again = learn(replay, "cost", rl, tmp_path / "again")
    assert [taken.action for taken in again.course] == [taken.action for taken in learned.course]
    assert [taken.uncertainty for taken in again.course] == [taken.uncertainty for taken in learned.course]


def test_stock_learners_have_as_many_decisions_as_the_episodes_have(fitted, tmp_path, monkeypatch):
    phases = []

    class Seen(ReinforceLearner):
        def learn(self, problems, spec, *rest):
            phases.append(spec.train_on[0].steps)
            super().learn(problems, replace(spec, train_on=(Phase(spec.train_on[0].scenarios, 64),)), *rest)

    monkeypatch.setattr("schedlab.studies.cloud.live.learn.load_object", lambda name: Seen)
    replay = live_replay(fitted, facts(), plan(), "cost")
    for learner in ("ppo", "reinforce"):
        learn(
            replay,
            "cost",
            {"learner": learner, "episodes": 100, "params": {"hidden": 8, "warm_start": 0}, "seed": 0},
            tmp_path / learner,
        )
    assert replay.intervals == 4 and phases == [400, 100]


def test_measured_use_of_cores_scales_the_models(fitted):
    table = training_log(CPU, 4e-4, cores=(4,), batches=(64,)).assign(sample=1)
    low, high = (job_facts(table.assign(cpu_percent=use), [1.0, 3.0, 2.0], False, fitted) for use in (20.0, 40.0))
    assert high.cpu_share == pytest.approx(2 * low.cpu_share) and low.overhead == 2.0
    assert (low.samples, low.batch, low.memory_used) == (6400, 64, 1.5)
    blank = table.assign(data_count=[6400, None])
    assert (
        job_facts(blank, [1.0], False, fitted).samples
        == job_facts(table.drop(columns="data_count"), [1.0], False, fitted).samples
        == 6400
    )


def test_cores_that_make_it_slower_are_avoided(fitted, tmp_path):
    """Where other work shares the machine; the form of the model has no place for it, so that its speed is
    corrected."""
    table = training_log(CPU, 4e-4, cores=(1, 16), batches=(64,)).assign(sample=[1, 1, 2, 2])
    slow = table["cpu_count"] == 16
    table.loc[slow, "epoch_time"], table.loc[slow, "throughput"] = table["epoch_time"] * 20, table["throughput"] / 20
    crowded = fit_table(table, tmp_path / "log.csv")
    measured = job_facts(table, [0.01], False, crowded)
    replay = live_replay(crowded, measured, plan(start=LIMITS.most), "balanced")
    seconds = [float(replay.seconds[1, replay.lattice.number(Allocation(0, cores, 32))]) for cores in (1, 4, 16)]
    per_epoch = table[table["epoch"] == 2].groupby("cpu_count")["epoch_time"].mean()
    assert seconds[0] == pytest.approx(3 * per_epoch[1]) and seconds[2] == pytest.approx(3 * per_epoch[16])
    assert seconds[0] < seconds[1] < seconds[2]
    assert fitted.median_error < crowded.median_error


def test_probes_are_where_they_tell_most():
    machine = ResourceConfig(gpu_count_max=4, gpu_count_min=1, cpu_count_max=16, memory_max=64)
    assert probe_allocations(machine) == [(4, 16, 64), (1, 16, 64), (2, 16, 64), (1, 1, 64), (1, 8, 64)]
    assert probe_allocations(LIMITS) == [(0, 16, 32), (0, 1, 32), (0, 8, 32)]


@pytest.mark.parametrize(("samples", "epochs", "runs"), [(2, 2, 6), (2, 1, 7), (0, 2, 5)])
def test_probes_have_the_baselines_batch_on_each_gpu(tmp_path, samples, epochs, runs):
    machine = ResourceConfig(gpu_count_max=4, gpu_count_min=1, cpu_count_max=16, memory_max=64)
    asked = []

    def measured(request, folder):
        asked.append((request.allocation.gpu_count, request.batch))
        use = {"cpu_percent": 80.0, "memory_used_gb": 1.5, "throughput": 6400.0, "epoch_time": 1.0, "data_count": 6400}
        rows = [
            {"epoch": number + 1, "batch_size": request.batch or 256, **request.allocation._asdict(), **use}
            for number in range(2)
        ]
        return LiveRun(request, "done", pd.DataFrame(rows), 2.0, 0.0, None, "", folder)

    request = LiveRequest(tmp_path / "train.py", machine.most, epochs=10, prices=machine)
    found = [run for kind in measure(request, samples, epochs, True, tmp_path / "runs", measured) for run in kind]
    assert len(found) == len(asked) == runs
    assert set(asked) == {(4, None), (1, 64), (2, 128)}
    table = combined([run.table for run in found])
    job = job_facts(table, [0.0], True, CoreFit(GPU, 1e-3, 5, 0.0, 0.0))
    assert job.batch == 64 and job.per_gpu
    deaf = job_facts(
        table.assign(batch_size=256), [0.0], True, CoreFit(GPU, 1e-3, 5, 0.0, 0.0)
    )  # a script that keeps its batch
    assert deaf.batch == 64


def measured_run(times: tuple[float, ...], overhead: float, allocation: Allocation = LIMITS.most) -> LiveRun:
    """A run of 6400 samples an epoch whose epochs took these times, s."""
    use = {"cpu_percent": 80.0, "memory_used_gb": 1.5, "data_count": 6400, "batch_size": 64, **allocation._asdict()}
    rows = [
        {"epoch": number + 1, "epoch_time": took, "throughput": 6400 / took, **use} for number, took in enumerate(times)
    ]
    request = LiveRequest(Path("train.py"), allocation, epochs=len(times), prices=LIMITS)
    return LiveRun(request, "done", pd.DataFrame(rows), sum(times) + overhead, overhead, None, "", Path("none"))


def test_a_baseline_is_extrapolated_by_its_later_epochs():
    samples = [measured_run((0.3, 0.1, 0.2), 1.0), measured_run((0.5, 0.1, 0.1), 3.0)]
    found = baseline_values(samples, 10)
    assert found["start_up_seconds"] == pytest.approx(2.0 + 0.4 - 0.125) and found["epoch_seconds"] == pytest.approx(
        0.125
    )
    assert found["time"] == pytest.approx(2.0 + 0.4 + 9 * 0.125)
    assert found["time_by_ratio"] == pytest.approx((0.6 + 0.7) / 2 * 10 / 3)
    assert found["cost"] == pytest.approx(found["time"] * LIMITS.hourly_price(*LIMITS.most) / 3600)


def test_samples_of_one_epoch_take_their_later_ones_from_the_probe_beside_them():
    """The first epoch warms up: six of them would make every other allocation look better than the baseline."""
    samples, probe = [measured_run((0.4,), 2.0)] * 4, measured_run((0.4, 0.1), 2.0)
    assert baseline_values(samples, 6, [probe])["time"] == pytest.approx(2.0 + 0.4 + 5 * 0.1)
    assert baseline_values(samples, 6, [probe])["throughput"] == pytest.approx(64_000)
    assert baseline_values(samples, 6)["time"] == pytest.approx(2.0 + 6 * 0.4)


def test_the_model_says_of_the_baselines_allocation_what_the_baseline_says(fitted):
    """Else the two differ by how they were told: another start, a first epoch that warms up, a fit that misses."""
    samples = [measured_run((0.9, 0.4, 0.5), 3.0), measured_run((0.8, 0.3, 0.4), 2.0)]
    base = baseline_values(samples, 10)
    job = anchored(facts(overhead=7.0, samples=6400, memory_used=1.5), fitted, LIMITS.most, pace(samples), 8)
    replay = live_replay(fitted, job, plan(), "cost")
    number = replay.lattice.number(LIMITS.most)
    time, cost = (values[number] for values in constant_totals(replay))
    assert (time, cost) == (pytest.approx(base["time"]), pytest.approx(base["cost"])) and job.overhead == base[
        "start_up_seconds"
    ]


def test_the_model_of_a_job_on_gpus_is_anchored_to_the_whole_machine_and_keeps_what_sets_allocations_apart(tmp_path):
    machine = ResourceConfig(gpu_count_max=4, gpu_count_min=1, cpu_count_max=16, memory_max=64)
    fit = fit_table(training_log(GPU, 2e-3, gpus=(1, 2, 4), cores=(1, 8, 16)), tmp_path / "log.csv")
    samples = [measured_run((0.9, 0.4), 3.0, machine.most)]
    plain = facts(per_gpu=True, memory_used=1.5)
    job = anchored(plain, fit, machine.most, pace(samples), 8)
    replays = [live_replay(fit, each, plan(resource=machine, start=machine.most), "time") for each in (plain, job)]
    seconds = [replay.seconds[1] for replay in replays]  # of an interval of three epochs that no start is in
    assert seconds[1][replays[1].lattice.start] == pytest.approx(3 * 0.4)
    assert (seconds[0] / seconds[1]).tolist() == pytest.approx([job.anchor] * len(seconds[0]))


def test_a_sweep_measures_a_grid_and_fits_it(tmp_path, capsys):
    path, out = plain_script(tmp_path), tmp_path / "sweep.csv"
    cores = ",".join(map(str, range(1, min(2, len(available_cpus())) + 1)))
    command = [
        "cloud",
        "sweep",
        "--training_file",
        str(path),
        "--output",
        str(out),
        "--cores",
        cores,
        "--batches",
        "32,128",
        "--json",
    ]
    assert main(command) == 0
    report, table = json.loads(capsys.readouterr().out), pd.read_csv(out)
    settings = table[["cpu_count", "batch_size"]].drop_duplicates()
    assert len(settings) == report["settings"] == 2 * len(cores.split(",")) and set(table["batch_size"]) == {32, 128}
    assert set(report["parameters"]) == {"a_c", "b_c", "core_seconds"} and 0 <= report["median_relative_error"] < 1
    assert main(["cloud", "fit", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == report
    assert sorted(each.name for each in tmp_path.iterdir()) == ["plain.py", "sweep-runs", "sweep.csv"]


def test_points_of_a_sweep_that_a_script_makes_alike_are_measurements_of_one_setting(tmp_path, capsys):
    """Its own batch stands in the script, so that runs of one epoch differ in nothing else."""
    path = script(tmp_path, logging_script("epoch,epoch_time,throughput,batch_size\n1,0.5,100,10\n"))
    command = ["cloud", "sweep", "--training_file", str(path), "--output", str(tmp_path / "sweep.csv"), "--cores", "1"]
    assert main([*command, "--epochs", "1", "--batches", "64,128", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["settings"]) == (2, 1)
    assert pd.read_csv(tmp_path / "sweep.csv")["sample"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--batches", "64,0"], "--batches"),
        (["--time_limit", "nan"], "--time_limit"),
        (["--cores", "4096"], "--cores"),
        (["--gpus", "64"], "--gpus"),
        (["--epochs", "0"], "--epochs"),
        (["--memory", "0"], "--memory"),
    ],
)
def test_a_grid_beyond_the_machine_is_refused(tmp_path, capsys, options, told):
    command = [
        "cloud",
        "sweep",
        "--training_file",
        str(plain_script(tmp_path)),
        "--output",
        str(tmp_path / "out.csv"),
        *options,
    ]
    assert main(command) == 2
    assert told in capsys.readouterr().err and not (tmp_path / "out.csv").exists()


def test_a_sweep_of_a_script_that_never_ends_fails_with_status_1(tmp_path, capsys):
    path = script(tmp_path, "import time; time.sleep(600)")
    command = [
        "cloud",
        "sweep",
        "--training_file",
        str(path),
        "--output",
        str(tmp_path / "out.csv"),
        "--time_limit",
        "1",
        "--cores",
        "1",
    ]
    assert main(command) == 1
    assert "error: " in capsys.readouterr().err


def test_a_sweep_of_a_script_whose_log_has_no_rows_fails_with_status_1(tmp_path, capsys):
    path = script(tmp_path, logging_script("epoch,batch_size,epoch_time,throughput\n"))
    assert (
        main(["cloud", "sweep", "--training_file", str(path), "--output", str(tmp_path / "out.csv"), "--cores", "1"])
        == 1
    )
    assert "log.csv" in capsys.readouterr().err and not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("preference", ["time", "cost", "balanced", "0.8:0.1:0.1"])
def test_the_front_names_whose_best_a_row_is_by_the_times_of_its_rows(fitted, preference):
    """From the first start on, as they are: the way to an allocation, which was part of it, may take the whole of a
    short training.
    """
    replay = live_replay(fitted, facts(memory_used=1.5, overhead=30.0), plan(), preference)
    time, cost = constant_totals(replay)
    weights, waste = weights_of(preference), replay.constant()[2]
    objective = (
        weights["time"] * time / replay.time_ref
        + weights["cost"] * cost / replay.cost_ref
        + weights["resource"] * waste
    )
    best = replay.lattice.allocations[objective.argmin()].tolist()
    table = pareto_table(replay, preference)
    named = table[[preference in names.split() for names in table["preference"]]]
    on_front = table[(table[list(Allocation._fields)] == best).all(axis=1)]
    assert named.index.tolist() == on_front.index.tolist() and len(named) <= 1
    assert preference == "balanced" or len(named) == 1
