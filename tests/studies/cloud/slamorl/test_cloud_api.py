"""The importable names of the published program do what its document promises, and what it only promised."""

from __future__ import annotations

import json
import os
import threading
import time

import numpy as np
import pandas as pd
import pytest
from live_scripts import plain_script, script, training_log
from pydantic import ValidationError

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.cloud.model.allocation import Allocation
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.sla import TableVerdict, Verdict, is_given
from schedlab.studies.cloud.rules.suggestions import Option, batch_size, estimate, estimates, options_without_records
from schedlab.studies.cloud.slamorl import api

LIMITS = api.ResourceConfig(gpu_count_max=8, cpu_count_max=64, memory_max=128)
RECORD = {
    "epoch": 1,
    "total_epochs": 4,
    "throughput": 900.0,
    "time_so_far": 60.0,
    "cost_so_far": 0.1,
    "cpu_percent": 60.0,
    "memory_used_gb": 4.0,
}


def test_every_name_is_there():
    for name in api.__all__:
        assert getattr(api, name).__doc__, name


def test_limits_of_none_are_defaults_and_a_forecast_moves_three():
    limits = validate(api.SLAConfig, {"time_max": None, "cost_max": 5.0})
    assert (limits.time_max, limits.cost_max) == (600.0, 5.0)
    moved = limits.updated(
        [
            {"time_so_far": 100.0, "cost_so_far": 1.0, "throughput": 50.0},
            {"time_so_far": 300.0, "cost_so_far": float("nan")},
        ]
    )
    assert (moved.time_max, moved.cost_max, moved.throughput_min) == pytest.approx((220.0, 1.1, 45.0))
    assert moved.memory_max == limits.memory_max
    found = limits.check(training_log())
    assert found["throughput"].verdict.met is False and found["cost"].violated_share == 0.0 and "gpu_util" not in found
    with pytest.raises(UserError):
        validate(api.SLAConfig, {"time_mx": 1.0})


def test_accuracy_and_convergence_are_judged_where_a_log_has_them():
    table = pd.DataFrame(
        {"train_loss": [1.0, 0.5, 0.46, 0.46], "train_accuracy": [10.0] * 4, "test_accuracy": [40.0, 90.0, 86.0, 84.0]}
    )
    found = api.check_learning(table)
    assert found["accuracy"] == TableVerdict(84.0, Verdict(False, pytest.approx(1 / 85)), 0.5)
    assert found["convergence"] == TableVerdict(pytest.approx(0.18), Verdict(True, 0.0), pytest.approx(1 / 3))
    assert api.check_learning(table, accuracy_min=80.0)["accuracy"].verdict.met
    assert api.check_learning(table.drop(columns="test_accuracy"))["accuracy"].value == 10.0
    assert api.check_learning(table[["train_loss"]].head(1)) == {}
    with pytest.raises(UserError):
        api.check_learning(table.head(0))


def test_any_number_of_preferences_with_weights_of_sum_1():
    usual, own = (
        api.MultiObjectiveConfig(),
        validate(api.MultiObjectiveConfig, {"preferences": {"green": [0.1, 0.1, 0.8]}}),
    )
    assert usual.policies == 4 and usual.index("resource") == 3 and usual.weights("cost")["cost"] == 0.6
    assert own.text("green") == "0.1:0.1:0.8" and api.CloudResourceOptimizer("out", preference=own.text("green"))
    assert weights_of(usual.text("balanced")) == usual.weights("balanced")
    with pytest.raises(UserError):
        api.CloudEnvironment(LIMITS, preference=own.text("green"))  # the published reward has weights for four names
    assert own.policies == 1 and own.weights("green") == {"cost": 0.1, "time": 0.1, "resource": 0.8}
    with pytest.raises(UserError, match="did you mean 'green'"):
        own.weights("gren")
    with pytest.raises(UserError, match="all"):
        validate(api.MultiObjectiveConfig, {"preferences": {"all": [1, 1, 1]}})


def test_actions_are_named_and_applied_within_limits():
    action = api.ResourceAction.of(gpus=1, memory=-1)
    assert action.number == 21 and action.changes == (1, 0, -1)
    assert action.description == "Increase GPUs by 1, No change to CPUs, Decrease memory by 8 GB"
    assert action.apply(Allocation(8, 4, 8), LIMITS) == Allocation(8, 4, 4)
    assert api.ResourceAction.of().number == 13
    for wrong in (27, -1, 1.5, True):
        with pytest.raises(UserError):
            api.ResourceAction(wrong)
    with pytest.raises(UserError):
        api.ResourceAction.of(gpus=2)


