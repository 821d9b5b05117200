"""`schedlab ramp replay` and `schedlab ramp episode`: one JSON document, or one paragraph and exit status 2."""

import json
from pathlib import Path

import pandas as pd
import pytest

from schedlab.cli.main import main

CASE = Path(__file__).parents[2] / "data" / "ramp" / "c01_one_server_sequential.json"
SHIPPED = Path(__file__).parents[3] / "resources" / "graphs" / "a100"


def printed(capsys, *arguments):
    assert main(["ramp", *map(str, arguments)]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert main(["ramp", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err
    return err


def test_replay_prints_what_was_expected(capsys, tmp_path):
    document = json.loads(CASE.read_text())
    expected = document.pop("expected")
    case = tmp_path / "case.json"
    case.write_text(json.dumps(document))
    found = printed(capsys, "replay", case, "--compat")
    assert list(found) == ["original_graphs", "decisions", "jobs", "steps", "episode", "error"]
    assert found["jobs"]["0"]["jct"] == expected["jobs"]["0"]["jct"]


def test_infinite_times_are_words(capsys):
    found = printed(capsys, "replay", CASE.with_name("c27_reject_all.json"), "--compat")
    assert found["episode"]["episode_end_time"] == "inf"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no valid JSON"),
        ("[]", "expected an object"),
        ('{"schema": "other"}', "the schema is 'other'"),
        ('{"schema": "ramp-truth/1"}', "inputs: the key is missing"),
        ('{"inputs": {"graphs": {"g": {"ops": [[1, "A", 1, 1, 1]], "edges": []}}}}', "graphs.g.ops.0"),
    ],
)
def test_a_wrong_case_is_named(capsys, tmp_path, text, message):
    case = tmp_path / "wrong.json"
    case.write_text(text)
    said = refused(capsys, "replay", case)
    assert message in said
    assert "wrong.json" in said


def test_a_case_that_is_not_there_is_named(capsys, tmp_path):
    assert "there is no such file" in refused(capsys, "replay", tmp_path / "none.json")


def test_an_episode_of_the_shipped_graphs(capsys, monkeypatch):
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    arguments = ["episode", "--policy", "fixed_4", "--end", "20000", "--seed", "3"]
    found = printed(capsys, *arguments)
    assert found["num_jobs_arrived"] == 21
    assert found == printed(capsys, *arguments)


def test_logs_of_an_episode_are_tables(capsys, tmp_path):
    steps, jobs = tmp_path / "steps.parquet", tmp_path / "jobs.parquet"
    found = printed(capsys, "episode", "--policy", "para_min", "--end", "20000", "--graphs", SHIPPED, "--steps", steps, "--jobs", jobs)
    logged = pd.read_parquet(steps)
    assert logged["num_jobs_completed"].sum() == found["num_jobs_completed"]
    assert logged["demand_total_info_processed"].sum() == pytest.approx(found["demand_total_info_processed"])
    assert (pd.read_parquet(jobs)["cause"] != "").sum() == found["num_jobs_blocked"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "para_mx"], "did you mean 'para_max'"),
        (["--policy", "para_max", "--seed", "-1"], "--seed"),
        (["--policy", "para_max", "--interarrival", "0"], "--interarrival"),
        (["--policy", "para_max", "--end", "nan"], "--end"),
    ],
)
def test_wrong_options_are_named(capsys, arguments, message):
    assert message in refused(capsys, "episode", "--graphs", SHIPPED, *arguments)


def test_an_empty_folder_of_graphs_is_named(capsys, tmp_path):
    assert str(tmp_path) in refused(capsys, "episode", "--policy", "para_max", "--graphs", tmp_path)
