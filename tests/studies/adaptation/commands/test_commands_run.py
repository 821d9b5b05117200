"""`schedlab adaptation run` in a folder where the workflow has made tables and policies."""

from __future__ import annotations

import json
import math
import runpy
import shutil
from itertools import accumulate, cycle
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from schedlab.cli.main import main
from schedlab.config import experiment
from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.files import read_table, write_table
from schedlab.stages.studies import find_study
from schedlab.studies.adaptation import prepare
from schedlab.studies.adaptation import scenario as scenarios
from schedlab.studies.adaptation.commands import run as commands_run
from schedlab.studies.adaptation.commands.acting import RunProblem
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.problem import setup_of
from small_conf import write_conf

RESULTS = Path("results/small/adaptation")
POLICY_FILE = """
import numpy as np


class First:
    stochastic = False

    def __init__(self, params, problem, seed):
        self.actions = problem.tree.actions

    def reset(self, unit):
        pass

    def decide(self, decision):
        return np.eye(self.actions)[0]

    def act(self, observation, mask):
        raise AssertionError("it decides")


class Looking:
    def __init__(self, params, problem, seed):
        self.seen = []

    def reset(self, unit):
        pass

    def act(self, observation, mask):
        self.seen.append(float(observation.sum()))
        return int(mask.size - 2) if len(self.seen) == 1 else 0
"""

SLOPE_POLICY = """
import numpy as np


class Steep:
    stochastic = False
    reads_slope = True

    def __init__(self, params, problem, seed):
        pass

    def reset(self, unit):
        pass

    def decide(self, decision):
        nothing = 0.5 + decision.slope / 4
        return np.array([1 - nothing, 0, 0, nothing])

    def act(self, observation, mask):
        raise AssertionError("it decides")
"""


def entry(sequence: str, replicate: int = 0) -> dict:
    """An entry of the table."""
    table = read_table(RESULTS / "tiny" / "inputs" / "table.parquet")
    (row,) = table[(table["sequence"] == sequence) & (table["replicate"] == replicate)].to_dict("records")
    return row


@pytest.mark.parametrize(
    ("who", "replicate"),
    [
        (("--policy", "exact-tiny"), 0),
        (("--policy", "always-1"), 1),
        (("--policy", "never"), 0),
        (("--sequence", "03"), 1),
    ],
)
def test_the_outcome_is_the_table_s_bit_for_bit(run, who: tuple[str, str], replicate: int) -> None:
    status, document, log = run("run", "--scenario", "tiny", *who, "--replicate", replicate, "--check")
    assert status == 0
    assert document["outcome"] == entry(document["sequence"], replicate)
    assert document["table"] == {"file": str(RESULTS / "tiny/inputs/table.parquet"), "equal": True, "differences": {}}
    assert [decision["time_left"] for decision in document["decisions"]] == [
        document["outcome"][f"time_left_{i}"] for i in (1, 2)
    ]
    assert "s left" in log


def test_a_learned_policy_is_asked_at_each_decision(run) -> None:
    _, document, _ = run("run", "--scenario", "tiny", "--policy", "exact-tiny")
    decisions = document["decisions"]
    assert "".join(str(decision["action"]) for decision in decisions) == document["sequence"]
    assert all(
        math.isclose(sum(decision["probabilities"]), 1) and len(decision["probabilities"]) == 4
        for decision in decisions
    )
    table = read_table(RESULTS / "tiny" / "inputs" / "table.parquet")
    learned_on = table[table["replicate"] == 0]  # the other one is kept for testing
    assert document["sequence"] == learned_on.loc[learned_on["validation_loss"].idxmin(), "sequence"]


def test_rules_that_read_the_table_or_draw(run) -> None:
    _, best, _ = run("run", "--scenario", "tiny", "--policy", "exhaustive", "--replicate", 1)
    table = read_table(RESULTS / "tiny" / "inputs" / "table.parquet")
    own = table[table["replicate"] == 1]
    assert best["sequence"] == own.loc[own["validation_loss"].idxmin(), "sequence"]
    drawn = {
        run("run", "--scenario", "tiny", "--policy", "random", "--seed", seed)[1]["sequence"] for seed in (0, 1, 2)
    }
    assert len(drawn) > 1
    again = {run("run", "--scenario", "tiny", "--policy", "random", "--seed", 1)[1]["sequence"] for _ in range(2)}
    assert len(again) == 1


