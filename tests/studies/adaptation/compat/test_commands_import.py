"""`import`: run files of the published system, whole, broken, and with keys that nobody knows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import toml
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedlab.cli.main import main
from schedlab.config import experiment
from schedlab.config.errors import UserError
from schedlab.stages.studies import find_study
from schedlab.studies.adaptation.commands.conf import load_policy, load_scenario
from schedlab.studies.adaptation.compat.run_file import REFERENCE, read_run_file
from small_conf import SHIPPED, write_conf

JOB = {"model": "ConvNet2", "dataset": "cifar10"}


def simulation(**changes) -> dict:
    """A simulation, with keys replaced: section__key=value, None to leave it out."""
    run = {
        "runner": {
            "seed": 42,
            "total_episodes": 64,
            "folder": "simulation_early2",
            "agent": "SimulationAgent",
            "save": True,
        },
        "scheduler": {"running_time": 400, "gpu_changes": [{"time": 70, "change": "up"}], "start_time": 70},
        "trainer": {"weights": "../results/small_early2/weights.pth", "runtimes": "../results/small_early2/runtimes"},
        "job": dict(JOB),
        "agent": {
            "device": 0,
            "action_set_size": 4,
            "num_actions": 3,
            "save_file": "../results/simulation_early2/data.pkl",
        },
    }
    return _changed(run, changes)


def learning(**changes) -> dict:
    """A learning run, with keys replaced."""
    run = {
        "runner": {"seed": 42, "total_episodes": 75000, "folder": "simulation_early_learn2", "agent": "Agent"},
        "simulation": {"datafile": "../results/simulation_early2/data.pkl"},
        "job": dict(JOB),
        "agent": {
            "decay_freq": 250,
            "device": 0,
            "vocab": "models",
            "alpha": 0.0002,
            "hidden_size": 51,
            "embedding_size": 17,
            "max_actions": 4,
            "decider_lstm_size": 18,
            "decider_linear_size": 129,
            "learning_rate_decay": 0.98,
            "time_encoding_size": 9,
        },
    }
    return _changed(run, changes)


def _changed(run: dict, changes: dict) -> dict:
    for place, value in changes.items():
        part, _, key = place.partition("__")
        run.setdefault(part, {})[key] = value
        if value is None:
            del run[part][key]
    return run


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small configuration folder in the working directory."""
    monkeypatch.chdir(tmp_path)
    return write_conf(tmp_path)