def test_the_monitor_tells_new_rows_once_and_waits_for_them(tmp_path):
    path = tmp_path / "log.csv"
    monitor = api.CSVMonitor(path, update_interval=0.02)
    assert monitor.new_rows() is None
    path.write_text("epoch,throughput\n")
    assert monitor.new_rows() is None
    path.write_text("epoch,throughput\n1,5\n2,6\n")
    assert monitor.new_rows()["epoch"].tolist() == [1, 2] and monitor.new_rows() is None
    later = threading.Timer(0.2, lambda: path.write_text("epoch,throughput\n1,5\n2,6\n3,7\n"))
    later.start()
    assert monitor.wait(30)["epoch"].tolist() == [3]
    later.join()
    began = time.monotonic()
    assert monitor.wait(0.05) is None and time.monotonic() - began >= 0.05
    path.write_text("epoch,throughput\n1,9\n")
    os.utime(path, ns=(1, 1))
    assert monitor.new_rows()["throughput"].tolist() == [9]
    with pytest.raises(UserError):
        api.CSVMonitor(path, update_interval=0)


def test_half_a_line_is_no_row_until_it_is_whole(tmp_path):
    path = tmp_path / "log.csv"
    monitor = api.CSVMonitor(path)
    with path.open("w") as file:
        for written, expected in (("epoch,throughput\n1,5\n2,6", [5]), ("4", None), ("0\n3,7", [640]), ("\n", [7])):
            file.write(written)
            file.flush()
            rows = monitor.new_rows()
            assert (None if rows is None else rows["throughput"].tolist()) == expected