def test_policies_of_the_user_s_own_file(run, here: Path) -> None:
    (here / "mine.py").write_text(POLICY_FILE)
    conf = write_conf(here / "own")
    file = conf / "scenario/adaptation/tiny.yaml"
    rules = "rules: [{name: first, target: 'mine.py:First'}, {name: looking, target: 'mine.py:Looking'}]"
    file.write_text("\n".join(rules if line.startswith("rules:") else line for line in file.read_text().splitlines()))
    for name, sequence in (("first", "00"), ("looking", "20")):
        status, document, _ = run("run", "--scenario", "tiny", "--policy", name, "--conf", conf, "--check")
        assert (status, document["sequence"]) == (0, sequence)


def test_a_checkpoint_that_no_file_of_the_configuration_describes(run) -> None:
    for name in ("exact-tiny", "constant-tiny"):
        checkpoint = RESULTS / "policies" / name / "seed-0" / "policy.zip"
        status, document, _ = run("run", "--scenario", "tiny_late", "--policy", "mine", "--checkpoint", checkpoint)
        assert status == 0
        assert document["table"] is None
        assert len(document["sequence"]) == 2


def test_mode_reference_and_curves(run) -> None:
    _, published, _ = run("run", "--scenario", "tiny", "--sequence", "03", "--compat", "--check")
    assert published["mode"] == "reference"
    assert published["table"] is None
    _, plain, _ = run("run", "--scenario", "tiny", "--sequence", "03")
    _, curves, _ = run("run", "--scenario", "tiny", "--sequence", "03", "--curves")
    assert published["outcome"]["test_accuracy"] != plain["outcome"]["test_accuracy"]
    slopes = {name: value for name, value in curves["outcome"].items() if name.startswith("slope_")}
    assert curves["outcome"] == plain["outcome"] | slopes and list(slopes) == ["slope_1", "slope_2"]
    assert curves["table"]["equal"]
    assert [row["test_loss"] is None for row in plain["epochs"]].count(True) == len(plain["epochs"]) - 2
    assert all(row["test_loss"] is not None for row in curves["epochs"])


