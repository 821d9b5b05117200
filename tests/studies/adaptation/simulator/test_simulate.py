"""Simulations with real training: through the tree, alone, interrupted, on several workers, from damaged stores."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3

import numpy as np
import pandas as pd
import pytest
from small_models import small
from small_scenarios import BATCH_NORM_MODEL, PUBLISHED_GROWTH, part, pictures, scenario, short

from schedlab.config.errors import UserError
from schedlab.config.files import write_table
from schedlab.studies.adaptation.data.datasets import DataSettings, load
from schedlab.studies.adaptation.simulator import simulate
from schedlab.studies.adaptation.simulator.simulate import (
    TorchTrainer,
    note_made,
    run_sequence,
    simulate_replicate,
    train_trunk,
)
from schedlab.studies.adaptation.simulator.store import NodeStore
from schedlab.studies.adaptation.simulator.table import DecisionTree, simulation_table, view

NO_LABELS = np.zeros(0, np.int64)
COLUMNS = [
    *(
        "scenario",
        "job",
        "replicate",
        "sequence",
        "epoch",
        "action",
        "parameters",
        "time_left",
        "train_seconds",
        "eval_seconds",
    ),
    *("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "test_loss", "test_accuracy"),
]


def digits(train, validation, test):
    values = part("data/digits.yaml") | {"train_size": train, "validation_size": validation, "test_size": test}
    return load(DataSettings(**values))


def all_alone(settings_, replicate, dataset, actions=4):
    sequences = DecisionTree(actions, settings_.decisions).sequences
    return pd.concat(
        [run_sequence(settings_, 0, replicate, sequence, dataset) for sequence in sequences], ignore_index=True
    )


def bytes_of(rows, folder):
    write_table(folder / "rows.parquet", rows)
    return (folder / "rows.parquet").read_bytes()


def trained(folder):
    return [count for path in folder.glob("*.sqlite") for count in NodeStore(path).trained().values()]


CASES = {
    "default": {},
    "published": {"growth": PUBLISHED_GROWTH, "reward": {"split": "test", "metric": "accuracy", "window": 1}},
    "fresh where decided": {"growth": {"optimizer": "fresh", "noop": "reset"}, "decision_every": 2, "adapt_at": 20.0},
    "batch norm": {"model": BATCH_NORM_MODEL, "timing": part("gpu/flops.yaml"), "curves": True},
    "down": {"budget": 100.0, "changes": [{"time": 70.0, "change": "down"}]},
    "down and up": {"budget": 120.0, "changes": [{"time": 55.0, "change": "down"}, {"time": 85.0, "change": "up"}]},
    "wider": {
        "actions": ["deepen-0", "widen-0", "widen-1"],
        "timing": part("gpu/flops.yaml"),
        "growth": {"symmetry_noise": 0.01},
    },
    "no trunk": {"adapt_at": 5.0, "budget": 40.0},
}


@pytest.mark.parametrize(("case", "replicate"), [(case, number % 2 * 2) for number, case in enumerate(CASES)])
def test_the_tree_equals_independent_runs_bit_for_bit(tmp_path, case, replicate):
    settings_, dataset = short(**CASES[case]), pictures()
    rows = simulate_replicate(settings_, 0, replicate, dataset, tmp_path)
    alone = all_alone(settings_, replicate, dataset, actions=3 if case == "batch norm" else 4)
    pd.testing.assert_frame_equal(rows, alone, check_exact=True)
    assert bytes_of(rows, tmp_path) == bytes_of(alone, tmp_path)
    assert set(trained(tmp_path)) == {1}


@pytest.mark.slow
def test_the_64_sequences_of_the_default_experiment_equal_independent_runs(tmp_path):
    """The default scenario `middle_late` with few pictures."""
    settings_, dataset = scenario(adapt_at=150.0), digits(96, 100, 100)
    rows = simulate_replicate(settings_, 0, 0, dataset, tmp_path)
    assert rows["sequence"].nunique() == 64
    pd.testing.assert_frame_equal(rows, all_alone(settings_, 0, dataset), check_exact=True)


def test_rows_and_what_is_evaluated(tmp_path):
    settings_ = short()
    rows = simulate_replicate(settings_, 0, 1, pictures(), tmp_path)
    assert list(rows.columns) == COLUMNS
    assert list(rows["sequence"].unique()) == list(DecisionTree(4, 2).sequences)
    for _, run in rows.groupby("sequence"):
        assert run["validation_loss"].notna().tolist() == [False] * (len(run) - 2) + [True] * 2
        assert run["train_loss"].notna().all() and run["train_accuracy"].between(0, 1).all()
        assert run["epoch"].tolist() == list(range(3, 3 + len(run)))
    first = rows[rows["sequence"] == "03"]
    assert first["action"].tolist()[:2] == [0, 3] and first["time_left"].tolist()[:2] == [40.0, 25.0]
    assert first["parameters"].iloc[0] == 754 + 584


def test_rows_become_a_simulation_table(tmp_path):
    settings_ = short()
    rows = pd.concat([simulate_replicate(settings_, 0, replicate, pictures(), tmp_path) for replicate in (0, 1)])
    found = view(simulation_table(rows, DecisionTree(4, 2), window=2), "validation_loss")
    assert found.reward.shape == (2, 16) and (found.reward < 0).all()
    assert found.time_left[0].tolist() == [40.0, 25.0, 28.5, 29.5, 30.0]


def test_the_trunk_is_evaluated_at_every_epoch_and_is_doing_nothing(tmp_path):
    settings_, dataset = short(), pictures()
    rows = train_trunk(settings_, 0, dataset, tmp_path)
    assert list(rows.columns) == COLUMNS and set(rows["sequence"]) == {"trunk"}
    assert rows["epoch"].tolist() == list(range(7)) and rows["test_accuracy"].notna().all()
    assert all(
        summary.has_state
        for path in tmp_path.glob("*trunk*.sqlite")
        for summary in NodeStore(path).summaries().values()
    )
    same = [name for name in COLUMNS if name not in ("sequence", "action", "time_left")]
    nothing = run_sequence(short(curves=True), 0, 0, "33", dataset)
    pd.testing.assert_frame_equal(rows[same][3:].reset_index(drop=True), nothing[same], check_exact=True)


def test_replicate_0_continues_the_trunk_and_the_others_draw_other_shuffles(tmp_path):
    settings_, dataset = short(), pictures()
    train_trunk(settings_, 0, dataset, tmp_path)
    last = {}
    for replicate in range(3):
        rows = simulate_replicate(settings_, 0, replicate, dataset, tmp_path)
        last[replicate] = rows[rows["sequence"] == "33"]["validation_loss"].iloc[-1]
    assert len(set(last.values())) == 3
    keys = [set(NodeStore(path).summaries()) for path in sorted(tmp_path.glob("*replicate*.sqlite"))]
    assert keys[1] == keys[2] and keys[1] - keys[0] == {"0004", "0005", "0006", "0007"}


def test_jobs_and_seeds_differ(tmp_path):
    dataset = pictures()
    losses = {
        (seed, job): train_trunk(short(seed=seed), job, dataset, tmp_path)["test_loss"].iloc[-1]
        for seed in (42, 43)
        for job in (0, 1)
    }
    assert len(set(losses.values())) == 4


def test_the_same_shuffle_for_every_sequence_of_a_replicate(tmp_path):
    """Layers behind the head's features start as the identity, so that two differ at first by rounding alone."""
    rows = simulate_replicate(short(training={"batch_size": 32, "learning_rate": 1e-9}), 0, 1, pictures(), tmp_path)
    at = rows[rows["epoch"] == 4].set_index("sequence")["train_loss"]
    assert at["33"] == pytest.approx(at["20"], rel=1e-5)


