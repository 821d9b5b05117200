"""`schedlab cloud optimize`: the policy that is learned is what is run; tables, reports, and what is said where
something is wrong.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from live_scripts import plain_script, quick_settings

from schedlab.cli.main import main
from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.learn import uncertainty
from schedlab.studies.cloud.model.allocation import Allocation
from schedlab.studies.cloud.model.fit_cores import fit_table
from schedlab.studies.cloud.optimize.command import keep_logs, read_logs
from schedlab.studies.cloud.optimize.flow import percent_change, run_warnings, short_warnings
from schedlab.studies.cloud.optimize.plots import DRAWN, Picture
from schedlab.studies.cloud.optimize.report import idle_gpus, money, report_page, report_text

TABLES = {
    "allocation_history": ["gpu_count", "cpu_count", "memory_gb", "action", "action_description", "reward"],
    "reward_components": ["reward", "reward_cost", "reward_performance", "reward_efficiency", "reward_sla"],
    "sla_metrics": [
        *[f"sla_{item}_met" for item in ("time", "cost", "throughput", "memory", "gpu_util", "cpu_util")],
        *[f"sla_{item}_severity" for item in ("time", "cost", "throughput", "memory", "gpu_util", "cpu_util")],
    ],
    "pareto_front": ["preference", "estimated_cost", "estimated_time", "gpu_count", "cpu_count", "memory_gb"],
    "performance_metrics": ["throughput", "time_so_far", "cost_so_far", "gpu_util", "cpu_util", "memory_util"],
    "combined_metrics": [
        "gpu_count",
        "cpu_count",
        "memory_gb",
        "action",
        "reward",
        "reward_sla",
        "sla_time_met",
        "time_so_far",
    ],
    "rl_action_log": [
        *[
            "rl_policy_used",
            "rl_action_taken",
            "rl_action_description",
            "rl_reward",
            "rl_gpu_count",
            "rl_cpu_count",
            "rl_memory_gb",
        ],
        *["rl_sla_time_met", "rl_sla_cpu_util_met", "rl_critic_reset", "rl_cumulative_reward", "rl_uncertainty"],
    ],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of one optimised training, with data and all options."""
    folder = tmp_path_factory.mktemp("optimized")
    (folder / "pictures").mkdir()
    path = plain_script(folder, "<b>plain & simple.py")
    command = [
        "cloud",
        "optimize",
        "--training_file",
        str(path),
        "--config",
        str(quick_settings(folder)),
        "--dataset_path",
        str(folder / "pictures"),
    ]
    command += [
        "--preference",
        "time",
        "--epochs",
        "5",
        "--time_target",
        "10",
        "--cost_target",
        "2",
        "--throughput_min",
        "5",
    ]
    command += ["--baseline_ratio", "0.4", "--output_dir", str(folder / "out"), "--log_dir", str(folder / "kept")]
    assert main(command) == 0
    return folder


def kept(folder: Path, name: str) -> Path:
    """The kept log of baseline or run."""
    [found] = folder.glob(f"kept/<b>plain & simple_{name}_*.csv")
    return found


def report(folder: Path) -> dict:
    return json.loads((folder / "out" / "report.json").read_text())


def test_every_table_has_its_columns_and_a_row_a_step(finished):
    for name, columns in TABLES.items():
        table = pd.read_csv(finished / "out" / f"{name}.csv")
        assert list(table.columns[:3]) == ["episode", "step", "epoch"] and set(columns) <= set(table.columns), name
        if name != "pareto_front":
            assert not table.duplicated(["episode", "step"]).any() and set(table["episode"]) == {0, 1}
    levels = pd.read_csv(finished / "out/sla_metrics.csv")  # without GPUs nothing is said of theirs
    assert levels["sla_gpu_util_met"].isna().all() and levels["sla_cpu_util_met"].notna().all()
    combined = pd.read_csv(finished / "out/combined_metrics.csv")
    assert len(combined) == len(pd.read_csv(finished / "out/allocation_history.csv"))
    assert combined.groupby("episode")["epoch"].max().tolist() == [
        6,
        5,
    ]  # by the model in whole intervals of two epochs
    rewards = pd.read_csv(finished / "out/reward_components.csv")
    weighted = 0.2 * rewards["reward_cost"] + 0.6 * rewards["reward_performance"] + 0.2 * rewards["reward_efficiency"]
    assert rewards["reward"].tolist() == pytest.approx(weighted.tolist())
    actions = pd.read_csv(finished / "out/rl_action_log.csv")
    summed = actions.groupby("episode")["rl_reward"].cumsum()
    assert actions["rl_cumulative_reward"].tolist() == pytest.approx(summed.tolist())


