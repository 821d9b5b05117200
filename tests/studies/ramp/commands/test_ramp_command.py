"""`schedlab ramp replay` and `schedlab ramp episode`: one JSON document, or one paragraph and exit status 2."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest

from schedlab.cli.main import main
from schedlab.studies.ramp.rules import ALIASES, RULES

CASE = Path(__file__).parents[3] / "data" / "ramp" / "c01_one_server_sequential.json"
CHAIN = CASE.with_name("c02_chain_degree2.json")
SHIPPED = Path(__file__).parents[4] / "resources" / "graphs" / "a100"


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


def test_an_episode_of_the_shipped_graphs(capsys, monkeypatch):
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    arguments = ["episode", "--policy", "fixed_4", "--end", "20000", "--seed", "3"]
    found = printed(capsys, *arguments)
    assert found["num_jobs_arrived"] == 21
    assert found == printed(capsys, *arguments)


def test_an_episode_of_the_published_graphs(shared_data, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # any working directory
    assert main(["ramp", "episode", "--policy", "para_max", "--beta", "A", "--seed", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["num_jobs_arrived"] == 1001
    assert found["blocking_rate"] == pytest.approx(0.262, abs=0.03)  # default mode, one seed
    assert found["graphs"] == sorted(path.stem for path in (shared_data / "graphs").glob("*.txt"))


def test_the_shipped_graphs_get_degrees_that_have_a_block_unless_as_published(capsys, monkeypatch):
    """Short ops of traced graphs would be split 12 ways, which no block of 32 servers takes: most jobs would never
    be placed.
    """
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    arguments = ["episode", "--policy", "para_max", "--beta", "D", "--end", "60000"]
    repaired, given, published = (
        printed(capsys, *arguments, *more) for more in ([], ["--graphs", SHIPPED], ["--compat"])
    )
    assert repaired == given
    assert repaired["blocking_rate"] < 0.4 < 0.7 < published["blocking_rate"]


def test_an_episode_is_a_line_for_each_key_and_the_summary_has_no_lists_of_jobs(capsys):
    arguments = ["ramp", "episode", "--policy", "fixed_4", "--end", "20000", "--graphs", str(SHIPPED)]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    document, lines = json.loads(told), told.splitlines()
    assert (
        [line.strip().split('"')[1] for line in lines[1:-1]] == list(document) and lines[0] == "{" and lines[-1] == "}"
    )
    summary = printed(capsys, *arguments[1:], "--summary")
    assert {"policy", "graphs", "blocking_rate", "num_jobs_arrived"} <= set(summary)
    left_out = {key: document.pop(key) for key in set(document) - set(summary)}
    assert document == summary and "job_completion_time" in left_out
    assert {len(value) for value in left_out.values()} <= {summary["num_jobs_completed"], summary["num_jobs_blocked"]}


def test_shipped_graphs_are_taken_silently_unless_the_folder_of_data_lacks_its_own(
    capsys, caplog, monkeypatch, tmp_path
):
    arguments = ["episode", "--policy", "sequential", "--end", "2000"]
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    shipped = printed(capsys, *arguments, "--graphs", SHIPPED)
    assert printed(capsys, *arguments) == shipped and caplog.messages == []
    monkeypatch.setenv("SCHEDLAB_DATA", str(tmp_path))
    assert printed(capsys, *arguments) == shipped
    assert len(caplog.messages) == 1 and str(tmp_path / "graphs") in caplog.messages[0]


def test_a_degree_or_cap_without_a_block_is_refused_with_those_that_have_one(capsys):
    """Split 3 ways it would be fixed_2 under another name; capped at 12 it would ask for 12 shards and block every
    job.
    """
    arguments = ["episode", "--end", "2000", "--graphs", SHIPPED, "--policy"]
    for name in ("fixed_3", "fixed_18", "sip_ml_12"):
        said = refused(capsys, *arguments, name)
        assert "--policy" in said and f"{name.rpartition('_')[0]}_16" in said
    assert printed(capsys, *arguments, "fixed_6")["num_jobs_arrived"] == 3
    uncapped = printed(capsys, *arguments, "sip_ml_99")
    assert uncapped | {"policy": "sip_ml"} == printed(capsys, *arguments, "sip_ml")


def test_an_unknown_policy_is_answered_with_all_that_there_are_and_no_alias(capsys):
    said = refused(capsys, "episode", "--graphs", SHIPPED, "--policy", "foo")
    assert all(rule in said for rule in RULES) and not any(
        alias in said for alias in ALIASES if alias not in " ".join(RULES)
    )


def test_logs_of_an_episode_are_tables(capsys, tmp_path):
    steps, jobs = tmp_path / "steps.parquet", tmp_path / "jobs.parquet"
    found = printed(
        capsys,
        "episode",
        "--policy",
        "para_min",
        "--end",
        "20000",
        "--graphs",
        SHIPPED,
        "--steps",
        steps,
        "--jobs",
        jobs,
    )
    logged = pd.read_parquet(steps)
    assert logged["num_jobs_completed"].sum() == found["num_jobs_completed"]
    assert logged["demand_total_info_processed"].sum() == pytest.approx(found["demand_total_info_processed"])
    assert (pd.read_parquet(jobs)["cause"] != "").sum() == found["num_jobs_blocked"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--policy", "para_mx"], "para_max"),
        (["--policy", "max_paralelism"], "max_parallelism"),
        (["--policy", "fixed_\u00b2"], "fixed_\u00b2"),
        (["--policy", "table"], "sequential"),
        (["--policy", "afterstate-uniform"], "afterstate-uniform"),
        (["--policy", "sip_ml_0"], "sip_ml_0"),
        (["--policy", "para_max", "--seed", "-1"], "--seed"),
        (["--policy", "para_max", "--interarrival", "0"], "--interarrival"),
        (["--policy", "para_max", "--end", "nan"], "--end"),
        (["--policy", "para_max", "--end", "1e300"], "--end"),
    ],
)
def test_wrong_options_are_named(capsys, arguments, named):
    assert named in refused(capsys, "episode", "--graphs", SHIPPED, *arguments)


def test_an_empty_folder_of_graphs_is_named(capsys, tmp_path):
    assert str(tmp_path) in refused(capsys, "episode", "--policy", "para_max", "--graphs", tmp_path)


COSTS = "forward_compute_time={}, backward_compute_time=2.0, activation_size={}, parameter_size=0.0"
OPS = [f"node{number} -- Conv2d(3) -- {COSTS.format(3000.0, 4.0)}" for number in (1, 2)]


def one_graph(folder, activation):
    """A folder with one graph: two ops of 3000 s, of which the first holds `activation` bytes in each pass."""
    first = f"node1 -- Conv2d -- {COSTS.format(3000.0, activation)}"
    (folder / "net.txt").write_text("\n".join([first, OPS[1], "\tnode1 -- node2"]))
    return folder


@pytest.mark.parametrize(
    ("policy", "activation", "compat"),
    [("sequential", 50e9, []), ("sequential", 50e9, ["--compat"]), ("fixed_2", 90e9, [])],
)
def test_memory_that_does_not_fit_blocks_jobs_with_its_cause(capsys, tmp_path, policy, activation, compat):
    jobs = tmp_path / "jobs.parquet"
    arguments = [
        "--policy",
        policy,
        "--graphs",
        one_graph(tmp_path, activation),
        "--end",
        "20000",
        "--jobs",
        jobs,
        *compat,
    ]
    assert printed(capsys, "episode", *arguments)["blocking_rate"] > 0.9
    assert set(pd.read_parquet(jobs)["cause"]) == {"op_placement"}


@pytest.mark.parametrize(("policy", "compat"), [("sequential", []), ("para_max", ["--compat"])])
def test_the_largest_numbers_give_numbers(capsys, tmp_path, policy, compat):
    (tmp_path / "net.txt").write_text(
        "\n".join([OPS[0].replace("3000.0", "1e300"), OPS[1].replace("=4.0", "=1e300"), "\tnode1 -- node2"])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = printed(capsys, "episode", "--policy", policy, "--graphs", tmp_path, "--end", "20000", *compat)
    assert found["num_jobs_arrived"] == 21


def test_the_mask_of_free_blocks_is_an_option_and_betas_have_small_letters_too(capsys):
    arguments = ["episode", "--policy", "random", "--graphs", SHIPPED, "--end", "60000", "--beta"]
    given, known = (printed(capsys, *arguments, *more) for more in (["A"], ["a", "--mask", "blocks"]))
    assert known["beta"] == "A"
    assert known["blocking_rate"] < given["blocking_rate"]


def test_what_is_printed_tells_no_folder(capsys, tmp_path):
    """The same graphs elsewhere give the same bytes."""
    found = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        found.append(
            printed(
                capsys, "episode", "--policy", "fixed_2", "--end", "5000", "--graphs", one_graph(tmp_path / name, 1e9)
            )
        )
    assert found[0] == found[1]
    assert found[0]["graphs"] == ["net"]


def test_a_cap_stands_behind_the_name_of_its_rule(capsys):
    arguments = ["--graphs", SHIPPED, "--end", "20000", "--policy"]
    capped, fixed, most = (
        printed(capsys, "episode", *arguments, policy) for policy in ("sip_ml_8", "fixed_8", "sip_ml")
    )
    assert capped.pop("policy") != fixed.pop("policy")
    assert capped == fixed  # 8 servers are always free here
    assert capped["blocking_rate"] != most["blocking_rate"]


def test_memory_that_fits_blocks_nothing(capsys, tmp_path):
    arguments = [
        "--policy",
        "para_max",
        "--graphs",
        one_graph(tmp_path, 1e9),
        "--end",
        "10000",
        "--interarrival",
        "9000",
    ]
    assert printed(capsys, "episode", *arguments)["blocking_rate"] == 0


def changed_case(folder, **inputs):
    """A recorded job of four ops with other inputs."""
    document = json.loads(CHAIN.read_text())
    del document["expected"]
    document["inputs"] |= inputs
    path = folder / "case.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("action", "message"),
    [(3, "action 3 is not valid"), (1000, "action 1000 is not valid"), (None, "job 0 has no recorded action")],
)
def test_an_action_that_is_not_valid_stands_in_the_document(capsys, tmp_path, action, message):
    """Where masks are enforced the run stops there; the status says that the input is wrong."""
    given = {"decisions": [{"job_idx": 0, "action": action}], "apply_action_mask": True}
    assert main(["ramp", "replay", str(changed_case(tmp_path, **given))]) == 2
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert message in found["error"]["message"]
    assert message in err
    assert found["episode"]["num_jobs_arrived"] == 1


@pytest.mark.parametrize(("name", "cap"), [("sip_ml", 2), ("SiPML", 4), ("sip_ml", None)])
def test_the_parameter_of_an_agent_is_read(capsys, tmp_path, name, cap):
    given = {"agent": name, "agent_kwargs": {"max_partitions_per_op": cap}, "decisions": []}
    found = printed(capsys, "replay", changed_case(tmp_path, **given), "--compat")
    assert {job["degree"] for job in found["jobs"].values()} == {cap or 8}  # of 8 servers


@pytest.mark.parametrize("compat", [True, False])
def test_more_shards_than_letters_have_names_of_their_own(capsys, tmp_path, compat):
    topology = json.loads(CHAIN.read_text())["inputs"]["topology"] | {
        "communication_groups": 4,
        "racks_per_group": 4,
        "servers_per_rack": 2,
    }
    changes = {"topology": topology, "max_partitions_per_op": 32, "decisions": [{"job_idx": 0, "action": 32}]}
    case = changed_case(tmp_path, **changes, min_op_run_time_quantum=1e-6)
    found = printed(capsys, "replay", case, *(["--compat"] if compat else []))["jobs"]["0"]
    assert found["max_partition_degree"] == 32
    assert len(found["placement"]) == found["num_ops"], "each shard has a name of its own"
    assert ("2{" in found["placement"]) == compat
    assert ("2aa" in found["placement"]) == (not compat)


DRAWING_EPISODE = """
import json
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.simulator.job_tables import job_table
from schedlab.studies.ramp.scenario import published_scenario
from schedlab.studies.ramp.commands.episode import plain
from schedlab.studies.ramp.rules import ALIASES, RULES
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode

for management in ({"placer": "random"}, {"shaper": "random"}, {"partitioner": "random"}):
    management["illegal_degrees"] = "round_down"
    scenario = published_scenario("A", True, management=management, episodes={"end": 8e3})
    simulation = Simulation(scenario, read_graphs(find_graphs("resources/graphs/a100")))
    print(json.dumps(plain(run_episode(simulation, RULES["random"], 0))))
    print(job_table(simulation.cluster, simulation.decided).to_csv())
"""


@pytest.mark.slow
def test_an_episode_has_the_same_bytes_whatever_the_hash_seed():
    printed_of = {
        seed: subprocess.run(
            [sys.executable, "-c", DRAWING_EPISODE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed_of["1"].splitlines()) > 27  # three episodes of 9 jobs
    assert printed_of["1"] == printed_of["2"]