def test_the_monitor_writes_decisions_beside_the_epochs(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,throughput\n1,5\n2,6\n")
    monitor = api.CSVMonitor(path)
    monitor.append(2, {"action_taken": 13, "rl_reward": 0.5, "policy_used": "cost", "unknown": 1})
    table = pd.read_csv(path)
    assert (
        table["rl_action_taken"].tolist()[1] == 13
        and pd.isna(table["rl_reward"][0])
        and "rl_unknown" not in table.columns
    )
    assert table["rl_policy_used"][1] == "cost"
    joined = monitor.extended(pd.DataFrame({"epoch": [1], "rl_reward": [2.0]}))
    assert joined["rl_reward"].tolist()[0] == 2.0 and len(joined) == 2 and pd.isna(joined["rl_reward"][1])
    assert len(pd.read_csv(tmp_path / "log_rl_extended.csv")) == 2
    with pytest.raises(UserError, match=r"log\.csv.*epoch 9"):
        monitor.append(9, {"reward": 1})
    with pytest.raises(UserError):
        monitor.extended(pd.DataFrame({"epoch": [1, 1], "rl_reward": [2.0, 3.0]}))


def test_the_environment_decides_when_something_moved_and_resets():
    env = api.CloudEnvironment(LIMITS, api.SLAConfig(throughput_min=100.0), "cost")
    assert not env.decision_due()
    env.observe(RECORD)
    assert env.decision_due()
    with_more = api.ResourceAction.of(gpus=1, cores=1).number
    state, reward, done, parts = env.step(with_more)
    assert state.shape == (26,) and not done and parts["changed"] and parts["components"].total == reward
    assert env.resources.allocation == Allocation(2, 5, 4) and not env.decision_due()
    logged = env.adjustments[0]
    assert (logged["epoch"], logged["action"], logged["reward"]) == (1, with_more, reward) and logged["before"][
        "gpu_count"
    ] == 1
    env.observe({**RECORD, "epoch": 2, "throughput": 300.0})
    assert env.decision_due()
    assert [option.priority for option in env.options()] == ["time", "cost", "resource", "balanced"]
    assert env.verdicts()["throughput"].met and not env.verdicts()["gpu_util"].met
    env.reset()
    assert env.history == [] and env.adjustments == [] and env.resources.allocation == Allocation(1, 1, 4)
    assert (env.state() == api.CloudEnvironment(LIMITS, api.SLAConfig(throughput_min=100.0), "cost").state()).all()
    with pytest.raises(UserError):
        env.options()
    with pytest.raises(UserError):
        api.CloudEnvironment(LIMITS, preference="speed")


def test_a_machine_without_gpus_holds_none_and_does_not_violate_their_service_level():
    small = api.ResourceConfig(gpu_count_max=0, gpu_count_min=0, memory_max=2, memory_min=1)
    env = api.CloudEnvironment(small, api.SLAConfig(throughput_min=1000.0))
    assert env.resources.allocation == Allocation(0, 1, 2)
    env.observe(RECORD)
    _, _, _, parts = env.step(api.ResourceAction.of().number)
    assert not parts["changed"] and parts["components"].cost == 0.0 and env.resources.allocation == Allocation(0, 1, 2)
    verdicts = {item: verdict for item, verdict in env.verdicts().items() if item != "gpu_util"}
    kept = sum(verdict.met for verdict in verdicts.values()) / len(verdicts)
    assert env.verdicts()["gpu_util"].met and parts["components"].sla == pytest.approx(15.0 * (2.0 * kept - 0.5))


def test_severities_go_when_an_item_is_met_again():
    env = api.CloudEnvironment(LIMITS, api.SLAConfig(throughput_min=1000.0))
    env.observe({**RECORD, "throughput": 100.0})
    assert env.verdicts()["throughput"].severity == pytest.approx(0.9)
    env.observe({**RECORD, "throughput": 2000.0})
    assert env.verdicts()["throughput"] == Verdict(True, 0.0)


def test_the_manager_logs_what_changed():
    manager = api.ResourceManager(LIMITS, Allocation(2, 8, 16))
    assert manager.hourly_cost == pytest.approx(2 * 2.5 + 8 * 0.1 + 16 * 0.02)
    assert manager.adjust(api.ResourceAction.of(gpus=-1).number, epoch=3) and not manager.adjust(13)
    assert [each["epoch"] for each in manager.adjustments] == [3, 0] and manager.allocation.gpu_count == 1
    manager.reset()
    assert manager.allocation == Allocation(2, 8, 16) and manager.adjustments == []


def test_a_script_is_read_and_run(tmp_path):
    manager = api.TrainingModuleManager(plain_script(tmp_path), tmp_path / "runs")
    assert (manager.facts.gpu_support, manager.facts.function) == (False, None)
    with pytest.raises(UserError):
        manager.summary()
    run = manager.run(Allocation(0, 1, 1), epochs=2, batch=16, total_epochs=5)
    assert run.how == "done" and manager.summary()["batch_size"] == 16 and manager.summary()["total_epochs"] == 5
    assert manager.environment(Allocation(0, 1, 1))["OMP_NUM_THREADS"] == "1"
    told = [manager.environment(Allocation(0, 1, 1), batch=size).get("OPTIMIZER_BATCH_SIZE") for size in (None, 16)]
    assert told == [None, "16"]
    manager.run(Allocation(0, 1, 1))
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["001", "002"]
    text = "'''A ResNet on CIFAR-10'''\nconfig = {'batch_size': 32, 'epochs': 7}\n"
    text += "def train_resnet():\n    device = 'cuda'\n"
    facts = api.TrainingModuleManager(script(tmp_path, text, "resnet.py"), tmp_path).facts
    assert (facts.model_type, facts.dataset_type, facts.gpu_support) == ("resnet", "cifar", True)
    assert facts.function == "train_resnet"
    with pytest.raises(UserError, match=r"wrong\.py"):
        api.TrainingModuleManager(script(tmp_path, "train the net", "wrong.py"), tmp_path)


def test_the_optimizer_does_the_whole_flow(tmp_path):
    rl = {"learner": "reinforce", "episodes": 64}
    optimizer = api.CloudResourceOptimizer(
        tmp_path / "out", epochs=4, baseline_samples=1, preference="0.1:0.1:0.8", rl=rl
    )
    report = optimizer.optimize(plain_script(tmp_path, checkpoints=False))
    assert report["run"]["preference"] == "0.1:0.1:0.8" and (tmp_path / "out/report.html").exists()
    assert len(optimizer.analyser.tables) == 1 and optimizer.found.learned.preference == "0.1:0.1:0.8"
    with pytest.raises(UserError, match="epochs"):
        api.CloudResourceOptimizer(tmp_path / "none").optimize(plain_script(tmp_path))
    with pytest.raises(UserError, match="did you mean 'preference'"):
        api.CloudResourceOptimizer(tmp_path, prefrence="cost")
    with pytest.raises(UserError, match="did you mean 'reinforce'"):
        api.CloudResourceOptimizer(tmp_path, rl={"learner": "reinforc"})
    with pytest.raises(UserError, match="did you mean 'hidden'"):
        api.CloudResourceOptimizer(tmp_path, rl={"learner": "reinforce", "params": {"hiden": 3}})


BASE = {"gpu_count": 2, "cpu_count": 8, "time": 100.0, "cost": 1.0, "throughput": 50.0}


def option(priority: str, gpus: int, cores: int = 8) -> Option:
    return Option(priority, Allocation(gpus, cores, 16), 3.6)


def test_options_are_estimated_by_their_gpus_and_without_them_by_their_cores():
    more, fewer, none = (estimate(option("time", gpus), BASE) for gpus in (4, 1, 0))
    assert more.throughput == pytest.approx(50 * 2**0.7) and more.time == pytest.approx(100 / 2**0.7)
    assert fewer.throughput == pytest.approx(50 * 0.5**0.9) and more.cost == pytest.approx(more.time / 1000)
    assert none.throughput == pytest.approx(50.0) and none.time == pytest.approx(100.0)
    found = estimates([option("cost", 1)], BASE)
    assert (found["time"].time, found["time"].cost, found["time"].throughput) == pytest.approx((60.0, 1.3, 70.0))
    assert found["cost"].time == pytest.approx(fewer.time) and found["balanced"].time == 100.0


@pytest.mark.parametrize(
    ("use", "gpus", "expected"),
    [
        (10.0, 8, {"time": (4, 36), "cost": (2, 16), "resource": (7, 42), "balanced": (6, 36)}),
        (45.0, 8, {"time": (8, 36), "cost": (4, 32), "resource": (8, 48), "balanced": (7, 42)}),
        (95.0, 2, {"time": (3, 36), "cost": (1, 8), "resource": (3, 18), "balanced": (3, 18)}),
    ],
)
def test_options_without_records_follow_the_use_alone(use, gpus, expected):
    found = options_without_records(use, Allocation(gpus, 32, 64), LIMITS)
    assert {each.priority: tuple(each.allocation[:2]) for each in found} == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("time", 4, 64, 1), 512),
        (("cost", 4, 128, 2), 256),
        (("cost", 1, 32, 4), 32),
        (("cost", 1, 400, 4, 10.0), 300),
        (("cost", 0, 64, 0), 64),
    ],
)
def test_the_batch_goes_with_the_gpus(arguments, expected):
    assert batch_size(*arguments) == expected