def test_the_policy_that_was_learned_is_what_was_run(finished):
    """The actions of the run follow from the stored policy and what was observed; no rule of thumb decides."""
    history = pd.read_csv(finished / "out/allocation_history.csv")
    run = history[history["episode"] == 1]
    runs = sorted((finished / "out/work/001/runs/live").iterdir())
    assert len(runs) == len(run) == 3
    for folder, (_, row) in zip(runs, run.iterrows(), strict=True):
        spec = json.loads((folder / "run.json").read_text())
        assert len(spec["cpus"]) == row["cpu_count"] and spec["memory_bytes"] == row["memory_gb"] * 2**30
    assert (finished / "out/policy.zip").read_bytes() == (finished / "out/work/001/policy.zip").read_bytes()
    values = report(finished)
    assert values["policy"]["objective"] >= values["policy"]["objective_of_best_plan"] - 1e-9
    assert values["policy"]["objective_measured"] == pytest.approx(-run["reward"].sum())


def test_the_model_is_fitted_anew_after_each_interval_of_the_run(finished):
    model, work = report(finished)["model"], finished / "out/work/001"
    runs = [pd.read_csv(file) for file in sorted(work.glob("runs/live/*/epochs.csv"))]
    tables = [pd.read_csv(work / "measured.csv")]
    assert len(model["refitted"]) == len(runs) == 3
    for number, (refit, run) in enumerate(zip(model["refitted"], runs, strict=True)):
        tables.append(run.assign(epoch=range(1, len(run) + 1), sample=100 + number))
        again = fit_table(pd.concat(tables, ignore_index=True), work / "measured.csv")
        error = pytest.approx(again.median_error, rel=1e-6)
        counts = {"rows": again.rows, "settings": again.settings, "free_parameters": again.free}
        assert refit == {**counts, "median_relative_error": error}


def test_limits_of_the_user_are_frozen_and_the_same_for_both(finished):
    limits = report(finished)["thresholds"]
    assert (limits["time"]["limit"], limits["cost"]["limit"], limits["throughput"]["limit"]) == (600.0, 2.0, 5.0)
    assert {limits[item]["from"] for item in ("time", "cost", "throughput")} == {"user"}
    assert limits["gpu_util"]["from"] == "not applicable" and report(finished)["sla"]["gpu_util"] is None
    assert report(finished)["sla_met"]["of"] == 5


def test_the_baseline_is_a_mean_extrapolated_to_the_whole_training(finished):
    base, samples = report(finished)["baseline"], pd.read_csv(kept(finished, "baseline"))
    assert base["samples"] == 2 and base["sample_epochs"] == 2 and set(samples["sample"]) == {1, 2}
    first, second = (samples[samples["sample"] == number]["epoch_time"].tolist() for number in (1, 2))
    expected = sum(sum(times) + 3 * times[1] for times in (first, second)) / 2
    assert base["time"] > expected and base["time_by_ratio"] == pytest.approx((sum(first) + sum(second)) / 2 * 2.5)
    changes = report(finished)["change_percent"]
    assert changes["time"] == pytest.approx((report(finished)["optimized"]["time"] / base["time"] - 1) * 100)


def test_the_data_and_the_epochs_reach_the_script(finished):
    run = pd.read_csv(kept(finished, "optimized"))
    assert set(run["dataset"]) == {str(finished / "pictures")} and run["epoch"].tolist() == [1, 2, 3, 4, 5]