def test_a_policy_decides_by_architecture_and_time():
    told = []

    def policy(architecture, decision, time_left, actions):
        told.append((architecture.insertions, decision, time_left, actions))
        return 1 if decision == 0 else 3

    rows = run_sequence(short(), 0, 1, policy, pictures())
    assert told == [((0, 0, 0), 0, 40.0, ()), ((0, 1, 0), 1, 28.5, (1,))]
    pd.testing.assert_frame_equal(rows, run_sequence(short(), 0, 1, "13", pictures()), check_exact=True)


def test_one_more_decision_trains_only_new_nodes(tmp_path):
    dataset = pictures()
    simulate_replicate(short(), 0, 1, dataset, tmp_path / "grown")
    before = len(trained(tmp_path / "grown"))
    rows = simulate_replicate(short(decisions=3), 0, 1, dataset, tmp_path / "grown")
    fresh = simulate_replicate(short(decisions=3), 0, 1, dataset, tmp_path / "fresh")
    pd.testing.assert_frame_equal(rows, fresh, check_exact=True)
    assert set(trained(tmp_path / "grown")) == {1}
    assert before < len(trained(tmp_path / "grown")) == len(trained(tmp_path / "fresh"))


def test_what_determines_a_node_names_its_file(tmp_path):
    dataset = pictures()
    settings_ = short()
    train_trunk(settings_, 0, dataset, tmp_path)
    same = [
        settings_,
        short(budget=80.0),
        short(adapt_at=40.0),
        short(growth={"noop": "reset"}),
        short(name="other", curves=True),
    ]
    for other in same:
        train_trunk(other, 0, dataset, tmp_path)
    assert len(list(tmp_path.glob("*.sqlite"))) == 1 and set(trained(tmp_path)) == {1}
    train_trunk(settings_, 0, pictures(seed=1), tmp_path)
    train_trunk(short(training={"batch_size": 16}), 0, dataset, tmp_path)
    train_trunk(short(model=part("model/tiny8.yaml") | {"head_relu": True}), 0, dataset, tmp_path)
    assert len(list(tmp_path.glob("*.sqlite"))) == 4