def test_without_json_a_run_is_told_in_a_few_lines(here: Path, capsys: pytest.CaptureFixture) -> None:
    assert (
        here == Path.cwd()
        and main(["adaptation", "run", "--scenario", "tiny", "--policy", "exact-tiny", "--weights", "told.npz"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    row = entry(lines[4].split()[1].rstrip(":"))
    assert all(name in lines[0] for name in ("tiny", "small", "exact-tiny")) and "pinned" in lines[1]
    assert "40 s" in lines[2]
    assert f"{row['epochs']} epochs, {row['seconds_charged']:g} s charged" in lines[4]
    assert lines[7] == f"test: log loss {row['test_loss']:.4f}, accuracy {row['test_accuracy']:.4f}"
    assert lines[8:] == [
        f"the table {RESULTS / 'tiny/inputs/table.parquet'} holds the same, bit for bit",
        "the network: told.npz",
    ]


def test_the_wall_clock_charges_what_epochs_took(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """This clock says 4 s for training and 1 s for evaluation, so that twice as many epochs fit."""
    ticks = accumulate(cycle((0.0, 4.0, 1.0)))
    monkeypatch.setattr(commands_run, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    status, document, _ = run("run", "--scenario", "tiny", "--sequence", "03", "--clock", "wall")
    assert (status, document["clock"], document["table"], document["sequence"]) == (0, "wall", None, "03")
    assert [(row["epoch"], row["train_seconds"], row["eval_seconds"]) for row in document["epochs"]] == [
        (n, 4, 1) for n in range(6, 14)
    ]
    assert document["outcome"]["seconds_charged"] == 40
    assert (
        run("run", "--scenario", "tiny", "--sequence", "03", "--clock", "wall", "--check")[0] == 1
    )  # there is nothing to hold it to


def test_a_policy_that_reads_the_slope_is_asked_while_the_run_is_trained(run, here: Path) -> None:
    (here / "steep.py").write_text(SLOPE_POLICY)
    conf = write_conf(here / "steep")
    file = conf / "scenario/adaptation/tiny.yaml"
    rules = "rules: [{name: steep, target: 'steep.py:Steep'}]"
    file.write_text("\n".join(rules if line.startswith("rules:") else line for line in file.read_text().splitlines()))
    status, document, _ = run("run", "--scenario", "tiny", "--policy", "steep", "--conf", conf, "--check")
    assert status == 0 and document["table"]["equal"]
    _, curves, _ = run("run", "--scenario", "tiny", "--sequence", document["sequence"], "--curves")
    told = [decision["probabilities"][3] for decision in document["decisions"]]
    assert told == pytest.approx([0.5 + curves["outcome"][f"slope_{i}"] / 4 for i in (1, 2)])


def test_another_outcome_in_the_table_is_told(run, here: Path) -> None:
    conf = write_conf(here / "changed")
    file = conf / "scenario/adaptation/tiny.yaml"
    file.write_text(file.read_text().replace("batch_size: 32", "batch_size: 31"))
    status, document, log = run("run", "--scenario", "tiny", "--sequence", "33", "--conf", conf, "--check")
    assert status == 1
    assert not document["table"]["equal"]
    assert "train_loss" in document["table"]["differences"]
    assert "another outcome" in log
    assert run("run", "--scenario", "tiny_late", "--sequence", "33", "--check")[0] == 1


def damage(kind: str, table: Path) -> None:
    if kind == "cut off":
        table.write_bytes(table.read_bytes()[:500])
    else:
        write_table(table, read_table(table).rename(columns={"replicate": "repeat"}))


@pytest.mark.parametrize(
    ("kind", "told"), [("cut off", "cannot be read"), ("other columns", "column 'replicate' is missing")]
)
def test_a_damaged_table_costs_the_comparison_only(run, here: Path, kind: str, told: str) -> None:
    results, weights = here / f"damaged-{kind}", here / f"{kind}.npz"
    shutil.copytree(here / "results", results)
    table = results / "small/adaptation/tiny/inputs/table.parquet"
    damage(kind, table)
    status, document, log = run(
        "run", "--scenario", "tiny", "--sequence", "33", "--results", results, "--weights", weights
    )
    assert (status, document["table"], document["weights"]) == (2, None, str(weights))
    assert told in log and str(table) in log and "Traceback" not in log
    assert run("predict", weights)[1]["log_loss"] == document["epochs"][-1]["test_loss"]
    status, document, log = run(
        "run", "--scenario", "tiny", "--policy", "exhaustive", "--results", results
    )  # it reads the table itself
    assert (status, document) == (2, {})
    assert "error: " in log and "Traceback" not in log


class Named(list):
    """Files of a job, as Snakemake gives them to a script: in a row, and by their names."""

    def __init__(self, **named: str | list[str]) -> None:
        super().__init__(file for files in named.values() for file in ([files] if isinstance(files, str) else files))
        self.__dict__.update(named)


def run_script(name: str, repository: Path, monkeypatch: pytest.MonkeyPatch, **job: object) -> None:
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")  # so that what the script sets is undone
    runpy.run_path(str(repository / "workflow/scripts" / name), {"snakemake": SimpleNamespace(**job)})


def test_device_auto_is_the_processor_where_there_is_no_gpu_and_is_told(
    run, here: Path, repository: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    loaded = experiment.load(here / "conf", "small", find_study)
    config = loaded.part_file("adaptation", "tiny", "simulate_adaptation")
    values = yaml.safe_load(Path(config).read_text())
    values["training"]["device"] = "auto"
    (tmp_path / "part.yaml").write_text(yaml.safe_dump(values))
    data = Path(loaded.part_folder("adaptation", "tiny", "check_data"), "data.npz")
    device = prepare.simulate_adaptation(
        tmp_path / "part.yaml", 0, data, here / "store", {0: tmp_path / "run-0.parquet"}
    )
    assert (tmp_path / "run-0.parquet").read_bytes() == (here / "run-0.parquet").read_bytes()
    assert (device["device"]["asked"], device["device"]["used"]) == ("auto", "cpu") and device["device"]["name"]
    files = Named(config=str(tmp_path / "part.yaml"), data=str(data))
    job = {
        "input": files,
        "params": SimpleNamespace(store=str(here / "store"), replicates=[0]),
        "log": [str(tmp_path / "log")],
    }
    made = Named(runs=[str(tmp_path / "run-0.parquet")])
    run_script(
        "simulate_adaptation.py", repository, monkeypatch, output=made, wildcards=SimpleNamespace(job="0"), **job
    )
    told = json.loads((tmp_path / "run-0.provenance.json").read_text())
    assert told["outputs"] == made.runs and {"device": told["device"]} == device
    made = Named(trunk=str(tmp_path / "trunk.parquet"))
    config = yaml.safe_load(Path(loaded.part_file("adaptation", "tiny", "train_trunk")).read_text())
    config["training"]["device"] = "auto"
    (tmp_path / "part.yaml").write_text(yaml.safe_dump(config))
    run_script("train_trunk.py", repository, monkeypatch, output=made, **job)
    assert {"device": json.loads((tmp_path / "provenance.json").read_text())["device"]} == device
    assert not (tmp_path / "trunk.provenance.json").exists()
    status, document, _ = run("run", "--scenario", "tiny", "--sequence", "03", "--device", "auto", "--check")
    assert status == 0 and document["device"] == "cpu" and document["table"]["equal"]
    status, _, message = run("run", "--scenario", "tiny", "--sequence", "03", "--device", "cuda")
    assert status == 2 and "--device" in message and "auto or cpu" in message


def test_a_folder_that_cannot_take_the_weights_is_told_before_training(
    run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").write_text("")
    (here / "folder.npz").mkdir()
    monkeypatch.setattr(commands_run, "_train", None)  # it would fail if it were reached
    for target in ("file/out.npz", "folder.npz"):
        status, document, log = run("run", "--scenario", "tiny", "--sequence", "33", "--weights", target)
        assert (status, document) == (2, {})
        assert f"{target}: the weights cannot be written there" in log


def test_a_policy_in_a_run_reads_the_table_only_where_it_asks_for_it(here: Path) -> None:
    values = experiment.load(here / "conf", "small", find_study).scenario("adaptation", "tiny")["problem"]
    scenario = scenarios.scenario_of({"name": "tiny", "seed": 0, **values})
    start = architecture(scenario.model)
    problem = RunProblem("tiny", setup_of(scenario, start), start, here / "none.parquet")
    assert problem.tree.decisions == 2
    assert not hasattr(problem, "nothing_of_the_kind")
    unit = Unit("job-0/replicate-0", "replicate", "test", "job-0", 0)
    readers = (
        lambda: problem.view,
        lambda: problem.states,
        lambda: problem.units("test"),
        lambda: problem.rows("test"),
        lambda: problem.row(unit),
        lambda: problem.decisions(0),
        lambda: problem.env(unit, 0),
        lambda: problem.rollout(None, unit),
    )
    for read in readers:
        with pytest.raises(UserError, match=r"none\.parquet"):
            read()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--scenario", "tyny", "--policy", "never"), "'tiny'"),
        (("--scenario", "tiny", "--policy", "exakt-tiny"), "'exact-tiny'"),
        (("--scenario", "tiny", "--policy", "exact-tiny", "--seed", "5"), "--seed"),
        (("--scenario", "tiny", "--policy", "exact-tiny", "--results", "elsewhere"), "elsewhere"),
        (("--scenario", "tiny", "--policy", "exact-tiny", "--checkpoint", "none.zip"), "none.zip"),
        (("--scenario", "tiny", "--sequence", "09"), "'09'"),
        (("--scenario", "tiny", "--sequence", "033"), "'033'"),
        (("--scenario", "tiny", "--policy", "always-7"), "action"),
        (("--scenario", "tiny_late", "--policy", "exhaustive"), "table.parquet"),
        (("--scenario", "tiny", "--policy", "never", "--weights", "out.pt"), "out.pt"),
        (("--scenario", "tiny", "--policy", "never", "--layout", "keras", "--weights", "out.npz"), "keras"),
        (("--scenario", "tiny", "--policy", "never", "--scale", "smal"), "smal"),
        (("--scenario", "tiny", "--policy", "never", "--conf", "nowhere"), "nowhere/config.yaml"),
        (("--scenario", "tiny", "--policy", "never", "--replicate", "-1"), "--seed"),
        (("--scenario", "tiny", "--policy", "never", "--seed", "-1"), "--seed"),
    ],
)
def test_mistakes_are_one_paragraph(run, arguments: tuple[str, ...], told: str) -> None:
    status, document, log = run("run", *arguments)
    assert (status, document) == (2, {})
    assert told in log
    assert "Traceback" not in log


def test_scenarios_are_checked_before_anything_runs(run, here: Path) -> None:
    conf = write_conf(here / "wrong")
    file = conf / "scenario/adaptation/tiny.yaml"
    file.write_text(file.read_text().replace("decisions:", "decisons:"))
    status, document, log = run("run", "--scenario", "tiny", "--policy", "never", "--conf", conf)
    assert (status, document) == (2, {})
    assert "'decisions'" in log
    values = yaml.safe_load(file.read_text().replace("decisons:", "decisions:"))
    file.write_text(yaml.safe_dump({**values, "budget": 35.0}))
    assert run("run", "--scenario", "tiny", "--policy", "never", "--conf", conf)[0] == 2