def test_files_lie_in_the_folders_that_were_named(finished):
    assert sorted(path.name for path in finished.iterdir()) == [
        "<b>plain & simple.py",
        "kept",
        "out",
        "pictures",
        "settings.yaml",
    ]
    assert not list((finished / "pictures").iterdir())


def test_logs_are_kept_under_the_time_of_the_call(finished):
    """As published, `<stem>_<baseline|optimized>_<unix time>.csv`: no call overwrites the logs of another one."""
    names = [
        re.fullmatch(r"<b>plain & simple_(baseline|optimized)_(\d+)\.csv", path.name)
        for path in (finished / "kept").iterdir()
    ]
    assert sorted(name[1] for name in names) == ["baseline", "optimized"]
    made = datetime.fromisoformat(pd.read_csv(finished / "out/optimization_metrics.csv")["experiment_time"][0])
    assert {int(name[2]) for name in names} == {int(made.timestamp())}


def test_logs_of_one_second_are_kept_apart(tmp_path):
    table, now = pd.DataFrame({"epoch": [1]}), datetime.fromisoformat("2001-09-09T01:46:40+00:00")
    found = SimpleNamespace(script=Path("net.py"), baseline_table=table, live_tables=[table])
    for _ in range(2):
        keep_logs(found, tmp_path, now)
    keep_logs(SimpleNamespace(script=Path("net.py"), baseline_table=None, live_tables=[]), tmp_path, now)
    times = (1_000_000_000, 1_000_000_001)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"net_{name}_{time}.csv" for name in ("baseline", "optimized") for time in times
    ]


def test_text_and_page_hold_every_recommendation(finished):
    text, page, values = (
        (finished / "out/report.txt").read_text(),
        (finished / "out/report.html").read_text(),
        report(finished),
    )
    assert [each["priority"] for each in values["recommendations"]] == ["time", "cost", "balanced"]
    for each in values["recommendations"]:
        assert each["description"] in text and each["description"] in page
        assert each["change_percent"]["time"] == pytest.approx((each["time"] / values["baseline"]["time"] - 1) * 100)


def test_nothing_is_recommended_that_is_worse_than_what_was_there_or_was_run(finished):
    """Neither for time what is slower, nor for cost what is dearer: both are candidates themselves."""
    values = report(finished)
    by_priority = {each["priority"]: each for each in values["recommendations"]}
    for priority, other in (("time", "cost"), ("cost", "time")):
        for known in (values["baseline"], values["optimized"]):
            assert (by_priority[priority][priority], by_priority[priority][other]) <= (known[priority], known[other])
    held = [by_priority["balanced"][name] for name in Allocation._fields]
    assert held == [values["optimized"][name] for name in Allocation._fields]
    kept = values["what_was_there"]
    assert kept["source"] == "baseline" and kept["change_percent"] == {"time": 0.0, "cost": 0.0, "throughput": 0.0}


def test_the_best_constant_allocations_are_those_of_the_front(finished):
    """The cheapest one of all stands in the report, however many decisions it is away."""
    front, best = pd.read_csv(finished / "out/pareto_front.csv"), report(finished)["best_constants"]
    ends = {
        name: next(each for each in best if name in each["best_for"])
        for name in ("time", "cost", "the preference time")
    }
    assert (
        ends["time"]["time"]
        == pytest.approx(front["estimated_time"].min())
        == pytest.approx(front["estimated_time"].iloc[0])
    )
    assert (
        ends["cost"]["cost"]
        == pytest.approx(front["estimated_cost"].min())
        == pytest.approx(front["estimated_cost"].iloc[-1])
    )
    rows = [tuple(each[name] for name in Allocation._fields) for each in best]
    assert len(set(rows)) == len(rows) and {each["source"] for each in best} == {"model"}