def test_actions_may_be_integers_of_numpy():
    assert api.ResourceAction(np.int64(3)).changes == api.ResourceAction(3).changes
    manager = api.ResourceManager()
    manager.adjust(np.argmax([0.0, 1.0]))
    assert json.dumps(manager.adjustments[0]["action"]) == "1"
    for wrong in (1.0, np.float64(1.0), True, 27, -1):
        with pytest.raises(UserError, match="0 to 26"):
            manager.adjust(wrong)


@pytest.mark.parametrize("kind", [float, np.float16, np.float32, np.float64])
def test_a_nan_of_any_width_is_no_value(kind):
    assert not is_given(kind("nan")) and is_given(kind(0.0)) and is_given(kind("inf"))
    assert api.SLAConfig().updated([{"time_so_far": kind("nan")}, {"time_so_far": 100.0}]).time_max == pytest.approx(
        110.0
    )


ANALYSER, ENV = api.OfflineDataAnalyzer(), api.CloudEnvironment(LIMITS, api.SLAConfig())
MISTAKES = {
    "parameters in words": (lambda: ANALYSER.predict({"model_params": "11M"}), "'model_params' is '11M'"),
    "fewer than none": (lambda: ANALYSER.predict({"model_layers": -1}), "'model_layers' is -1"),
    "more than can be": (lambda: ANALYSER.predict({"data_size_mb": float("inf")}), "'data_size_mb' is inf"),
    "a record of text": (lambda: ENV.observe({"throughput": "fast"}), "'throughput' is 'fast'"),
    "a use in text": (lambda: ENV.observe({"gpu_utilization_0": "90 %"}), "'gpu_utilization_0' is '90 %'"),
    "a history of text": (lambda: api.SLAConfig().updated([{"time_so_far": "600 s"}]), "'time_so_far' is '600 s'"),
    "a table of text": (
        lambda: api.SLAConfig().check(pd.DataFrame({"throughput": [5.0, "a"]})),
        "row 3, column throughput",
    ),
    "an interval of text": (lambda: api.CSVMonitor("log.csv", "1s"), "update_interval"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_values_that_are_no_numbers_are_told(name):
    call, told = MISTAKES[name]
    with pytest.raises(UserError) as caught:
        call()
    assert told in str(caught.value)
    assert ENV.history == []


def test_what_is_not_known_of_a_job_counts_as_lacking():
    assert ANALYSER.predict({"model_params": None, "data_size_mb": float("nan")}) == ANALYSER.predict({})
    assert ANALYSER.predict({"model_params": np.float64(60e6)})["gpu_count"] == 4


def test_logs_and_decisions_are_joined_by_epochs_that_they_have(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,throughput\n1,5\n")
    with pytest.raises(UserError, match=r"decisions.*'epoch'"):
        api.CSVMonitor(path).extended(pd.DataFrame({"rl_reward": [1.0]}))
    path.write_text("step,throughput\n1,5\n")
    with pytest.raises(UserError, match=r"log\.csv.*'epoch'"):
        api.CSVMonitor(path).extended(pd.DataFrame({"epoch": [1]}))


@pytest.mark.parametrize("name", ["SLAConfig", "ResourceConfig"])
def test_mistakes_in_a_constructor_are_told_under_the_name_that_was_called(name):
    with pytest.raises(ValidationError, match=f"for {name}\n"):
        getattr(api, name)(memory_mx=3)
    with pytest.raises(UserError, match="did you mean 'memory_max'"):
        validate(getattr(api, name), {"memory_mx": 3})
