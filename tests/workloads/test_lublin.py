"""The Lublin-Feitelson model: moments of the authors' program, the plain statement of its arrivals, estimates, loads,
determinism.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from schedlab.config.errors import UserError, UserErrors
from schedlab.config.schema import validate
from schedlab.workloads.estimates import EstimateSettings, estimates
from schedlab.workloads.lublin import BUCKETS, LublinSettings, arrival_times, day_weights, lublin
from schedlab.workloads.statistics import arrivals, is_power_of_two
from schedlab.workloads.trace import COLUMNS

SAMPLES, OURS, JOBS = 8, 24, 20_000
# mean and standard deviation over SAMPLES samples of 20,000 jobs of the authors' program
RECORDED = {
    ("typeless", 128): {
        "gap_mean": (925.6, 46),
        "gap_median": (115.5, 1.9),
        "serial": (0.2454, 0.003),
        "parallel_power_of_two": (0.6248, 0.003),
        "size_mean": (12.10, 0.19),
        "run_mean": (4337, 73),
        "run_median": (106.9, 5.0),
        "log_run_mean": (5.453, 0.031),
        "run_p90": (14564, 181),
    },
    ("typed", 128): {
        "gap_mean": (516.3, 18),
        "gap_median": (51.0, 1.3),
        "serial": (0.1753, 0.004),
        "parallel_power_of_two": (0.6883, 0.004),
        "size_mean": (8.92, 0.10),
        "run_mean": (1622, 119),
        "run_median": (17.75, 0.5),
        "log_run_mean": (3.481, 0.046),
        "run_p90": (897, 151),
        "interactive": (0.851, 0.012),
    },
    ("typeless", 256): {
        "gap_mean": (912.8, 26),
        "gap_median": (116.3, 3.7),
        "serial": (0.2454, 0.004),
        "parallel_power_of_two": (0.6147, 0.005),
        "size_mean": (22.02, 0.31),
        "run_mean": (4855, 44),
        "run_median": (140.1, 4.5),
        "log_run_mean": (5.675, 0.017),
        "run_p90": (15495, 106),
    },
}
# values recorded without their spread, and how far ours may be: three standard errors of 160,000 jobs, or the last
# digit
RECORDED_ROUGHLY = {
    ("typeless", 128): {"log_run_sd": (2.968, 0.03), "rank_correlation": (0.128, 0.012)},
    ("typed", 128): {
        "log_run_sd": (2.391, 0.09),
        "rank_correlation": (0.104, 0.012),
        "size_interactive": (8.06, 0.08),
        "size_batch": (13.87, 0.45),
        "run_interactive": (259, 40),
        "run_batch": (9393, 280),
    },
    ("typeless", 256): {"log_run_sd": (3.025, 0.03), "rank_correlation": (0.214, 0.012)},
}


def moments(jobs: pd.DataFrame) -> dict[str, float]:
    size, run = jobs["procs_allocated"].to_numpy(), jobs["run"].to_numpy()
    gap, interactive = np.diff(jobs["submit"], prepend=0), (jobs["queue"] == 0).to_numpy()
    log_run = np.log(np.maximum(run, 1))
    found = {
        "gap_mean": gap.mean(),
        "gap_median": np.median(gap),
        "serial": (size == 1).mean(),
        "parallel_power_of_two": (is_power_of_two(size) & (size > 1)).mean(),
        "size_mean": size.mean(),
        "run_mean": run.mean(),
        "run_median": np.median(run),
        "log_run_mean": log_run.mean(),
        "log_run_sd": log_run.std(),
        "run_p90": np.quantile(run, 0.9),
        "rank_correlation": stats.spearmanr(size, run).statistic,
        "interactive": interactive.mean(),
    }
    if not interactive.all():
        for name, here in (("interactive", interactive), ("batch", ~interactive)):
            found |= {f"size_{name}": size[here].mean(), f"run_{name}": run[here].mean()}
    return found


@pytest.mark.parametrize(("types", "processors"), RECORDED)
def test_moments_agree_with_the_authors_program_within_three_standard_errors(types, processors):
    settings = LublinSettings(jobs=JOBS, processors=processors, types=types)
    ours = pd.DataFrame([moments(lublin(settings, seed).jobs) for seed in range(OURS)])
    for name, (mean, spread) in RECORDED[types, processors].items():
        error = np.hypot(spread / SAMPLES**0.5, ours[name].std() / OURS**0.5)
        assert abs(ours[name].mean() - mean) < 3 * error, name
    for name, (value, room) in RECORDED_ROUGHLY[types, processors].items():
        assert abs(ours[name].mean() - value) < room, name


def test_day_weights_are_the_shares_of_a_gamma_distribution():
    for kind, (shape, scale) in {"typeless": (8.1737, 3.9631), "batch": (6.1271, 5.2740)}.items():
        cdf = stats.gamma(shape, scale=scale).cdf
        weights = np.zeros(BUCKETS)
        for half in range(11, 59):
            weights[(half - 1) % BUCKETS] = cdf(half + 0.5) - cdf(half - 0.5)
        assert day_weights(kind) == pytest.approx(weights / weights.mean())


def test_jobs_come_at_noon_and_rarely_at_night():
    by_hour, by_weekday = arrivals(lublin(LublinSettings(jobs=JOBS), 3))
    assert by_weekday is None
    assert by_hour.argmax() in range(10, 16)
    assert by_hour.argmin() in range(1, 5)
    assert by_hour.max() / by_hour.min() == pytest.approx(9, abs=3)


def test_arrivals_rise_and_are_whole_seconds():
    times = arrival_times("interactive", 5000, np.random.default_rng(1))
    assert (np.diff(times) >= 0).all()
    assert (times == np.floor(times)).all()


@pytest.mark.parametrize("processors", [2, 100, 240, 4096])
def test_no_job_is_larger_than_the_machine(processors):
    for types in ("typeless", "typed"):
        jobs = lublin(LublinSettings(jobs=3000, processors=processors, types=types), 1).jobs
        assert jobs["procs_allocated"].between(1, processors).all()
        assert jobs["run"].between(0, 162754).all()
        assert jobs["submit"].is_monotonic_increasing


def test_a_target_load_is_reached():
    for load in (0.4, 0.9):
        trace = lublin(LublinSettings(jobs=2000, processors=64, load=load), 2)
        jobs = trace.jobs
        assert (jobs["run"] @ jobs["procs_allocated"]) / (64 * jobs["submit"].iloc[-1]) == pytest.approx(load, rel=1e-3)
        assert "arrival times multiplied by" in trace.comments[-1]


def test_the_trace_has_the_form_of_the_shared_ones():
    trace = lublin(LublinSettings(jobs=10, processors=256), 1)
    assert (trace.nodes, trace.processors, trace.count("MaxJobs"), trace.count("MaxRuntime")) == (256, 256, 10, 162754)
    assert trace.jobs["job_id"].tolist() == list(range(1, 11))
    kept = {"job_id", "submit", "run", "procs_allocated", "status", "queue", "time_requested"}
    assert (trace.jobs[[name for name in COLUMNS if name not in kept]] == -1).all().all()
    assert (trace.jobs["time_requested"] == np.maximum(trace.jobs["run"], 1)).all()
    assert (lublin(LublinSettings(jobs=10, estimates={"model": "none"}), 1).jobs["time_requested"] == -1).all()


def test_one_seed_gives_one_trace_and_a_choice_changes_only_what_it_is_about():
    settings = LublinSettings(jobs=200, users=5)
    first = lublin(settings, 4).jobs
    assert lublin(settings, 4).jobs.equals(first)
    assert not lublin(settings, 5).jobs["run"].equals(first["run"])
    assert first["user"].between(1, 5).all()
    other = lublin(settings.model_copy(update={"estimates": EstimateSettings(model="menu"), "users": 0}), 4).jobs
    assert not other["time_requested"].equals(first["time_requested"])
    for name in ("submit", "run", "procs_allocated"):
        assert other[name].equals(first[name])


def test_estimates_are_never_too_short():
    run = np.array([0.0, 1.0, 59.0, 61.0, 7000.0, 500_000.0])
    draw = lambda **values: estimates(run, EstimateSettings(**values), np.random.default_rng(1))  # noqa: E731
    assert draw(model="perfect").tolist() == [1, *run[1:]]
    for model in ("factor", "menu"):
        found = draw(model=model, factor=3)
        assert (found >= np.maximum(run, 1)).all()
        assert (found % 60 == 0).all()
    assert (draw(model="factor", factor=3, round_to=0) <= 3 * np.maximum(run, 1)).all()
    assert draw(model="menu", factor=1).tolist() == [60, 60, 60, 300, 7200, 500_400]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"jobs": 0}, "jobs"),
        ({"load": -1.0}, "load"),
        ({"users": 10**9}, "users"),
        ({"estimates": {"factor": 0.5}}, "factor"),
        ({"estimates": {"menu": [5, 4]}}, "rising"),
    ],
)
def test_impossible_settings_are_refused(values, told):
    with pytest.raises(UserErrors, match=told):
        validate(LublinSettings, values)


def test_sizes_that_leave_no_room_are_refused():
    with pytest.raises(UserError, match="umed <= uhi <= 5"):
        lublin(LublinSettings(processors=32, uhi=6.0), 1)
    with pytest.raises(UserError, match="umed"):
        lublin(LublinSettings(processors=32, umed=4.5, uhi=4.0), 1)


def test_a_load_that_no_trace_can_hold_is_refused():
    with pytest.raises(UserError, match="beyond 2\\^53 s"):
        lublin(LublinSettings(jobs=10, load=1e-300), 1)


def test_the_shared_sample_agrees_with_the_model(shared_data):
    from schedlab.workloads.swf import read_swf

    recorded = moments(read_swf(shared_data / "traces/lublin_256.swf.gz").jobs)
    ours = pd.DataFrame([moments(lublin(LublinSettings(processors=256), seed).jobs) for seed in range(12)])
    for name in (
        "gap_median",
        "serial",
        "parallel_power_of_two",
        "size_mean",
        "run_mean",
        "run_median",
        "log_run_mean",
        "run_p90",
    ):
        assert abs(recorded[name] - ours[name].mean()) < 3.5 * ours[name].std(), name