@pytest.mark.parametrize(("part_", "damage"), [("trunk", "truncated"), ("replicate", "blob"), ("replicate", "gone")])
def test_damaged_stores_are_mended(tmp_path, part_, damage):
    settings_, dataset, lines = short(), pictures(), []
    rows = simulate_replicate(settings_, 0, 1, dataset, tmp_path)
    path = next(tmp_path.glob(f"*{part_}*.sqlite"))
    if damage == "blob":
        with sqlite3.connect(path) as connection:
            connection.execute(
                "UPDATE nodes SET state = zeroblob(length(state)), metrics = '{}' WHERE key GLOB '000[36]*'"
            )
        connection.close()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.unlink()
    again = simulate_replicate(settings_, 0, 1, dataset, tmp_path, lines.append)
    pd.testing.assert_frame_equal(again, rows, check_exact=True)
    assert any("damaged" in line for line in lines) == (damage != "gone")
    pd.testing.assert_frame_equal(simulate_replicate(settings_, 0, 1, dataset, tmp_path), rows, check_exact=True)


def test_what_was_made_before_is_computed_again_and_what_was_interrupted_is_not(tmp_path, monkeypatch):
    settings_, dataset, epochs = short(), pictures(), []
    train = TorchTrainer.train
    monkeypatch.setattr(TorchTrainer, "train", lambda *given: epochs.append(given[2].node) or train(*given))

    def run(name):
        epochs.clear()
        rows = simulate_replicate(settings_, 0, 1, dataset, tmp_path, output=name)
        return rows, len(epochs)

    rows, at_first = run("a")
    assert run("a")[1] == 0  # the job had not ended
    note_made(settings_, 0, 1, dataset, tmp_path, "a")
    assert run("b")[1] == 0  # another scenario that agrees on all of it
    again, trained_again = run("a")
    trunk = len(train_trunk(settings_, 0, dataset, tmp_path, output="t"))
    assert trained_again and trained_again + trunk >= at_first
    pd.testing.assert_frame_equal(again, rows, check_exact=True)
    assert run("a")[1] == 0  # as where it is killed meanwhile
    note_made(settings_, 0, None, dataset, tmp_path, "t")
    epochs.clear()
    train_trunk(settings_, 0, dataset, tmp_path, output="t")
    assert len(epochs) == trunk


