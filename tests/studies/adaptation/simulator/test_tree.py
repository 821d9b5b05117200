"""The tree of runs, walked with a trainer that trains nothing."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scenarios import PUBLISHED_GROWTH, ChainTrainer, part, plan, scenario

from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.simulator.course import all_runs, trunk_run
from schedlab.studies.adaptation.simulator.store import NodeStore
from schedlab.studies.adaptation.simulator.timing import Timing
from schedlab.studies.adaptation.simulator.tree import Evaluation, Progress, build_tree, complete, nodes_to_store

TWO_CHANGES = [{"time": 120.0, "change": "down"}, {"time": 170.0, "change": "up"}, {"time": 210.0, "change": "down"}]
EQUAL_EPOCHS = {
    "name": "equal",
    "gpu": "none",
    "models": {
        "any": {
            "train": {"base": 8.0, "per_insertion": [0, 0, 0]},
            "evaluation": {"base": 2.0, "per_insertion": [0, 0, 0]},
        }
    },
}


def lead_of(settings_, start):
    timing = Timing(settings_.timing, 1200, 597)
    return trunk_run(settings_, architecture(settings_.model), timing).steps[: start.node.epoch]


def tree_of(settings_):
    course, start = plan(settings_)
    runs = all_runs(course, start)
    frontier = settings_.decisions * settings_.decision_every
    kept = nodes_to_store(runs, settings_.keep, frontier)
    return runs, build_tree(
        runs, lead_of(settings_, start), Evaluation(settings_.reward.window, settings_.curves, frontier), kept
    )


def walk(settings_, store, trainer=None):
    trainer = trainer or ChainTrainer()
    runs, tree = tree_of(settings_)
    return runs, complete(tree, trainer, lambda _node: store, Progress("test", tree.size, None)), trainer


def alone(settings_, run):
    """The metrics of one run trained from the first epoch on."""
    trainer, packed = ChainTrainer(), {}
    _, start = plan(settings_)
    state, metrics = trainer.initial(), {}
    for step in (*lead_of(settings_, start), *run.steps):
        state, metrics[step.node] = trainer.train(state, step, lambda node: list(packed.get(node, ["start"])))
        metrics[step.node] |= trainer.evaluate(state)
        packed[step.node] = list(state)
    return metrics


def agrees(settings_, runs, metrics):
    for run in runs:
        wanted = alone(settings_, run)
        for step in run.steps:
            assert metrics[step.node].items() <= wanted[step.node].items()
        for step in run.steps[-settings_.reward.window :]:
            assert metrics[step.node] == wanted[step.node]


CASES = {
    "default": {},
    "late": {"adapt_at": 190.0},
    "spread": {"decision_every": 4, "decisions": 2},
    "published": {"growth": PUBLISHED_GROWTH},
    "down": {"decisions": 2, "changes": TWO_CHANGES[:1]},
    "down and up": {"decisions": 2, "changes": TWO_CHANGES},
    "no trunk": {"adapt_at": 0.0, "budget": 90.0},
    "wider": {"actions": ["widen-0", "deepen-1"], "timing": part("gpu/flops.yaml"), "budget": 60.0, "adapt_at": 20.0},
}


@pytest.mark.parametrize(
    ("case", "keep"), [*((case, "frontier") for case in CASES), ("down and up", "leaves"), ("wider", "all")]
)
def test_every_run_through_the_tree_is_as_if_alone(tmp_path, case, keep):
    settings_ = scenario(keep=keep, **CASES[case])
    runs, metrics, trainer = walk(settings_, NodeStore(tmp_path / "nodes"))
    agrees(settings_, runs, metrics)
    assert max(trainer.trained.values()) == 1


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    adapt_at=st.integers(0, 200),
    decisions=st.integers(1, 3),
    every=st.integers(1, 3),
    down=st.none() | st.integers(1, 39),
    growth=st.sampled_from([{}, PUBLISHED_GROWTH, {"optimizer": "fresh", "noop": "reset"}]),
)
def test_any_scenario_through_the_tree_is_as_if_alone(tmp_path_factory, adapt_at, decisions, every, down, growth):
    changes = [{"time": float(adapt_at + down), "change": "down"}] if down else []
    settings_ = scenario(
        adapt_at=float(adapt_at), decisions=decisions, decision_every=every, changes=changes, growth=growth
    )
    runs, metrics, trainer = walk(settings_, NodeStore(tmp_path_factory.mktemp("tree") / "nodes"))
    agrees(settings_, runs, metrics)
    assert max(trainer.trained.values()) == 1


@pytest.mark.parametrize(("decisions", "every"), [(1, 1), (3, 1), (2, 5)])
@pytest.mark.parametrize("growth", [{}, PUBLISHED_GROWTH])
def test_epochs_are_those_of_the_published_formula_less_shared_doing_nothing(tmp_path, decisions, every, growth):
    settings_ = scenario(decisions=decisions, decision_every=every, timing=EQUAL_EPOCHS, growth=growth)
    actions, epochs = 4, 18
    formula = sum(actions**j * every for j in range(1, decisions)) + actions**decisions * (
        epochs - (decisions - 1) * every
    )
    _, _, trainer = walk(settings_, NodeStore(tmp_path / "nodes"))
    assert sum(trainer.trained.values()) - 6 == formula  # six epochs of the trunk


@pytest.mark.parametrize(("adapt_at", "epochs"), [(60.0, 682), (90.0, 552), (120.0, 424), (150.0, 291), (190.0, 122)])
def test_epochs_of_all_sequences(adapt_at, epochs):
    """Counts of a first prototype, which trained the trunk anew for each adaptation point."""
    settings_ = scenario(adapt_at=adapt_at)
    _, start = plan(settings_)
    _, tree = tree_of(settings_)
    assert tree.size + start.node.epoch == epochs


@pytest.mark.parametrize(("keep", "states"), [("frontier", 64 + 64), ("leaves", 64), ("all", 676 + 6)])
def test_states_that_are_kept(tmp_path, keep, states):
    store = NodeStore(tmp_path / "nodes")
    walk(scenario(keep=keep), store)
    kept = [key for key, summary in store.summaries().items() if summary.has_state and int(key[:4]) > 6]
    assert len(kept) == states - (6 if keep == "all" else 0)


@pytest.mark.parametrize("growth", [{}, PUBLISHED_GROWTH])
def test_one_more_decision_trains_only_what_is_new(tmp_path, growth):
    store = NodeStore(tmp_path / "nodes")
    walk(scenario(growth=growth), store)
    before = set(store.summaries())
    runs, metrics, trainer = walk(scenario(decisions=4, growth=growth), store)
    agrees(scenario(decisions=4, growth=growth), runs, metrics)
    fresh = NodeStore(tmp_path / "fresh")
    walk(scenario(decisions=4, growth=growth), fresh)
    assert set(trainer.trained) == set(fresh.summaries()) - before
    assert set(store.trained().values()) == {1}


def test_one_more_decision_without_the_frontier_trains_it_again_and_agrees(tmp_path):
    store = NodeStore(tmp_path / "nodes")
    walk(scenario(decisions=2, keep="leaves"), store)
    runs, metrics, _ = walk(scenario(decisions=3), store)
    agrees(scenario(decisions=3), runs, metrics)
    assert max(store.trained().values()) == 2


@pytest.mark.parametrize("keep", ["frontier", "leaves"])
def test_curves_and_longer_windows_can_be_asked_for_later(tmp_path, keep):
    store = NodeStore(tmp_path / "nodes")
    walk(scenario(adapt_at=150.0, keep=keep), store)
    settings_ = scenario(adapt_at=150.0, keep=keep, curves=True)
    runs, metrics, _ = walk(settings_, store)
    agrees(settings_, runs, metrics)
    assert all("test_loss" in found for found in metrics.values())
    _, again, trainer = walk(settings_, store)
    assert again == metrics and not trainer.trained


@pytest.mark.parametrize("count", [5, 40])
def test_damaged_and_lost_nodes_are_trained_again(tmp_path, count):
    settings_ = scenario(adapt_at=120.0, decisions=2, changes=[{"time": 170.0, "change": "down"}])
    store = NodeStore(tmp_path / "nodes")
    _, metrics, _ = walk(settings_, store)
    store.close()
    chosen = random.Random(count).sample(sorted(store.summaries()), count)
    store.close()
    with sqlite3.connect(tmp_path / "nodes") as connection:
        for number, key in enumerate(chosen):
            change = ["metrics = 'x'", "state = x'00'", "metrics_hash = ''"][number % 3]
            connection.execute(f"UPDATE nodes SET {change} WHERE key = ?", (key,))
            if number % 4 == 3:
                connection.execute("DELETE FROM nodes WHERE key = ?", (key,))
    connection.close()
    _, again, _ = walk(settings_, store)
    assert again == metrics
    _, third, trainer = walk(settings_, store)
    assert third == metrics and not trainer.trained


class SlowTrainer(ChainTrainer):
    """Takes a little time, so that it can be killed in the middle."""

    def train(self, state, step, recall):
        time.sleep(0.004)
        return super().train(state, step, recall)


def _simulate(settings_, path):
    with (store := NodeStore(path)).lock():
        walk(settings_, store, SlowTrainer())


@pytest.mark.parametrize(
    "case", ["down and up", *(pytest.param(case, marks=pytest.mark.slow) for case in ("late", "published"))]
)
def test_a_run_killed_at_random_moments_ends_with_the_same_metrics_and_trains_nothing_twice(tmp_path, case):
    settings_ = scenario(**({"adapt_at": 80.0, "decisions": 2} | CASES[case]))
    _, wanted, _ = walk(settings_, NodeStore(tmp_path / "whole"))
    context, moments = multiprocessing.get_context("fork"), random.Random(case)
    kills = 0
    for _ in range(12):
        process = context.Process(target=_simulate, args=(settings_, tmp_path / "nodes"))
        process.start()
        process.join(moments.uniform(0.01, 0.06))
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
    store = NodeStore(tmp_path / "nodes")
    _, metrics, _ = walk(settings_, store)
    assert kills and metrics == wanted
    assert set(store.trained().values()) == {1}


def test_two_processes_on_the_same_nodes_share_the_work(tmp_path):
    settings_ = scenario(adapt_at=190.0)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_simulate, args=(settings_, tmp_path / "nodes")) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    store = NodeStore(tmp_path / "nodes")
    assert set(store.trained().values()) == {1}
    assert walk(settings_, store)[1] == walk(settings_, NodeStore(tmp_path / "one"))[1]


def test_progress_tells_epochs_done_and_the_time_left():
    lines = []
    progress = Progress("early", 3, lines.append, every=0.0)
    for trained in (False, True, True):
        progress.count(trained)
    progress.close()
    assert [line.split(", about")[0] for line in lines[:2]] == ["early: 2 of 3 epochs", "early: 3 of 3 epochs"]
    assert (
        "s left" in lines[0]
        and lines[-1].startswith("early: all 3 epochs, 2 trained in")
        and lines[-1].endswith("1 from the store")
    )