@pytest.fixture
def importing(conf: Path, capsys: pytest.CaptureFixture):
    """Writes run files and imports them: returns exit status, standard output and standard error."""
    assert conf.is_dir()

    def call(*runs: dict | str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        files = []
        for number, run in enumerate(runs):
            files.append(Path(f"run{number}.toml"))
            files[-1].write_text(run if isinstance(run, str) else toml.dumps(run))
        status = main(["adaptation", "import", *map(str, files), *options])
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def test_a_simulation_becomes_a_scenario_in_mode_reference(importing) -> None:
    status, out, err = importing(simulation(job__batchsize=64))
    assert (status, out) == (0, "conf/scenario/adaptation/simulation_early2.yaml\n")
    scenario = load_scenario("conf", "paper", "simulation_early2")
    assert (scenario.model.name, scenario.data.name, scenario.timing.name) == ("convnet2", "cifar10", "gv100gl")
    assert (scenario.budget, scenario.adapt_at, scenario.decisions, scenario.seed) == (400.0, 70.0, 3, 42)
    assert (scenario.mode, scenario.model.head_relu, scenario.growth.noop) == ("reference", True, "reset")
    assert (scenario.training.batch_size, scenario.training.decay, scenario.data.validation_size) == (64, 0.9, 0)
    for key in (
        "runner.save",
        "scheduler.start_time",
        "trainer.weights",
        "trainer.runtimes",
        "agent.device",
        "agent.save_file",
    ):
        assert f"run0.toml: {key}: left out" in err


def test_the_reference_values_are_those_of_the_shipped_published_scenarios() -> None:
    shipped = yaml.safe_load((SHIPPED / "scenario/adaptation/_published.yaml").read_text())["reference"]
    assert {key: shipped[key] for key in REFERENCE} == REFERENCE


def test_changes_model_and_data_set(importing) -> None:
    changes = [{"time": 330, "change": "up"}, {"time": 343, "change": "down"}]
    run = simulation(
        scheduler__gpu_changes=changes, scheduler__start_time=330, agent__num_actions=1, runner__total_episodes=4
    )
    status, _, err = importing(_changed(run, {"job__model": "ConvNet3", "trainer__weights": None}))
    assert status == 0
    assert "untrained network" in err
    scenario = load_scenario("conf", "paper", "simulation_early2")
    assert [(change.time, change.change) for change in scenario.changes] == [(343.0, "down")]
    assert (scenario.model.name, scenario.decisions) == ("convnet3", 1)
    other = simulation(
        job__model="BatchNormConvolution", runner__folder="bn", agent__action_set_size=3, runner__total_episodes=27
    )
    assert importing(other)[0] == 2  # the published machine has no timing of it
    assert importing(other, options=("--timing", "flops"))[0] == 0
    assert load_scenario("conf", "paper", "bn").model.name == "batch_norm_convolution"


def test_a_learning_run_and_its_transfer_become_policies(importing) -> None:
    later = learning(runner__folder="Early to Late", runner__total_episodes=10000, agent__temperature=1000)
    later["agent"]["policyfile"] = "../results/simulation_early_learn2/agent.finalmodel.pth"
    status, out, _ = importing(simulation(), learning(), later)
    assert status == 0
    assert [Path(line).name for line in out.splitlines()] == [
        "simulation_early2.yaml",
        "simulation_early_learn2.yaml",
        "early-to-late.yaml",
    ]
    policy, transfer = (
        load_policy("conf", "paper", "simulation_early_learn2"),
        load_policy("conf", "paper", "early-to-late"),
    )
    assert (policy["target"], policy["seeds"], policy["parent"]) == ("reinforce", [42], None)
    assert policy["train_on"] == [{"scenarios": ["simulation_early2"], "steps": 75000, "params": {}}]
    names = (
        "embedding",
        "recurrent",
        "code",
        "linear",
        "frequencies",
        "learning_rate",
        "learning_rate_factor",
        "learning_rate_every",
    )
    assert [policy["params"][name] for name in names] == [17, 51, 18, 129, 9, 0.0002, 0.98, 250]
    assert (policy["params"]["encoder"], policy["params"]["baseline"], policy["params"]["returns"]) == (
        "vocab",
        "none",
        "tangent",
    )
    assert transfer["parent"] == "simulation_early_learn2"
    assert transfer["train_on"][0]["params"] == {"temperature": 1000.0}
    assert load_scenario("conf", "paper", "simulation_early2").policies == ("simulation_early_learn2", "early-to-late")


def test_what_was_imported_passes_the_check(importing, capsys: pytest.CaptureFixture) -> None:
    assert importing(simulation(), learning(), options=("--record", "cases/adaptation/simulations.csv"))[0] == 0
    assert main(["check", "--scale", "paper"]) == 0
    out = capsys.readouterr().out
    assert "simulation_early2" in out
    assert "simulation_early_learn2" in out


def test_learning_on_the_published_record_that_is_there(
    importing, shared_data: Path, capsys: pytest.CaptureFixture
) -> None:
    record = shared_data / "cases" / "adaptation" / "simulations.csv"
    assert importing(simulation(), options=("--name", "early_as_published", "--record", str(record)))[0] == 0
    assert importing(learning())[0] == 0
    assert load_policy("conf", "paper", "simulation_early_learn2")["train_on"][0]["scenarios"] == ["early_as_published"]
    loaded = experiment.load("conf", "paper", find_study)
    assert {"early_as_published"} <= loaded.studies["adaptation"].scenarios.keys()
    capsys.readouterr()


def test_online_learning_and_random_driver_and_initial_training(importing) -> None:
    online = _changed(learning(runner__folder="online"), {"scheduler__running_time": 400})
    online["scheduler"]["gpu_changes"] = [{"time": 70, "change": "up"}]
    del online["simulation"]
    status, out, _ = importing(online)
    assert (status, len(out.splitlines())) == (0, 2)
    assert load_policy("conf", "paper", "online")["train_on"][0]["scenarios"] == ["online"]
    status, out, err = importing({"runner": {"agent": "RandomAgent"}, "scheduler": {"running_time": 70}, "job": JOB})
    assert (status, out) == (0, "")
    assert "initial training" in err


def test_dry_run_writes_nothing(importing, conf: Path) -> None:
    before = {path: path.read_bytes() for path in conf.rglob("*.yaml")}
    status, out, _ = importing(simulation(), learning(), options=("--dry-run",))
    assert status == 0
    scenario, policy = list(yaml.safe_load_all(out))
    assert (scenario["name"], policy["name"]) == ("simulation_early2", "simulation_early_learn2")
    assert {path: path.read_bytes() for path in conf.rglob("*.yaml")} == before


def test_files_that_are_there_are_kept(importing, conf: Path) -> None:
    assert importing(simulation())[0] == 0
    assert importing(simulation())[0] == 0  # the same again
    status, _, err = importing(simulation(runner__seed=1))
    assert status == 2
    assert "there already" in err
    assert load_scenario("conf", "paper", "simulation_early2").seed == 42
    assert importing(simulation(runner__seed=1), options=("--force",))[0] == 0
    assert load_scenario(str(conf), "paper", "simulation_early2").seed == 1


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (simulation(scheduler__runing_time=400), "run0.toml: scheduler.runing_time"),
        (simulation(runner__sed=1), "'seed'"),
        (simulation(runners__seed=1), "run0.toml: runners"),
        (simulation(scheduler__running_time="long"), "run0.toml: scheduler.running_time"),
        (simulation(scheduler__running_time=None), "'running_time'"),
        (simulation(scheduler__running_time=60), "adapt_at"),
        (
            simulation(scheduler__gpu_changes=[{"time": 70, "change": "down"}]),
            "gpu_changes.0",
        ),
        (simulation(scheduler__gpu_changes=[{"time": 70, "change": "sideways"}]), "gpu_changes.0.change"),
        (simulation(scheduler__gpu_changes=[{"tme": 70, "change": "up"}]), "'time'"),
        (
            simulation(scheduler__gpu_changes=[{"time": 70, "change": "up"}, {"time": 60, "change": "down"}]),
            "changes",
        ),
        (simulation(scheduler__gpu_changes=None), "scheduler.gpu_changes"),
        (simulation(scheduler__start_time=50), "scheduler.start_time"),
        (simulation(job__model="ConvNet22"), "job.model: "),
        (simulation(job__dataset="imagenet"), "job.dataset: "),
        (simulation(job__batchsize=0), "job.batchsize"),
        (simulation(agent__action_set_size=5), "agent.action_set_size"),
        (simulation(agent__num_actions=10**9), "run0.toml: agent.num_actions"),
        (simulation(runner__total_episodes=63), "runner.total_episodes"),
        (simulation(runner__agent="SimulatedAgent"), "'SimulationAgent'"),
        (simulation(runner__folder="!!"), "runner.folder"),
        (simulation(runner__folder="config"), "run0.toml"),
        (learning(), "'simulation_early2'"),
        (learning(simulation__datafile="data.pkl"), "simulation.datafile"),
        (
            learning(simulation__datafile="../results/tiny/data.pkl", agent__policyfile="x/none/final.pth"),
            "'none'",
        ),
        (learning(runner__total_episodes=None), "'total_episodes'"),
        (learning(agent__temperature=0.5), "agent.temperature"),
        ("a = [1, 2", "run0.toml"),
        ("[runner]\nseed = 2020-01-01\n[job]\nmodel='ConvNet2'\ndataset='cifar10'", "run0.toml"),
        pytest.param(f"a = {'1' * 5000}", "run0.toml", id="digits"),
        pytest.param(f"a = {'[' * 5000}", "run0.toml", id="nested"),
        pytest.param(f"{'.'.join('a' * 5000)} = 1", "run0.toml", id="dotted"),
        ("", "'job'"),
    ],
)
def test_what_cannot_be_imported(importing, conf: Path, run: dict | str, told: str) -> None:
    before = sorted(conf.rglob("*.yaml"))
    status, out, err = importing(run)
    assert (status, out) == (2, "")
    assert told in err
    assert "Traceback" not in err
    assert sorted(conf.rglob("*.yaml")) == before