def test_the_front_names_the_preferences_best_where_the_report_does(finished):
    front = pd.read_csv(finished / "out/pareto_front.csv", keep_default_na=False)
    best = next(each for each in report(finished)["best_constants"] if "the preference time" in each["best_for"])
    held = [tuple(row) for row in front[list(Allocation._fields)].itertuples(index=False)]
    named = [row for row, names in zip(held, front["preference"], strict=True) if "time" in names.split()]
    chosen = tuple(best[name] for name in Allocation._fields)
    assert named == [chosen] * (chosen in held) and any(front["preference"])


def test_counts_are_printed_as_whole_numbers(finished):
    """Epochs, devices and gigabytes that are whole, in every table: 2, not 2.0."""
    counted = {"epoch", "gpu_count", "cpu_count", "memory_gb", "rl_gpu_count", "rl_cpu_count", "rl_memory_gb"}
    for name in TABLES:
        table = pd.read_csv(finished / "out" / f"{name}.csv", dtype=str)
        for column in sorted(counted & set(table.columns)):
            assert table[column].str.fullmatch(r"\d+").all(), (name, column)


def test_the_model_of_the_whole_machine_is_the_baseline(finished):
    front, base = pd.read_csv(finished / "out/pareto_front.csv"), report(finished)["baseline"]
    assert front["estimated_time"].min() <= base["time"] * (1 + 1e-9), "the whole machine is among them"
    assert report(finished)["model"]["start_up_seconds"] == base["start_up_seconds"]


def test_recommendations_are_told_by_what_is_known_best(finished):
    """What was measured, where it is that; else the model, as far as it reaches; the front of the same model tells the
    same.
    """
    front = pd.read_csv(finished / "out/pareto_front.csv")
    of_front = {tuple(row[list(Allocation._fields)]): row for _, row in front.iterrows()}
    values = report(finished)
    for each in values["recommendations"]:
        held = tuple(each[name] for name in Allocation._fields)
        if each["source"] in ("measured", "baseline"):
            known = values["optimized" if each["source"] == "measured" else "baseline"]
            assert (each["time"], each["cost"]) == (known["time"], known["cost"])
        elif held in of_front:
            assert each["source"] == "model"
            assert each["time"] == pytest.approx(of_front[held]["estimated_time"])
            assert each["cost"] == pytest.approx(of_front[held]["estimated_cost"])


@pytest.mark.parametrize(("start", "told"), [(3.0, 1), (2.0, 0)])
def test_a_training_that_is_short_against_its_start_says_so(start, told):
    found = short_warnings({"time": 10.0}, start)
    assert len(found) == told


def test_starts_batches_and_idle_gpus_are_reported(finished):
    values = report(finished)
    new, epochs = values["optimized"], pd.read_csv(kept(finished, "optimized"))["epoch_time"]
    assert new["start_up_seconds"] == pytest.approx(new["time"] - epochs.sum()) and new["start_up_seconds"] > 0
    assert values["batch"]["suggested_batch_size"] is None
    assert values["idle_gpus"] == {"baseline": [], "optimized": []}, "there is no GPU"
    assert values["model"]["free_parameters"] == 2, "one batch size: what cores speed up and what they do not"


def test_the_page_escapes_names_and_needs_no_network(finished):
    page = (finished / "out/report.html").read_text()
    assert "<b>plain" not in page and "&lt;b&gt;plain &amp; simple.py" in page
    assert page.count("data:image/svg+xml;base64,") == 3 and 'alt=""' not in page
    alternatives = re.findall(r'<img alt="([^"]+)"', page)
    assert len(set(alternatives)) == 3 and f"{report(finished)['baseline']['time']:.1f} s" in alternatives[0]
    assert "http://" not in page and "https://" not in page and "<script" not in page


