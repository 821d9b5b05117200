"""`schedlab batch evaluate`: the recorded windows, the files that it writes, and what it refuses."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from conformance.batch_recorded import DATA, MEASURES, TRACES, packed, rows
from schedlab.cli.main import main
from schedlab.learning.checkpoints import write_checkpoint
from schedlab.studies.batch.commands.evaluate import read_window
from schedlab.studies.batch.commands.parser import add_window_arguments
from schedlab.studies.batch.learners.policy_files import save_priority
from schedlab.studies.batch.problem import RulePolicy
from schedlab.studies.batch.rules import PLANNER
from schedlab.workloads.swf import write_swf
from workloads.small_traces import trace

LINE = "{id} {submit} -1 {run} {procs} -1 -1 {procs} {requested} -1 1 {user} -1 -1 -1 -1 -1 -1\n"
HEADER = "; MaxNodes: 8\n; MaxProcs: 8\n"


def write(path: Path, *jobs: tuple[int, ...], header: str = HEADER) -> Path:
    """A trace of jobs (submit, run, requested, processors), numbered from 1."""
    text = header + "".join(
        LINE.format(id=number, submit=submit, run=run, requested=requested, procs=procs, user=number % 2)
        for number, (submit, run, requested, procs) in enumerate(jobs, 1)
    )
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert main(["batch", "evaluate", *map(str, arguments)]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["batch", "evaluate", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err
    return err


@pytest.mark.parametrize("trace", TRACES)
def test_the_recorded_windows(trace, capsys, tmp_path):
    recorded = [
        row
        for row in rows(DATA / "results.csv")
        if row["trace"] == trace and row["n"] == "256" and row["rule"] in ("f1", "wfp3")
    ]
    assert recorded
    for row in recorded:
        out = tmp_path / "starts.csv"
        backfill = ("none", "legacy")[int(row["backfill"])]
        where = (
            "--trace",
            DATA / f"{trace}.swf.gz",
            "--start",
            row["start"],
            "--jobs",
            row["n"],
            "--cleaning",
            "rlscheduler",
        )
        found = evaluate(capsys, *where, "--policy", row["rule"], "--backfill", backfill, "--starts", out)
        for name in MEASURES:
            assert found[name] == pytest.approx(float(row[name]), rel=1e-9)
        expected = packed(DATA / "starts.json.gz")[trace][row["start"]][row["n"]]
        with out.open() as file:
            written = list(csv.reader(file))
        assert written[0] == ["job_id", "start"]
        assert [int(job) for job, _ in written[1:]] == expected["job_ids"]
        assert [int(start) for _, start in written[1:]] == expected[f"{row['rule']}_bf{row['backfill']}"]


def test_plain_and_packed_traces_give_one_document(capsys, tmp_path):
    jobs = [(0, 10, 10, 6), (1, 100, 100, 8), (2, 5, 5, 2)]
    documents = []
    for name in ("a.swf", "a.swf.gz"):
        documents.append(
            evaluate(capsys, "--trace", write(tmp_path / name, *jobs), "--policy", "fcfs", "--backfill", "easy")
        )
        documents[-1].pop("trace")
    assert documents[0] == documents[1]
    assert documents[0]["avg_wait"] == pytest.approx((0 + 9 + 0) / 3)
    assert documents[0]["machine"] == {"nodes": 8, "processors": 8}


def test_several_policies_stand_beside_each_other(capsys, tmp_path):
    trace = write(tmp_path / "t.swf", (0, 9, 9, 8), (1, 5, 5, 8), (2, 50, 50, 8), (3, 5, 5, 8))
    alone = [evaluate(capsys, "--trace", trace, "--policy", name) for name in ("fcfs", "planner")]
    both = evaluate(capsys, "--trace", trace, "--policy", "fcfs", "planner")
    for document, of_policy in zip(alone, both.pop("policies"), strict=True):
        assert {**both, **of_policy} == document
    assert both["machine"] == {"nodes": 8, "processors": 8} and "avg_bsld" not in both
    assert alone[0]["avg_wait"] != alone[1]["avg_wait"]


def test_every_policy_without_learning_and_every_mode_runs(capsys, tmp_path):
    """On jobs of one user that run a tenth of what they request, predictions differ from requests."""
    jobs = [(60 * number, 20 + number % 7 * 30, 3000, 1 + number % 8) for number in range(300)]
    trace = write(tmp_path / "a.swf", *jobs)
    policies = [
        "fcfs",
        "planner",
        "f1_predicted",
        "costly_per_area_predicted",
        "smallest_area_true_times",
        "fcfs_waiting",
        "lxf",
        "slurm",
        "fcfs_backfill_sjf",
        "smallest_backfill_area",
        "easy_plus_plus",
        "easy_learned",
        "conservative",
    ]
    window = ("--trace", trace, "--start", 100, "--policy")
    found = evaluate(capsys, *window, *policies, "--backfill", "easy")
    assert [row["policy"] for row in found["policies"]] == policies
    modes = ("none", "easy", "easy_sjf", "easy_area", "easy_predicted", "conservative", "legacy")
    slowdown = {mode: evaluate(capsys, *window, "fcfs", "--backfill", mode)["avg_bsld"] for mode in modes}
    assert slowdown["easy"] < slowdown["none"] and slowdown["easy_predicted"] != slowdown["easy"]
    own = evaluate(capsys, *window, "fcfs_backfill_sjf", "fcfs_backfill_area", "easy_plus_plus", "--backfill", "easy")
    modes = ("easy_sjf", "easy_area", "easy_predicted")
    assert [row["avg_bsld"] for row in own["policies"]] == [slowdown[mode] for mode in modes]
    assert "--policy" in refused(capsys, *window, "easy_plus_plus")
    assert "contradicts" in refused(capsys, *window, "fcfs", "--backfill", "easy_sjf", "--backfill-order", "area")


def test_the_usage_of_the_machine_over_time(capsys, tmp_path):
    trace, out = write(tmp_path / "t.swf", (0, 10, 10, 6), (1, 9, 9, 2), (2, 5, 5, 8)), tmp_path / "usage.csv"
    evaluate(capsys, "--trace", trace, "--policy", "fcfs", "--usage", out)
    assert out.read_text() == "time,procs\n0,6\n1,8\n10,8\n15,0\n"


def test_cleaning_is_counted(capsys, caplog, tmp_path):
    jobs = [(5, 10, 10, 6), (1, 0, 100, 8), (2, 5, -1, 2), (3, 5, 5, 9), (4, -1, -1, 2)]
    trace = write(tmp_path / "a.swf", *jobs)
    found = evaluate(capsys, "--trace", trace, "--policy", "sjf", "--starts", tmp_path / "out.csv")
    assert found["jobs"] == 2
    counts = {rule: entry["jobs"] for rule, entry in found["cleaning"]["rules"].items() if entry["jobs"]}
    assert counts == {"too_large": 1, "no_time": 1, "missing_request": 1, "zero_run": 1}
    assert found["cleaning"]["out_of_order"] == 4
    assert (tmp_path / "out.csv").read_text() == "job_id,start\n3,2\n1,5\n"
    two = write(tmp_path / "b.swf", *jobs[:1], *jobs[2:3])
    for cleaning in ("default", "rlscheduler"):
        assert (
            evaluate(capsys, "--trace", two, "--policy", "sjf", "--cleaning", cleaning)["cleaning"]["out_of_order"] == 1
        )
    assert "1 of 2 jobs" in caplog.text


def test_jobs_out_of_order_are_taken_by_number_as_published_or_by_submission(capsys, caplog, tmp_path):
    trace, out = write(tmp_path / "a.swf", (100, 100, 100, 2), (5, 100, 200, 8), (6, 50, 60, 1)), tmp_path / "out.csv"
    how = ("--trace", trace, "--policy", "fcfs", "--starts", out)
    expected = {  # 1 comes at 100, 2 and 3 behind it
        ("rlscheduler", "none"): ["1,100", "2,200", "3,300"],
        ("rlscheduler", "legacy"): ["1,100", "2,200", "3,100"],
        ("default", "none"): ["2,5", "3,105", "1,105"],
        ("default", "easy"): ["2,5", "3,105", "1,105"],
    }
    for (cleaning, backfill), starts in expected.items():
        evaluate(capsys, *how, "--cleaning", cleaning, "--backfill", backfill)
        assert out.read_text().split() == ["job_id,start", *starts], (cleaning, backfill)
    assert "of their numbers" in caplog.text and "of submission" in caplog.text
    evaluate(capsys, *how, "--cleaning", "rlscheduler", "--start", 1, "--backfill", "easy")
    assert out.read_text().split() == ["job_id,start", "2,5", "3,105"]
    for backfill in ("easy", "conservative"):
        error = refused(capsys, *how, "--cleaning", "rlscheduler", "--backfill", backfill)
        assert all(name in error for name in ("a.swf", "job 2", "job 1", "order: submit"))


def test_a_policy_that_decides_job_by_job_asks_for_no_more_jobs_than_a_rule(tmp_path):
    class First:
        def reset(self, unit):
            pass

        def act(self, _, mask):
            return int(np.argmax(mask))

    trace, parser = write(tmp_path / "a.swf", (0, 10, 10, 0), (2, 5, 5, 2), (3, 5, 5, 8)), argparse.ArgumentParser()
    add_window_arguments(parser)
    read = read_window(
        parser.parse_args(["--trace", str(trace), "--cleaning", "rlscheduler", "--start", "2", "--jobs", "1"])
    )
    assert [read.problem.run(policy, read.unit).start.tolist() for policy in (RulePolicy("sjf"), First())] == [[3], [3]]


def test_jobs_that_the_cleaning_leaves_out_are_told(capsys, caplog, tmp_path):
    trace = write(tmp_path / "a.swf", (0, 10, 10, 6), (2, 5, 5, 2), (3, 5, 5, 8), (4, 0, 5, 1))
    assert evaluate(capsys, "--trace", trace, "--policy", "sjf", "--processors", 4)["jobs"] == 1
    assert "3 of 4 jobs" in caplog.text and "too_large 2, zero_run 1" in caplog.text
    caplog.clear()
    evaluate(capsys, "--trace", write(tmp_path / "b.swf", (0, 10, 10, 6)), "--policy", "sjf")
    assert "of 1 jobs" not in caplog.text


def test_a_trace_that_requests_no_times_goes_by_run_times_and_says_so(capsys, tmp_path):
    trace = write(tmp_path / "a.swf", (0, 10, -1, 8), (1, 9, -1, 8), (2, 3, -1, 8))
    for cleaning in ("default", "rlscheduler"):
        how = ("--policy", "sjf", "--backfill", "easy", "--cleaning", cleaning)
        found = evaluate(capsys, "--trace", trace, *how, "--starts", tmp_path / f"{cleaning}.csv")
        assert found["cleaning"]["rules"]["missing_request"] == {"action": "run", "jobs": 3}
        assert (tmp_path / f"{cleaning}.csv").read_text() == "job_id,start\n1,0\n2,13\n3,10\n"


def test_a_header_with_text_behind_the_number(capsys, tmp_path):
    header = "; MaxNodes: 4 (batch partition; 12 total)\n;MaxProcs :  8 in all\n"
    found = evaluate(capsys, "--trace", write(tmp_path / "a.swf", (0, 5, 5, 3), header=header), "--policy", "fcfs")
    assert found["machine"] == {"nodes": 4, "processors": 8}


def test_kill_and_warm_start(capsys, tmp_path):
    jobs = [(0, 1000, 1000, 4), (1, 10, 4, 8), (2, 3, 3, 8)]
    trace = write(tmp_path / "a.swf", *jobs)
    killed = evaluate(capsys, "--trace", trace, "--policy", "fcfs", "--start", 1, "--kill")
    assert killed["avg_wait"] == 1.5
    warm = ("--trace", trace, "--policy", "fcfs", "--start", 1, "--warm-start", "--seed", 3)
    found = evaluate(capsys, *warm)
    assert found["warm_start"] == {"jobs": 1, "seed": 3}
    assert found["avg_wait"] > killed["avg_wait"]
    assert evaluate(capsys, *warm) == found


GOOD = [(0, 10, 10, 6), (1, 5, 5, 8)]
LARGE = [(0, 10, 10, 9), (0, 10, 10, 10)]


@pytest.mark.parametrize(
    ("jobs", "header", "options", "named"),
    [
        (GOOD, HEADER, ["--policy", "wfp"], ["--policy", "wfp3"]),
        (GOOD, HEADER, ["--policy", "plan"], ["--policy", "planner"]),
        (GOOD, HEADER, ["--policy", "random"], ["--policy", "random"]),
        (GOOD, HEADER, ["--policy", "my_rules/patient.py:Patient"], ["--policy", "my_rules/patient.py:Patient"]),
        (GOOD, HEADER, ["--policy", "sjf_waiting"], ["sjf_waiting"]),
        (GOOD, HEADER, ["--policy", "fcfs", "f22"], ["--policy", "f2"]),
        (GOOD, HEADER, ["--policy", "learned:nowhere.zip"], ["nowhere.zip"]),
        (GOOD, HEADER, ["--policy", "learned:."], ["."]),
        (GOOD, HEADER, ["--policy", "fcfs", "sjf", "--starts", "out.csv"], ["--starts"]),
        (GOOD, HEADER, ["--policy", "fcfs", "sjf", "--usage", "out.csv"], ["--usage"]),
        (GOOD, HEADER, ["--backfill-order", "area"], ["--backfill-order", "area"]),
        (GOOD, HEADER, ["--start", "2"], ["a.swf", "from 0 to 1"]),
        (GOOD, HEADER, ["--start", "-1"], ["a.swf", "start -1"]),
        (GOOD, HEADER, ["--start", "1", "--jobs", "2"], ["a.swf", "from 1 to 1"]),
        (GOOD, HEADER, ["--jobs", "0"], ["a.swf", "0 jobs"]),
        (GOOD, "", [], ["a.swf", "--processors"]),
        (GOOD, "; MaxNodes: 8\n; MaxProcs: many\n", [], ["a.swf", "line 2", "MaxProcs"]),
        (GOOD, "; MaxNodes: 9\n; MaxProcs: 8\n", [], ["a.swf", "MaxNodes", "MaxProcs"]),
        (LARGE, HEADER, ["--cleaning", "rlscheduler"], ["a.swf", "job 1", "1 to 8 processors"]),
        (LARGE, HEADER, [], ["a.swf"]),
        ([], HEADER, [], ["a.swf"]),
    ],
)
def test_refusals(jobs, header, options, named, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = write(tmp_path / "a.swf", *jobs, header=header)
    error = refused(capsys, "--trace", trace, *([] if "--policy" in options else ["--policy", "fcfs"]), *options)
    assert all(name in error for name in named), error
    assert not (tmp_path / "out.csv").exists()


def test_a_trace_that_is_not_there_is_named(capsys, tmp_path):
    assert "none.swf" in refused(capsys, "--trace", tmp_path / "none.swf", "--policy", "fcfs")


@pytest.mark.parametrize("header", ["", "; MaxNodes: 8\n; MaxProcs: many\n"])
def test_an_option_gives_the_size_that_a_header_does_not(header, capsys, tmp_path):
    trace = write(tmp_path / "a.swf", (0, 10, 10, 6), header=header)
    found = evaluate(capsys, "--trace", trace, "--policy", "fcfs", "--processors", 8)
    assert found["util_makespan"] == 0.75 and found["machine"] == {"nodes": 8, "processors": 8}


def test_options_of_no_meaning_end_with_status_2(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["batch", "evaluate", "--trace", "a.swf", "--policy", "fcfs", "--backfill", "eazy"])
    assert stopped.value.code == 2
    assert "conservative" in capsys.readouterr().err


def test_the_planner_and_a_learned_policy_by_file(capsys, tmp_path):
    trace = write(tmp_path / "t.swf", (0, 9, 9, 8), (1, 50, 50, 8), (1, 5, 5, 2), (2, 5, 5, 2))
    save_priority(tmp_path / "policy.zip", PLANNER)
    where = ("--trace", trace, "--backfill", "easy", "--backfill-order", "area")
    planned = evaluate(capsys, *where, "--policy", "planner")
    learned = evaluate(capsys, *where, "--policy", f"learned:{tmp_path / 'policy.zip'}")
    assert planned["backfill_order"] == "area"
    assert learned == planned | {"policy": f"learned:{tmp_path / 'policy.zip'}"}
    write_checkpoint(tmp_path / "other.zip", {"kind": "cloud-reinforce"})
    error = refused(capsys, "--trace", trace, "--policy", f"learned:{tmp_path / 'other.zip'}")
    assert all(name in error for name in ("other.zip", "cloud-reinforce", "batch-priority", "stable-baselines"))


def test_what_decisions_cost_is_printed_and_recorded(capsys, caplog, tmp_path):
    trace = write(tmp_path / "t.swf", (0, 9, 9, 8), (1, 50, 50, 8), (1, 5, 5, 2), (2, 5, 5, 2))
    save_priority(tmp_path / "policy.zip", PLANNER)
    learned = f"learned:{tmp_path / 'policy.zip'}"
    command = ["batch", "latency", "--trace", str(trace), "--policy", "fcfs", learned]
    command += ["--labels", "fcfs", "searched", "--repeats", "3"]
    assert main([*command, "--out", str(tmp_path / "record.json")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in document["measured"]] == ["fcfs", "searched"] and document["jobs"] == 4
    assert all(len(row["us_per_decision"]) == 3 and row["median"] >= 0 for row in document["measured"])
    assert json.loads((tmp_path / "record.json").read_text()) == document
    nowhere = ["--policy", "fcfs", "learned:nowhere.zip"]
    caplog.clear()
    assert main([*command[:4], *nowhere]) == 2
    assert "nowhere.zip" in capsys.readouterr().err and "fcfs" not in caplog.text  # before anything is measured
    for wrong, named in (
        (["--out", str(tmp_path / "record.json")], "record.json"),
        (["--repeats", "0"], "--repeats"),
        (["--labels", "one"], "--labels"),
    ):
        assert main([*command, *wrong]) == 2
        assert named in capsys.readouterr().err


def test_jobs_follow_others_on_request(tmp_path, capsys):
    following = {"preceding_job": 1, "think_time": 7}
    write_swf(tmp_path / "log.swf", trace({"run": 50, "procs_allocated": 8}, following, {}))
    where = ("--trace", tmp_path / "log.swf", "--policy", "fcfs")
    assert evaluate(capsys, *where)["avg_wait"] == (49 + 48) / 3
    assert evaluate(capsys, *where, "--dependencies")["avg_wait"] == 48 / 3  # job 2 arrives at 58, on a free machine
