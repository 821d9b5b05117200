"""`schedlab hetero metrics|visual|jobstat`: what they read, draw and print, and which files they refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from small_launch import contents, options, pair, run_launch, write_case

from schedlab.cli.main import main
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.studies.hetero.hdeeprm import figures as figures_run
from schedlab.studies.hetero.hdeeprm import run_files
from schedlab.studies.hetero.hdeeprm.figures import COLUMNS, KINDS, draw_comparison
from schedlab.studies.hetero.simulator.core_policies import CORE_POLICIES

LEARNING = {"losses", "rewards", "action_preferences"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A directory with `classic` (jobs that lack cores, memory and bandwidth at times) and `learned` (12 episodes)."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        jobs = [{"subtime": 2 * number, "res": 1 + number % 2} for number in range(14)]
        write_case(folder / "classic", pair("first-high_gflops"), jobs, {"mem": 14000, "mem_bw": 20})
        custom = json.loads((folder / "classic/custom.json").read_text())
        custom["profiles"]["light"] = {**custom["profiles"]["p"], "mem": 100}
        custom["jobs"] += [{"id": number, "subtime": number, "res": 4, "profile": "light"} for number in (20, 26)]
        (folder / "classic/custom.json").write_text(json.dumps(custom))
        patch.chdir(folder / "classic")
        assert run_launch() == 0
        write_case(folder / "learned", options())
        patch.chdir(folder / "learned")
        assert run_launch("-a", "reinforce", "-nr", "12") == 0
    return folder


def drawn(kind: str, folder: Path):
    """The drawing of a kind, inside the theme."""
    with theme.applied(ThemeSettings()):
        return KINDS[kind](folder)


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_is_drawn(runs, monkeypatch, capsys, tmp_path, kind):
    monkeypatch.chdir(runs / ("learned" if kind in LEARNING else "classic"))
    assert main(["hetero", "visual", kind, "-s", str(tmp_path / "a.svg")]) == 0
    assert capsys.readouterr().out
    assert (tmp_path / "a.svg").stat().st_size > 5000


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_picture_has_the_same_bytes_each_time(runs, monkeypatch, tmp_path, ending):
    monkeypatch.chdir(runs / "classic")
    files = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for file in files:
        assert main(["hetero", "visual", "gantt", "-s", str(file)]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()


def test_without_a_name_the_picture_is_called_after_its_kind(runs, monkeypatch):
    monkeypatch.chdir(runs / "classic")
    before = set(contents(Path()))
    assert main(["hetero", "visual", "queue_size"]) == 0
    assert set(contents(Path())) - before == {"queue_size.svg"}
    Path("queue_size.svg").unlink()


def test_the_queue_and_the_use_are_those_of_the_jobs(runs):
    jobs = run_files_jobs(runs / "classic")
    figure = drawn("queue_size", runs / "classic").figure
    assert figure.axes[1].get_xlabel().endswith("(min)")
    times, waiting = figure.axes[0].get_lines()[0].get_data()
    for time, count in zip(times[:-1] * 60, waiting[:-1], strict=True):
        present = sum(1 for job in jobs if job["submit"] <= time + 1e-6 < job["start"])
        assert count == present
    values = drawn("utilization", runs / "classic").values
    used = sum((job["finish"] - job["start"]) * job["cores"] for job in jobs) / (4 * max(job["finish"] for job in jobs))
    assert values == {"cores": 4, "mean": pytest.approx(used)}


def run_files_jobs(folder: Path) -> list[dict[str, float]]:
    """The jobs of out_jobs.csv, read by hand."""
    header, *rows = (folder / "out_jobs.csv").read_text().splitlines()
    names = header.split(",")
    found = [dict(zip(names, row.split(","), strict=True)) for row in rows]
    columns = {
        "submission_time": "submit",
        "starting_time": "start",
        "finish_time": "finish",
        "requested_number_of_resources": "cores",
    }
    return [{ours: float(row[theirs]) for theirs, ours in columns.items()} for row in found if row["starting_time"]]


def test_bubbles_count_every_refusal_once(runs):
    overuse = json.loads((runs / "classic/overutilizations.json").read_text())
    for kind in ("core", "mem"):
        drawing = drawn(f"{kind}_bubbles", runs / "classic")
        assert overuse[kind]
        assert drawing.values["count"] == len(overuse[kind])
        points = drawing.figure.axes[0].collections[0]
        largest = max(int(text.get_text().split()[2]) for text in drawing.figure.legends[0].get_texts()[1:])
        counted = sum(round(size * largest / 160) for size in points.get_sizes())
        assert counted == len(overuse[kind])


def test_spans_of_overuse_including_one_that_hdeeprm_left_open(tmp_path, runs):
    shutil_copy(runs / "classic", tmp_path)
    overuse = json.loads((tmp_path / "overutilizations.json").read_text())
    overuse["mem_bw"]["procs"] = {"0": {"state": False, "values": [[0.0, 10.0]]}, "1": {"state": True, "values": [5.0]}}
    (tmp_path / "overutilizations.json").write_text(json.dumps(overuse))
    assert run_files.read_overuse(tmp_path)["spans"] == [(0, 0.0, 10.0), (1, 5.0, None)]
    last = max(job["finish"] for job in run_files_jobs(tmp_path))
    share = pytest.approx((10 + last - 5) / (2 * last))
    assert drawn("mem_bw_overutilization", tmp_path).values == {"count": 2, "processors": 2, "share": share}


def shutil_copy(source: Path, target: Path) -> None:
    """Copy the files of a run."""
    for name, data in contents(source).items():
        (target / name).write_bytes(data)


def test_pictures_need_no_files_but_their_own(runs, tmp_path):
    """Of a run of HDeepRM itself there is no resources.json, and preferences have no names."""
    (tmp_path / "out_jobs.csv").write_bytes((runs / "classic/out_jobs.csv").read_bytes())
    assert drawn("gantt", tmp_path).figure.axes[0].get_ylim() == (-0.5, 3.5)
    (tmp_path / "probs.json").write_text("[[0.25, 0.75], [0.1, 0.9]]")
    assert drawn("action_preferences", tmp_path).values["last"] == {"action 1": 0.9, "action 0": 0.1}


def test_learning_pictures_tell_first_and_last(runs):
    rewards = [float(line) for line in (runs / "learned/rewards.log").read_text().splitlines()]
    values = drawn("rewards", runs / "learned").values
    assert [values[name] for name in ("episodes", "first", "last")] == [len(rewards), rewards[0], rewards[-1]]
    rows = json.loads((runs / "learned/probs.json").read_text())
    name, value = next(iter(drawn("action_preferences", runs / "learned").values["last"].items()))
    assert value == max(rows[-1]) and name.partition("-")[2] in CORE_POLICIES


def write_schedule(path: Path, **changes: float) -> Path:
    """An out_schedule.csv with other columns before and between the ones that are needed."""
    values = {"batsim_version": "5", "new_column": 1, **dict.fromkeys(reversed(COLUMNS), 10.0), "another": 2} | changes
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(",".join(values) + "\n" + ",".join(str(value) for value in values.values()) + "\n")
    return path


def test_metrics_are_read_by_name_and_drawn_in_eight_panels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_schedule(Path("A/out_schedule.csv"))
    write_schedule(Path("B/out_schedule.csv"), makespan=15.0, consumed_joules=5.0)
    assert (
        main(
            [
                "hetero",
                "metrics",
                "A/out_schedule.csv",
                "B/out_schedule.csv",
                "-n1",
                "greedy",
                "-n2",
                "random",
                "-s",
                "bars.svg",
            ]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert all(words in said for words in ("random", "greedy", "50.0 %"))
    assert Path("bars.svg").stat().st_size > 5000
    assert main(["hetero", "metrics", "A/out_schedule.csv", "B/out_schedule.csv"]) == 0
    assert Path("metrics.svg").is_file()


def test_bars_are_as_high_as_their_values(tmp_path):
    paths = [write_schedule(tmp_path / "a.csv", makespan=7200.0), write_schedule(tmp_path / "b.csv", makespan=3600.0)]
    rows = [run_files.read_schedule(path, list(COLUMNS)) for path in paths]
    with theme.applied(ThemeSettings()):
        drawing = draw_comparison(rows, ["a", "b"])
    panels, changes = drawing.figure.axes, drawing.values["changes"]
    assert changes["makespan"]["change"] == -0.5 and changes["energy"]["same"]
    assert len(panels) == 8
    makespan = next(axes for axes in panels if axes.get_title(loc="left").startswith("makespan"))
    assert [bar.get_height() for bar in makespan.patches] == [2.0, 1.0]
    assert makespan.get_title(loc="left") == "makespan (h)"


@pytest.mark.parametrize(
    ("field", "statistic", "value"),
    [
        ("req_time", "max", 40),
        ("size", "median", 2.5),
        ("mem", "min", 100),
        ("mem_bw", "mean", 10),
        ("req_time", "p95", 38.5),
        ("req_time", "p99", 39.7),
    ],
)
def test_a_statistic_of_the_jobs(tmp_path, capsys, field, statistic, value):
    profiles = {
        str(n): {"req_time": 10 * n, "mem": 100 * n, "mem_bw": 4 * n, "type": "delay", "delay": 1} for n in range(1, 5)
    }
    jobs = [{"id": n, "subtime": 0, "res": n, "profile": str(n)} for n in range(1, 5)]
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    assert main(["hetero", "jobstat", str(path), field, statistic]) == 0
    assert math.isclose(float(capsys.readouterr().out), value)


WRONG = [  # arguments, the file or option, the key or the nearest name
    (["visual", "gant"], "visual", "'gantt'"),
    (["visual", "gantt"], "out_jobs.csv", ""),
    (["visual", "rewards"], "rewards.log", ""),
    (["visual", "losses"], "losses.log", "line 2"),
    (["visual", "action_preferences"], "probs.json", ""),
    (["visual", "core_bubbles"], "overutilizations.json", "mem_bw"),
    (["visual", "queue_size", "-s", "queue.jpg"], "-s", ".svg"),
    (["metrics", "short.csv", "short.csv"], "short.csv", "consumed_joules"),
    (["metrics", "none.csv", "short.csv"], "none.csv", ""),
    (["metrics", "empty.csv", "empty.csv"], "empty.csv", ""),
    (["metrics", "text.csv", "text.csv"], "text.csv", "makespan"),
    (["jobstat", "w.json", "req_tim", "max"], "jobstat", "'req_time'"),
    (["jobstat", "w.json", "mem", "medain"], "jobstat", "'median'"),
    (["jobstat", "w.json", "mem", "max"], "w.json: profile p", "mem"),
    (["jobstat", "missing.json", "mem", "max"], "missing.json", ""),
]


@pytest.mark.parametrize(("arguments", "where", "key"), WRONG, ids=[" ".join(arguments) for arguments, _, _ in WRONG])
def test_wrong_files_and_names_are_refused(tmp_path, monkeypatch, capsys, arguments, where, key):
    monkeypatch.chdir(tmp_path)
    Path("losses.log").write_text("1.5\nx\n")
    Path("probs.json").write_text('[["a"]]')
    Path("overutilizations.json").write_text('{"core": [], "mem": []}')
    Path("short.csv").write_text("makespan\n1.0\n")
    Path("empty.csv").write_text("makespan\n")
    write_schedule(Path("text.csv"), makespan="long")
    Path("w.json").write_text(
        '{"nb_res": 1, "jobs": [{"id": 0, "subtime": 0, "res": 1, "profile": "p"}], "profiles": {"p": {}}}'
    )
    assert main(["hetero", *arguments]) == 2
    error = capsys.readouterr().err
    assert where in error and key in error and "Traceback" not in error


def test_labels_can_be_left_out(runs):
    named, plain = (drawn(kind, runs / "classic").figure.axes[0].texts for kind in ("gantt", "gantt_no_label"))
    assert {text.get_text() for text in named} - {text.get_text() for text in plain} >= {"0", "1"}
    assert figures_run.KINDS["gantt"] is not figures_run.KINDS["gantt_no_label"]