@pytest.mark.needs_system
def test_the_page_opens_in_a_browser(finished, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium, as Debian's package chromium has it")
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path}/user",
    ]
    page = (finished / "out/report.html").as_uri()
    done = subprocess.run([browser, *options, "--dump-dom", page], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Service levels met" in done.stdout and done.stdout.count("<img") == 3 and "<b>plain" not in done.stdout
    picture = tmp_path / "page.png"
    command = [browser, *options, f"--screenshot={picture}", "--window-size=1000,2400", page]
    subprocess.run(command, capture_output=True, timeout=240, check=True)
    from matplotlib.image import imread

    assert imread(picture)[..., :3].std() > 0.05  # not an empty page


def test_the_history_tells_what_was_done_beside_the_names_of_actions(finished):
    """An action's name is what it asks for; limits may leave less of it, or nothing."""
    for table, column, held in (("allocation_history", "change", ""), ("rl_action_log", "rl_change", "rl_")):
        rows = pd.read_csv(finished / f"out/{table}.csv")
        for _, episode in rows.groupby("episode"):
            cores = [report(finished)["policy"]["start"]["cpu_count"], *episode[f"{held}cpu_count"].astype(int)]
            for before, after, told in zip(cores, cores[1:], episode[column], strict=False):
                assert (f"cores {before} to {after}" in told) == (before != after) and "GPUs" not in told
                assert told != "nothing" or before == after


def test_a_log_of_the_run_counts_time_and_cost_from_its_begin(finished):
    run, came_to = pd.read_csv(kept(finished, "optimized")), report(finished)["optimized"]
    assert run["time_so_far"].is_monotonic_increasing and run["cost_so_far"].is_monotonic_increasing
    assert run["time_so_far"].iloc[-1] == pytest.approx(came_to["time"]) and run["cost_so_far"].iloc[
        -1
    ] == pytest.approx(came_to["cost"])


def test_a_second_run_adds_a_row_and_goes_on_from_what_is_known(finished, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(finished, again, ignore=shutil.ignore_patterns("work"))
    first = report(finished)["optimized"]
    path = again / "<b>plain & simple.py"
    other = pd.read_csv(kept(again, "optimized")).assign(model_name="unrelated", time_so_far=1e6, cost_so_far=1e6)
    other.to_csv(again / "kept/other.csv", index=False)
    command = [
        "cloud",
        "optimize",
        "--training_file",
        str(path),
        "--config",
        str(again / "settings.yaml"),
        "--skip_baseline",
    ]
    command += ["--epochs", "4", "--output_dir", str(again / "out"), "--log_dir", str(again / "logs")]
    command += ["--dataset_path", str(finished / "pictures")]  # runs on other data would not count
    assert main([*command, "--offline_logs", str(again / "kept")]) == 0
    metrics = pd.read_csv(again / "out/optimization_metrics.csv")
    assert len(metrics) == 2 and metrics["preference"].tolist() == ["time", "balanced"]
    assert {"experiment_time", "average_uncertainty", "gpu_reduction_pct", "optimized_sla_met_count"} <= set(
        metrics.columns
    )
    values = report(again)
    assert values["baseline"]["source"] == "model"
    assert values["policy"]["prediction"]["similarity_score"] == pytest.approx(1.0)
    assert values["thresholds"]["time"] == {
        "limit": pytest.approx(1.1 * first["time"]),
        "unit": "s",
        "from": "earlier logs",
    }
    assert values["thresholds"]["cost"]["limit"] == pytest.approx(1.1 * first["cost"])
    assert len((again / "out/history.jsonl").read_text().splitlines()) == 2


def test_earlier_logs_are_read_from_files_and_folders(finished, tmp_path):
    logs = finished / "kept"
    given = read_logs([logs], tmp_path / "none.jsonl"), read_logs(sorted(logs.iterdir()), tmp_path / "none.jsonl")
    assert [len(analyser.tables) for analyser in given] == [1, 1], (
        "baseline and run are logs of one name, of which the last counts"
    )
    assert given[0].models == given[1].models
    assert given[0].tables[0]["epoch"].tolist() == [1, 2, 3, 4, 5], "the run, not the samples of the baseline"
    with pytest.raises(UserError, match=str(tmp_path)):
        read_logs([tmp_path], tmp_path / "none.jsonl")
    (tmp_path / "log.csv").write_text("epoch,throughput\n1,5\n")
    with pytest.raises(UserError, match=r"log\.csv"):
        read_logs([tmp_path], tmp_path / "none.jsonl")


def test_percentages_under_a_dollar_and_of_nothing():
    assert percent_change(0.015, 0.01) == pytest.approx(50.0) and percent_change(1, 0) is None
    assert money(0.0049) == "$0.00490" and money(12.3) == "$12.30"


@pytest.mark.parametrize(
    ("changes", "preference", "count"),
    [
        ((1.06, 1.06, 1.0), "balanced", 1),
        ((1.0, 1.06, 0.9), "balanced", 1),
        ((1.2, 0.5, 1.0), "cost", 0),
        ((1.2, 0.5, 1.0), "time", 1),
        ((0.5, 1.2, 1.0), "time", 0),
        ((1.2, 1.2, 0.5), "balanced", 4),
        ((0.9, 0.9, 1.1), "balanced", 0),
    ],
)
def test_the_monitor_warns_of_what_got_worse(changes, preference, count):
    base = {"time": 0.1, "cost": 0.01, "throughput": 10.0}
    new = {name: base[name] * factor for name, factor in zip(base, changes, strict=True)}
    assert len(run_warnings(base, new, preference)) == count


def course(throughputs, times) -> list:
    records = [
        {"epoch": 2.0 * (number + 1), "throughput": each, "time_so_far": time, "cost_so_far": time / 1e4}
        for number, (each, time) in enumerate(zip(throughputs, times, strict=True))
    ]
    return [SimpleNamespace(record=record) for record in records]


@pytest.mark.parametrize("throughput_min", [10.0, 3000.0, 4000.0])
def test_no_point_and_no_limit_of_the_course_lies_on_the_edge_of_its_panel(throughput_min):
    """A run that differs little from the model lay half beyond the edge."""
    limits = SimpleNamespace(throughput_min=throughput_min, time_max=12.5, cost_max=1e-4)
    model = SimpleNamespace(course=course([3180.0] * 3, [4.0, 8.0, 12.49]))
    (draw,) = (draw for caption, draw in DRAWN.items() if "Throughput" in caption)
    job = SimpleNamespace(sla=limits)
    figure, _ = draw(SimpleNamespace(live=course([3185.0] * 3, [4.0, 8.0, 12.5]), learned=model, job=job))
    for axes in figure.axes:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        for line in axes.lines:
            y = line.get_ydata()
            assert low == 0 and max(y) < high - 0.04 * (high - low), axes.get_title()
            x = [value for value in line.get_xdata() if line.get_label() != "limit"]
            assert all(left + 0.04 * (right - left) < value < right - 0.04 * (right - left) for value in x)


def test_an_uncertainty_that_no_learner_tells_is_unknown(finished):
    assert np.isnan(uncertainty(object(), np.zeros(26), np.ones(27, bool), 0))
    values = report(finished)
    assert values["uncertainty"]["mean"] > 0
    values["uncertainty"] = {"mean": None, "largest": None, "warning": False}
    assert "nan" not in report_text(values) and report_page(values, [])


def test_gpus_are_diagnosed_where_a_log_tells_their_use():
    log = pd.DataFrame({"gpu_count": [2, 2], "cpu_percent": [95.0, 99.0], "gpu_memory_used_gb": [0.0, 0.0]})
    assert idle_gpus(None) == idle_gpus(log) == idle_gpus(log.assign(gpu_utilization_0=np.nan)) == []
    found = idle_gpus(log.assign(gpu_utilization_0=[0.0, 0.0]))
    assert len(found) == 4
    assert idle_gpus(log.assign(gpu_utilization_0=[0.0, 1.0], gpu_utilization_1=0.0)) == []


def test_text_of_a_report_cannot_become_markup(finished):
    values = report(finished)
    values["run"]["training_file"] = values["method"] = "<img src=x onerror=alert(1)>"
    values["warnings"] = ["<script>alert(1)</script>"]
    page = report_page(values, [Picture('"><script>', '"><script>', 'data:"><script>')])
    assert "<script" not in page and "<img src=x" not in page
