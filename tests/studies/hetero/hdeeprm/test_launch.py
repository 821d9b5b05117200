"""`schedlab hetero launch` with CLASSIC agents: the learning case, the files, generated inputs, mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from small_launch import contents, numbers, options, pair, run_launch, schedule, write_case

from schedlab.batsim.files.outputs import Outputs
from schedlab.cli.main import hdeeprm_launch, main
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.hdeeprm.launch_outputs import append_lines, append_row
from schedlab.studies.hetero.simulator.episode import Episode, learning_case, play

BATSIM_FILES = {
    "out_jobs.csv",
    "out_schedule.csv",
    "out_machine_states.csv",
    "out_consumed_energy.csv",
    "out_pstate_changes.csv",
}
INPUTS = {"platform.xml", "resources.json", "workload.json", "job_limits.json", "inputs.json"}
LOGS = {"insights.log", "rewards.log", "makespans.log", "actions.log", "actions.json", "overutilizations.json"}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("job_policy", ["first", "shortest"])
@pytest.mark.parametrize(
    ("core_policy", "makespan"), [("high_gflops", 6.363636), ("high_mem_bw", 5.25), ("low_power", 7.0)]
)
def test_the_three_placements_of_the_learning_case(here, job_policy, core_policy, makespan):
    write_case(here, pair(f"{job_policy}-{core_policy}"))
    assert run_launch() == 0
    assert schedule()["makespan"] == pytest.approx(makespan, abs=1e-6)
    if core_policy == "high_mem_bw":
        assert schedule()["consumed_joules"] == pytest.approx(563.182, abs=1e-3)
    spans = json.loads(Path("overutilizations.json").read_text())["mem_bw"]["procs"].values()
    assert any(span["values"] for span in spans) == (core_policy != "high_mem_bw")


def test_files_in_the_working_directory_and_the_line_printed(here, capsys):
    write_case(here, pair("first-high_mem_bw"))
    assert run_launch() == 0
    assert {path.name for path in here.iterdir()} - {".hetero-launch.lock"} == {
        "options.json",
        "custom.json",
        *BATSIM_FILES,
        *INPUTS,
        *LOGS,
    }
    assert capsys.readouterr().out == "episode 0: makespan 5.250000 s, energy 563.182 J, rewards 8.4\n"
    assert numbers("rewards.log") == pytest.approx([8.4])
    assert Path("actions.log").read_text() == "0\n"


def test_tables_are_those_that_the_simulator_writes_itself(here):
    write_case(here, pair("first-high_mem_bw"))
    assert run_launch("-nr", "2") == 0
    with Outputs(here / "own") as tables:
        play(
            Episode(
                *learning_case(),
                DecisionSettings(selection=("first-high_mem_bw",), void=False, objective="makespan"),
                0,
                tables,
            )
        )
    for name in BATSIM_FILES - {"out_jobs.csv"}:
        assert Path(name).read_bytes() == Path(name.replace("out_", "own_")).read_bytes(), name
    ours, own = (Path(f"{prefix}_jobs.csv").read_text().replace("conflict", "p") for prefix in ("out", "own"))
    assert ours == own


def test_a_form_0_3_classic_agent_plays_its_first_action(here):
    actions = {"selection": [{"first": ["low_power", "high_mem_bw"]}], "void": True}
    write_case(here, options({"type": "CLASSIC"}, actions=actions))
    assert run_launch() == 0
    assert schedule()["makespan"] == pytest.approx(7.0)


def test_logs_grow_by_an_episode_at_a_time(here):
    write_case(here, pair("random-random"))
    assert run_launch("-nr", "3") == 0
    assert run_launch() == 0
    makespans = numbers("makespans.log")
    assert len(makespans) == len(numbers("rewards.log")) == 4
    assert makespans[3] == makespans[0]  # a launch begins its episodes anew
    assert len(set(makespans)) > 1  # and each has draws of its own


@pytest.mark.slow
def test_two_launches_of_one_seed_give_the_same_bytes_side_by_side(tmp_path):
    """Several at a time in processes of their own: no port, no shared names."""
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        write_case(folder, pair("random-random"), jobs=[{"subtime": number / 2} for number in range(12)])
    command = [
        sys.executable,
        "-m",
        "schedlab.cli.main",
        "hetero",
        "launch",
        "options.json",
        "-cw",
        "custom.json",
        "-nr",
        "4",
    ]
    with ThreadPoolExecutor(2) as pool:
        done = list(
            pool.map(
                lambda folder: subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120), folders
            )
        )
    assert [run.returncode for run in done] == [0, 0], done[0].stderr
    assert contents(folders[0]) == contents(folders[1])
    assert len((folders[0] / "makespans.log").read_text().splitlines()) == 4


def test_a_trace_becomes_the_workload(here):
    lines = [f"{number} {10 * number} -1 100 2 -1 200000 2 300 400000 1 1 1 1 1 1 -1 -1" for number in range(1, 9)]
    Path("log.swf").write_text("; UnixStartTime: 0\n" + "\n".join(lines) + "\n")
    values = pair("shortest-high_gflops") | {"workload_file_path": "log.swf", "nb_jobs": 5}
    write_case(here, values)
    assert main(["hetero", "launch", "options.json"]) == 0
    workload = json.loads(Path("workload.json").read_text())
    assert len(workload["jobs"]) == 5
    assert {profile["mem"] for profile in workload["profiles"].values()} == {400}
    assert schedule()["nb_jobs_finished"] == 5


def test_a_trace_without_memory_is_told(here, capsys):
    Path("log.swf").write_text("1 0 -1 100 2 -1 -1 2 300 -1 1 1 1 1 1 1 -1 -1\n")
    write_case(here, pair("shortest-high_gflops") | {"workload_file_path": "log.swf"})
    assert main(["hetero", "launch", "options.json"]) == 2
    error = capsys.readouterr().err
    assert "log.swf: " in error and "no_memory 1" in error and "--missing-memory" in error


def test_a_platform_by_its_absolute_path(here, repository):
    path = here / "apart" / "own.json"
    path.parent.mkdir()
    path.write_text((repository / "resources/platforms/learning.json").read_text())
    write_case(here, pair("first-high_mem_bw") | {"platform_file_path": str(path)})
    assert run_launch() == 0
    assert schedule()["makespan"] == pytest.approx(5.25)


def test_inputs_are_made_once_and_anew_when_stale(here):
    write_case(here, pair("first-high_mem_bw"))
    assert run_launch() == 0
    first, made = contents(here), Path("workload.json").stat().st_mtime_ns
    assert run_launch() == 0
    assert Path("workload.json").stat().st_mtime_ns == made
    write_case(here, pair("first-high_mem_bw"), profile={"req_time": 10})
    assert run_launch() == 0
    assert schedule()["makespan"] == pytest.approx(10.5)
    write_case(here, pair("first-high_mem_bw"))
    assert run_launch() == 0
    assert {name: contents(here)[name] for name in INPUTS} == {name: first[name] for name in INPUTS}
    assert not list(here.glob("*.old"))


def test_inputs_of_another_hand_are_not_used_and_not_lost(here):
    write_case(here, pair("first-high_mem_bw"))
    Path("workload.json").write_text('{"nb_res": 4, "jobs": [], "profiles": {}}')
    assert run_launch() == 0
    assert schedule()["nb_jobs"] == 2
    assert json.loads(Path("workload.json.old").read_text())["jobs"] == []
    Path("platform.xml").write_text("<platform/>")
    assert run_launch() == 0
    assert Path("platform.xml.old").read_text() == "<platform/>"


def test_insights_at_each_level(here):
    write_case(here, pair("first-high_mem_bw"))
    assert run_launch() == 0
    assert Path("insights.log").read_text() == ""
    values = pair("first-high_mem_bw")
    values["pybatsim"]["log_level"] = "INFO"
    write_case(here, values)
    assert run_launch() == 0
    lines = Path("insights.log").read_text().splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["INFO", "episode", "0"],
        ["INFO", "decision", "1"],
        ["INFO", "episode", "0"],
    ]
    assert "first-high_mem_bw" in lines[1] and "makespan 5.25" in lines[2]


def test_reference_mode_runs_and_differs_where_it_should(here):
    """A neighbour's power counts as 15 % there, in rewards alone; a single action is void's number, yet it ends."""
    values = pair("first-high_mem_bw", objective="energy_consumption")
    write_case(here, values)
    assert run_launch() == 0
    assert numbers("rewards.log") == pytest.approx([-112.5])
    assert run_launch("--compat") == 0
    assert numbers("rewards.log")[1] != pytest.approx(-112.5)
    assert schedule()["makespan"] == pytest.approx(5.25)


def test_reference_mode_blocks_on_a_job_that_never_fits_and_says_so(here, capsys):
    write_case(here, pair("first-random"), jobs=[{}, {"res": 5, "subtime": 1}])
    assert run_launch() == 0
    assert "rejected" in Path("insights.log").read_text()
    assert schedule()["nb_jobs_rejected"] == 1
    capsys.readouterr()
    assert run_launch("--compat") == 1
    error = capsys.readouterr().err
    assert "error: " in error and "Traceback" not in error
    assert Path("partial_jobs.csv").read_text().count("COMPLETED_SUCCESSFULLY") == 1
    assert schedule()["nb_jobs_rejected"] == 1  # the finished episode's tables stay
    assert len(numbers("makespans.log")) == 1


WRONG = [
    ({"platform_file_path": "gaja"}, "platform_file_path", "'gaia'"),
    ({"platform_file_path": "/nowhere/gaia.json"}, "platform_file_path", '"gaia"'),
    ({"nb_resources": 5}, "nb_resources", "4"),
]


@pytest.mark.parametrize(("change", "key", "near"), WRONG)
def test_wrong_input_is_refused_with_file_and_key(here, capsys, change, key, near):
    write_case(here, pair("first-random") | change)
    assert run_launch() == 2
    error = capsys.readouterr().err
    assert f"options.json: {key}" in error and near in error and "Traceback" not in error
    assert not (here / "out_jobs.csv").exists()


def test_a_workload_is_needed(here, capsys):
    write_case(here, pair("first-random"))
    Path("workload.json").write_text(Path("custom.json").read_text())
    for more, where in (
        ((), "options.json: workload_file_path"),
        (("-cw", "costum.json"), "-cw"),
        (("-cw", "workload.json"), "-cw"),
    ):
        assert main(["hetero", "launch", "options.json", *more]) == 2
        assert where in capsys.readouterr().err


WRONG_JOBS = [
    ({"profile": {"req_time": 0}}, "profiles.p", "req_time"),
    ({"profile": {"mem": -4}}, "profiles.p", "mem"),
    ({"profile": {"mem_bw": "much"}}, "profiles.p", "mem_bw"),
    ({"profile": {"type": "paralel"}}, "profiles['p']", "type"),
    ({"profile": {"com": None}}, "profiles['p']", "com"),
    ({"jobs": [{"id": "x!1"}]}, "jobs[0]", "id"),
    ({"jobs": [{"res": -1}]}, "jobs[0]", "res"),
]


@pytest.mark.parametrize(("change", "where", "key"), WRONG_JOBS)
def test_wrong_jobs_are_refused_with_file_and_profile(here, capsys, change, where, key):
    write_case(here, pair("first-random"), **change)
    assert run_launch() == 2
    error = capsys.readouterr().err
    assert f"custom.json: {where}" in error and key in error and "Traceback" not in error
    assert not (here / "workload.json").exists()


def test_a_workload_without_jobs_is_refused(here, capsys):
    write_case(here, pair("first-random"))
    Path("custom.json").write_text('{"nb_res": 4, "jobs": [], "profiles": {}}')
    assert run_launch() == 2
    assert "custom.json: " in capsys.readouterr().err


def test_a_second_launch_in_one_directory_is_refused(here, capsys):
    write_case(here, pair("first-random"))
    hold = "\n".join(
        (
            "import pathlib, sys",
            "from schedlab.config.runtime.run_lock import hold",
            "hold(pathlib.Path('.hetero-launch.lock'))",
            "print('held', flush=True)",
            "sys.stdin.read()",
        )
    )
    other = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        assert run_launch() == 2
        assert str(here) in capsys.readouterr().err
    finally:
        other.communicate()


def test_the_console_script_is_the_same_command(here, monkeypatch):
    write_case(here, pair("first-low_power"))
    monkeypatch.setattr(sys, "argv", ["hdeeprm-launch", "options.json", "-cw", "custom.json"])
    assert hdeeprm_launch() == 0
    assert schedule()["makespan"] == pytest.approx(7.0)


def test_the_agent_may_stand_before_the_options_as_in_version_0_2_0(here, monkeypatch, capsys):
    pytest.importorskip("torch")
    write_case(here, options())
    words = ["hdeeprm-launch", "reinforce", "options.json", "--outmodel", "model.pt", "-cw", "custom.json"]
    monkeypatch.setattr(sys, "argv", words)
    assert hdeeprm_launch() == 0
    assert Path("model.pt").stat().st_size
    monkeypatch.setattr(sys, "argv", [*words, "-a", "actor_critic"])
    assert hdeeprm_launch() == 2
    assert "-a" in capsys.readouterr().err


def test_a_log_that_cannot_grow_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "rewards.log"
    append_lines(path, [1.5])
    real = __import__("os").pwrite
    monkeypatch.setattr(
        "os.pwrite",
        lambda handle, data, place: (
            real(handle, data[:2], place) if data.startswith(b"2.5") else real(handle, data, place)
        ),
    )
    with pytest.raises(OSError, match="disk is full"):
        append_lines(path, [2.5, 3.5])
    assert path.read_text() == "1.5\n"


def test_rows_stay_valid_json(tmp_path):
    path = tmp_path / "probs.json"
    for number in range(3):
        append_row(path, [0.25, number])
        assert len(json.loads(path.read_text())) == number + 1
    path.write_text('{"of": "another form"}')
    append_row(path, [1.0])
    assert json.loads(path.read_text()) == [[1.0]]
    assert json.loads((tmp_path / "probs.json.old").read_text()) == {"of": "another form"}