def test_unknown_keys_can_be_passed_over_and_are_told(importing) -> None:
    status, _, err = importing(simulation(runner__verbose=True, extras__more=1), options=("--ignore-unknown",))
    assert status == 0
    assert "run0.toml: runner.verbose: unknown, left out" in err
    assert "run0.toml: extras: unknown, left out" in err


def test_command_line_mistakes(importing, conf: Path, tmp_path: Path) -> None:
    for options, told in (
        (("--out", str(tmp_path / "nowhere")), "expected a configuration folder"),
        (("--timing", "gv100"), "there is no conf/gpu/gv100.yaml"),
    ):
        status, _, err = importing(simulation(), options=options)
        assert status == 2
        assert told in err
    assert "one name for several" in importing(simulation(), learning(), options=("--name", "x"))[2]
    assert "two files give the scenario" in importing(simulation(), simulation())[2]
    assert main(["adaptation", "import", "missing.toml"]) == 2
    Path("latin.toml").write_bytes("[runner]\nfolder = 'früh'".encode("latin-1"))
    assert main(["adaptation", "import", "latin.toml"]) == 2
    shutil.rmtree(conf)


@pytest.mark.slow
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("utf-8", "replace")))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_makes_the_reader_fail_otherwise(tmp_path: Path, text: str) -> None:
    file = tmp_path / "any.toml"
    file.write_text(text, encoding="utf-8", newline="")
    try:
        read_run_file(file, keep_unknown=True)
    except UserError as error:
        assert "any.toml" in str(error)