def test_two_versions_of_the_code_share_a_folder_and_no_epoch(tmp_path, monkeypatch):
    settings_, dataset = short(), pictures()
    rows = simulate_replicate(settings_, 0, 1, dataset, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.sqlite")}
    monkeypatch.setattr(simulate, "TRAINING_CODE", {"code": "other", "packages": {}})
    other = simulate_replicate(settings_, 0, 1, dataset, tmp_path)
    pd.testing.assert_frame_equal(other, rows, check_exact=True)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert len(list(tmp_path.glob("*.sqlite"))) == 2 * len(before) and set(trained(tmp_path)) == {1}


def _simulate_as(code, gate, settings_, dataset, folder):
    simulate.TRAINING_CODE = {"code": code, "packages": {}}
    gate.wait()
    write_table(folder / f"rows-{code}.parquet", simulate_replicate(settings_, 0, 1, dataset, folder / "store"))


def test_two_versions_of_the_code_that_run_at_once_share_no_epoch(tmp_path):
    settings_, dataset, context = short(), pictures(), multiprocessing.get_context("fork")
    gate, alone = context.Event(), tmp_path / "alone"
    write_table(tmp_path / "rows.parquet", simulate_replicate(settings_, 0, 1, dataset, alone))
    given = [(code, gate, settings_, dataset, tmp_path) for code in ("one", "other")]
    processes = [context.Process(target=_simulate_as, args=each) for each in given]
    for process in processes:
        process.start()
    gate.set()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    rows = {(tmp_path / f"rows{code}.parquet").read_bytes() for code in ("", "-one", "-other")}
    assert len(rows) == 1
    assert len(list((tmp_path / "store").glob("*.sqlite"))) == 2 * len(list(alone.glob("*.sqlite")))
    assert set(trained(tmp_path / "store")) == {1}


def test_who_goes_back_to_earlier_code_finds_its_epochs_trained(tmp_path, monkeypatch):
    settings_, dataset, epochs = short(), pictures(), []
    train = TorchTrainer.train
    monkeypatch.setattr(TorchTrainer, "train", lambda *given: epochs.append(given[2].node) or train(*given))

    def made_by(code):
        monkeypatch.setattr(simulate, "TRAINING_CODE", {"code": code, "packages": {}})
        epochs.clear()
        simulate_replicate(settings_, 0, 1, dataset, tmp_path, output="a")
        note_made(settings_, 0, 1, dataset, tmp_path, "a")
        return len(epochs)

    assert made_by("one") and made_by("other")
    assert made_by("one") == made_by("other") == 0
    assert made_by("other"), "asked for once more"


def _simulate(settings_, replicate, dataset, folder):
    write_table(folder / f"rows-{replicate}.parquet", simulate_replicate(settings_, 0, replicate, dataset, folder))


def test_killed_at_random_moments_it_ends_with_the_same_bytes(tmp_path):
    settings_, dataset = short(changes=[{"time": 60.0, "change": "down"}], budget=90.0), pictures(300)
    (tmp_path / "whole").mkdir()
    _simulate(settings_, 1, dataset, tmp_path / "whole")
    (tmp_path / "killed").mkdir()
    context, moments, kills = multiprocessing.get_context("fork"), random.Random(1), 0
    for _ in range(4):
        process = context.Process(target=_simulate, args=(settings_, 1, dataset, tmp_path / "killed"))
        process.start()
        process.join(moments.uniform(0.05, 0.25))
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
    _simulate(settings_, 1, dataset, tmp_path / "killed")
    assert kills
    assert (tmp_path / "killed" / "rows-1.parquet").read_bytes() == (tmp_path / "whole" / "rows-1.parquet").read_bytes()
    assert set(trained(tmp_path / "killed")) == {1}


def test_one_worker_or_several_give_the_same_bytes(tmp_path):
    """Three replicates one after another, and all at once with one of them twice, from an empty store."""
    settings_, dataset = short(), pictures()
    (tmp_path / "one").mkdir()
    for replicate in range(3):
        _simulate(settings_, replicate, dataset, tmp_path / "one")
    (tmp_path / "many").mkdir()
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_simulate, args=(settings_, replicate, dataset, tmp_path / "many"))
        for replicate in (0, 1, 2, 1)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    for replicate in range(3):
        name = f"rows-{replicate}.parquet"
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()
    assert set(trained(tmp_path / "many")) == {1}


def test_progress_is_plain_text(tmp_path):
    lines = []
    simulate_replicate(short(), 0, 1, pictures(), tmp_path, lines.append)
    assert lines and all(line.isprintable() for line in lines)
    assert lines[-1].startswith("small, job 0, replicate 1: all ") and "trained in" in lines[-1]


@pytest.mark.parametrize(
    ("changes", "dataset", "match"),
    [
        ({"model": small("convnet2").model_dump(mode="json", exclude_defaults=True)}, {}, "model"),
        ({}, {"classes": 12}, "model"),
        ({}, {"validation_labels": NO_LABELS, "test_labels": NO_LABELS}, "data"),
        ({"budget": 9.0, "adapt_at": 1.0}, {}, "budget"),
        ({"timing": part("gpu/gv100gl.yaml")}, {}, "gv100gl"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(tmp_path, changes, dataset, match):
    dataset = type(pictures())(**{**vars(pictures()), **dataset})
    with pytest.raises(UserError, match=match):
        train_trunk(short(**changes), 0, dataset, tmp_path)


@pytest.mark.parametrize("sequence", ["3", "034", "3x"])
def test_sequences_that_are_none_are_refused(sequence):
    with pytest.raises(UserError, match=sequence):
        run_sequence(short(), 0, 0, sequence, pictures())
