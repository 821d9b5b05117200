"""Rates of the adaptation study: real training, the table, learning on it. Scenario `late` at scale small, data set
digits.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from schedlab.config import experiment
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.schema import validate
from schedlab.stages.studies import find_study
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.example import example_problem
from schedlab.studies.adaptation.learners.exact import ExactLearner
from schedlab.studies.adaptation.learners.reinforce import ReinforceLearner
from schedlab.studies.adaptation.scenario import AdaptationScenario
from schedlab.studies.adaptation.simulator.simulate import simulate_replicate, train_trunk
from schedlab.studies.adaptation.simulator.table import DecisionTree, simulation_table


@pytest.fixture(scope="module")
def late(records):
    """The scenario and its data set, one thread."""
    torch.set_num_threads(1)
    loaded = experiment.load("conf", "small", find_study, records)
    values = loaded.scenario("adaptation", "late")["parts"]["simulate_adaptation"]["values"]
    scenario = validate(AdaptationScenario, values)
    return scenario, datasets.load(scenario.data)


@pytest.fixture
def new_folder(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("store")


def bench_epochs(measure, late, new_folder):
    """Epochs of the trunk of `late` (`tiny8` on `digits`): training, evaluation and storing the state."""
    scenario, digits = late
    measure(lambda store: len(train_trunk(scenario, 0, digits, store)), "epochs", setup=new_folder)


def bench_sequences(measure, late, new_folder, quick):
    """Training of all 64 sequences of one replicate of `late` through the prefix tree."""
    scenario, digits = late
    if quick:
        scenario = scenario.model_copy(update={"decisions": 1})

    def store_with_trunk():
        store = new_folder()
        train_trunk(scenario, 0, digits, store)
        return store

    def simulate(store) -> int:
        simulate_replicate(scenario, 0, 0, digits, store)
        return 1

    measure(simulate, "s", rounds=3, setup=store_with_trunk)


def bench_table(measure, late, new_folder):
    """Rows of the table of one replicate (64 sequences of `late`), computed from the trained epochs."""
    scenario, digits = late
    epochs, tree = simulate_replicate(scenario, 0, 0, digits, new_folder()), DecisionTree(4, 3)
    measure(lambda: len(simulation_table(epochs, tree, scenario.reward.window, scenario.decision_every)), "rows")


@pytest.fixture
def learn(new_folder):
    """Learns a policy on invented scenarios, by the values of a file of conf/learner/adaptation."""

    def run(learner, form: str, starts: tuple[float, ...], steps: int) -> None:
        problems = {f"at-{start:g}": example_problem(start) for start in starts}
        params = yaml.safe_load(Path(f"conf/learner/adaptation/{form}.yaml").read_text())
        del params["name"]
        if "returns" in params:
            params["returns"] = "plain"  # the published form of returns is defined for accuracies alone
        spec = PolicySpec(form, "learned", form, params, (0,), (Phase(tuple(problems), steps),))
        folder = new_folder()
        paths = LearnPaths(None, folder / "policy.zip", folder / "progress")
        learner.learn(problems, spec, 0, paths, lambda *_, **__: None)

    return run


def bench_oracle(measure, learn):
    """Learning by `exact` on three invented tables of 64 sequences together."""

    def work() -> int:
        learn(ExactLearner(), "exact", (60.0, 120.0, 190.0), 300)
        return 1

    measure(work, "s")


@pytest.mark.parametrize("form", ["reinforce_published", "reinforce"])
def bench_reinforce(measure, quick, learn, form):
    """Episodes of REINFORCE on an invented table: as published (one per update), or with our settings (64)."""
    episodes = {"reinforce_published": 500, "reinforce": 10_000}[form] // (5 if quick else 1)

    def work() -> int:
        learn(ReinforceLearner(), form, (60.0,), episodes)
        return episodes

    measure(work, "episodes", rounds=5)
