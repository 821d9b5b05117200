"""What `schedlab cloud optimize` takes (scripts, settings, options), and what is said of what it does not take."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from live_scripts import fake_nvidia_smi, logging_script, plain_script, quick_settings, script

from schedlab.cli.main import main
from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.process import available_cpus
from schedlab.studies.cloud.model.allocation import ResourceConfig
from schedlab.studies.cloud.optimize.report import report_text
from schedlab.studies.cloud.optimize.settings import MachineSettings, read_settings


def read_report(folder: Path) -> dict:
    return json.loads((folder / "out/report.json").read_text())


def test_a_script_without_checkpoints_is_run_once_and_free_resources_are_reported(tmp_path):
    free = {"cost_per_gpu_hour": 0.0, "cost_per_cpu_hour": 0.0, "cost_per_gb_hour": 0.0}
    path = plain_script(tmp_path, checkpoints=False)
    settings = quick_settings(tmp_path, baseline_samples=1, resource=free)
    assert (
        main(
            [
                "cloud",
                "optimize",
                "--training_file",
                str(path),
                "--config",
                str(settings),
                "--output_dir",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )
    history = pd.read_csv(tmp_path / "out/allocation_history.csv")
    by_model, run = (history[history["episode"] == number] for number in (0, 1))
    assert len(run) == 1 and len(by_model) == 4
    held = ["gpu_count", "cpu_count", "memory_gb"]
    assert run[held].iloc[0].tolist() == by_model[held].iloc[-1].tolist()
    values = read_report(tmp_path)
    assert values["change_percent"]["cost"] is None and values["optimized"]["cost"] == 0
    assert values["sla"]["cost"]["optimized"]["met"]


@pytest.mark.slow
def test_a_plain_script_of_torch_with_its_own_log_is_optimised(tmp_path):
    """No word of ours in it but the log that the published program asks for."""
    text = """
        import time, torch
        batch_size = 32
        epochs = 2
        torch.set_num_threads(1)
        model = torch.nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with open("log-linear.csv", "w") as log:
            log.write("epoch,model_name,model_params,model_layers,batch_size,epoch_time,throughput\\n")
            for epoch in range(epochs):
                began = time.time()
                for _ in range(20):
                    loss = model(torch.randn(batch_size, 8)).square().mean()
                    optimizer.zero_grad(); loss.backward(); optimizer.step()
                took = time.time() - began
                log.write(f"{epoch + 1},linear,18,1,{batch_size},{took},{20 * batch_size / took}\\n")
    """
    path = script(tmp_path, text)
    settings = quick_settings(tmp_path, baseline_samples=1, batch=64, resource={"cpu_count_max": 1})
    assert (
        main(
            [
                "cloud",
                "optimize",
                "--training_file",
                str(path),
                "--config",
                str(settings),
                "--output_dir",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )
    values = read_report(tmp_path)
    assert values["optimized"]["batch_size"] == 64 and values["optimized"]["cpu_count"] == 1


@pytest.mark.parametrize(
    ("use", "preference", "suggested"), [(0.0, "time", 128), pytest.param(50.0, "cost", 64, marks=pytest.mark.slow)]
)
def test_a_report_on_gpus_suggests_a_batch_and_says_where_they_idle(tmp_path, monkeypatch, use, preference, suggested):
    """The script has a batch of 64 and no use for the GPU that it gets."""
    fake_nvidia_smi(tmp_path, monkeypatch, used=(use, use))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    settings = quick_settings(tmp_path, baseline_samples=1, preference=preference, resource={"cpu_count_max": 1})
    command = ["cloud", "optimize", "--training_file", str(plain_script(tmp_path)), "--config", str(settings)]
    assert main([*command, "--output_dir", str(tmp_path / "out")]) == 0
    values = read_report(tmp_path)
    assert (values["optimized"]["gpu_count"], values["batch"]["suggested_batch_size"]) == (1, suggested)
    for name in ("baseline", "optimized"):
        assert len([each for each in values["idle_gpus"][name] if "CPU" not in each]) == (not use)
    (batch,) = (line for line in report_text(values).splitlines() if line.startswith("Batch"))
    assert ("128" in batch) == (suggested != 64)


FAILING = {
    "raises": "raise ValueError('<script>')",
    "silent": "pass",
    "hangs": "import time; time.sleep(600)",
    "hungry": "x = bytearray(1 << 34)",
    "header only": logging_script("epoch,batch_size,epoch_time,throughput\n"),
    "no number": logging_script("epoch,batch_size,epoch_time,throughput\n1,32,nan,100\n"),
    "no table": logging_script("\0\1no table\n"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_script_that_fails_ends_with_status_1_and_a_sentence(tmp_path, capsys, caplog, name):
    path = script(tmp_path, FAILING[name])
    settings = quick_settings(tmp_path, time_limit=2.0, resource={"memory_max": 8.0})
    assert (
        main(
            [
                "cloud",
                "optimize",
                "--training_file",
                str(path),
                "--config",
                str(settings),
                "--output_dir",
                str(tmp_path / "out"),
            ]
        )
        == 1
    )
    told = capsys.readouterr().err + caplog.text
    assert ("log.csv" if "SCHEDLAB_LOG" in FAILING[name] else "script.py") in told and "Traceback" not in told
    assert not (tmp_path / "out/report.html").exists()


@pytest.mark.parametrize("length", ["--epochs", "--baseline_ratio"])
def test_a_script_that_ignores_the_epochs_it_is_given_is_refused(tmp_path, capsys, caplog, length):
    """Two starts that each log epoch 1 are no training of two epochs: told by the first probe, or by the baseline where
    that is longer.
    """
    path = script(tmp_path, logging_script("epoch,batch_size,epoch_time,throughput\n1,8,0.001,100\n"))
    given = [length, "2"] if length == "--epochs" else ["--epochs", "5", length, "0.4"]
    settings = quick_settings(tmp_path)
    command = [
        "cloud",
        "optimize",
        "--training_file",
        str(path),
        "--config",
        str(settings),
        "--output_dir",
        str(tmp_path / "out"),
    ]
    assert main([*command, *given]) == 1
    assert "1 epoch of 2" in capsys.readouterr().err + caplog.text
    assert not (tmp_path / "out/report.html").exists()
    ran = [each.name for each in (tmp_path / "out/work/001/runs").iterdir()]
    assert len(ran) == (3 if length == "--epochs" else 1), "two baselines of an epoch each, then a probe"


def test_a_script_that_writes_a_wrong_log_does_not_stop_the_next_one(tmp_path, capsys, caplog):
    wrong, right = script(tmp_path, FAILING["no number"], "wrong.py"), plain_script(tmp_path, checkpoints=False)
    settings = quick_settings(tmp_path, baseline_samples=1, resource={"cpu_count_max": 1})
    command = [
        "cloud",
        "optimize",
        "--training_file",
        str(wrong),
        str(right),
        "--config",
        str(settings),
        "--output_dir",
        str(tmp_path),
    ]
    assert main(command) == 1
    assert "column epoch_time" in capsys.readouterr().err + caplog.text
    assert (tmp_path / "plain/report.html").exists() and not (tmp_path / "wrong/report.html").exists()


WRONG_FILES = {
    "unknown key": ("settings.yaml", "prefrence: cost\n", "did you mean 'preference'"),
    "unknown key inside": ("settings.json", '{"sla": {"time_mx": 5}}', "did you mean 'time_max'"),
    "wrong type": ("settings.yaml", "epochs: many\n", "epochs"),
    "settings.json": ("settings.json", "[1, 2]", "settings.json"),
    "no JSON": ("settings.json", "{", "settings.json"),
    "no YAML": ("settings.yaml", "a: [", "settings.yaml"),
    "other kind": ("settings.toml", "", "settings.toml"),
    "unknown learner": ("settings.yaml", "rl: {learner: reinforc}\n", "did you mean 'reinforce'"),
    "learner's key": ("settings.yaml", "rl: {learner: reinforce, params: {hiden: 3}}\n", "did you mean 'hidden'"),
    "settings of the plan": ("settings.yaml", "rl: {params: {hidden: 3}}\n", "rl.params.hidden"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_configuration_is_refused_by_file_and_key(tmp_path, name):
    file, text, told = WRONG_FILES[name]
    (tmp_path / file).write_text(text)
    with pytest.raises(UserError) as caught:
        read_settings(tmp_path / file, {})
    assert told in str(caught.value)


def test_yaml_and_json_say_the_same_and_options_win(tmp_path):
    rl = {"learner": "reinforce", "params": {"hidden": 8}}
    values = {"preference": "cost", "sla": {"time_max": 60.0, "cost_max": 1.0}, "rl": rl}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(values))
    (tmp_path / "a.json").write_text(json.dumps(values))
    read = [read_settings(tmp_path / name, {"sla": {"time_max": 5.0}}) for name in ("a.yaml", "a.json")]
    assert read[0] == read[1] and (read[0].sla.time_max, read[0].sla.cost_max, read[0].preference) == (5.0, 1.0, "cost")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--time_max", "5", "--time_target", "5"], "--time_target, --time_max"),
        (["--dataset_path", "nowhere"], "--dataset_path nowhere"),
        (["--dataset_path", "./data"], "--dataset_path data"),
        (["--epochs", "0"], "--epochs"),
        (["--batch_size", "0"], "--batch_size"),
        (["--", "python", "plain.py"], "--training_file"),
        (["--baseline_ratio", "2"], "--baseline_ratio"),
        (["--offline_logs", "none.csv"], "none.csv"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--time_max", "-1"], "--time_max"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(tmp_path, monkeypatch, capsys, options, told):
    monkeypatch.chdir(tmp_path)
    plain_script(tmp_path)
    assert main(["cloud", "optimize", "--training_file", "plain.py", "--epochs", "4", *options]) == 2
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["plain.py"]


def test_the_length_of_the_training_has_to_be_given(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plain_script(tmp_path)
    assert main(["cloud", "optimize", "--training_file", "plain.py"]) == 2
    assert "--epochs" in capsys.readouterr().err
    assert main(["cloud", "optimize", "--epochs", "4"]) == 2
    assert "--training_file" in capsys.readouterr().err and [path.name for path in tmp_path.iterdir()] == ["plain.py"]


def test_a_command_is_optimised_with_its_placeholders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = plain_script(tmp_path)
    taken = "import sys; batch_size, epochs = map(int, sys.argv[1:])"
    path.write_text(path.read_text().replace("batch_size = 64\nepochs = 4", taken))
    assert "sys.argv" in path.read_text()
    command = ["cloud", "optimize", "--config", str(quick_settings(tmp_path)), "--output_dir", "out"]
    assert main([*command, "--batch_size", "32", "--", sys.executable, "plain.py", "{batch}", "{epochs}"]) == 0
    values = read_report(tmp_path)
    assert (values["run"]["training_file"], values["run"]["epochs"]) == ("plain.py", 4)
    assert values["baseline"]["batch_size"] == values["optimized"]["batch_size"] == 32


def test_a_damaged_table_of_runs_is_told_before_anything_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plain_script(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/optimization_metrics.csv").write_text("")
    assert main(["cloud", "optimize", "--training_file", "plain.py", "--epochs", "4", "--output_dir", "out"]) == 2
    assert "optimization_metrics.csv" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["optimization_metrics.csv"]


def test_more_than_the_machine_has_cannot_be_asked_for(tmp_path, capsys):
    settings = quick_settings(tmp_path, resource={"cpu_count_max": len(available_cpus()) + 1})
    assert main(["cloud", "optimize", "--training_file", str(plain_script(tmp_path)), "--config", str(settings)]) == 2
    assert "cpu_count_max" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"memory_max": 2}, (1, 1, 2)),
        ({"gpu_count_max": 0}, (0, 1, 4)),
        ({"gpu_count_max": 2, "cpu_count_min": 3}, (1, 3, 4)),
    ],
)
def test_a_least_amount_that_was_not_given_is_not_above_the_most(monkeypatch, given, expected):
    machine = ResourceConfig(gpu_count_max=4, gpu_count_min=1, cpu_count_max=8, memory_max=64, memory_min=4)
    monkeypatch.setattr("schedlab.studies.cloud.optimize.settings.machine_resources", lambda *prices: machine)
    assert MachineSettings(**given).limits().least == expected
    with pytest.raises(UserError, match="4 is above 2"):
        MachineSettings(memory_max=2, memory_min=4).limits()


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ("optimize --epochs 2 --output_dir out -- no-such-program", "-- no-such-program"),
        ("sweep --training_file script.py --output folder", "folder"),
        ("sweep --training_file script.py --output ./script.py", "--output"),
        ("sweep --training_file script.py --output log.csv --cores 0", "--cores: 0; expected 1 to "),
    ],
)
def test_a_wrong_name_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, arguments: str, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("script.py").write_text("raise SystemExit(3)\n")
    assert main(["cloud", *arguments.split()]) == 2
    assert f"error: {where}" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "script.py"]
