"""Defects of the published system, each shown by the one switch that makes it. `pytest -s` prints what is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from small_scenarios import part
from small_scenarios import scenario as small_scenario
from small_tables import learn, published

from schedlab.config.contract import Phase
from schedlab.config.schema import validate
from schedlab.learning.policy_gradient import cooled
from schedlab.studies.adaptation.data import datasets as data
from schedlab.studies.adaptation.data.datasets import DataSet, DataSettings
from schedlab.studies.adaptation.learners.exact import ExactLearner
from schedlab.studies.adaptation.network.growth import deepen
from schedlab.studies.adaptation.network.models import Network
from schedlab.studies.adaptation.scenario import GrowthSettings
from schedlab.studies.adaptation.simulator.simulate import Job, TorchTrainer


@pytest.fixture(scope="module")
def digits() -> DataSet:
    return data.load(validate(DataSettings, part("data/digits.yaml")))


def trained(digits: DataSet, job: int, model: dict, epochs: int | None = None) -> tuple[Network, float]:
    """The network of a job after some epochs (or all) without adaptation, and its test accuracy."""
    whole = Job(small_scenario(model=model), job, digits)
    trainer = TorchTrainer(whole)
    state = trainer.initial()
    for step in whole.trunk.steps[:epochs]:
        state, _ = trainer.train(state, step, lambda _node: None)
    return state.network.eval(), trainer.evaluate(state)["test_accuracy"]


@pytest.mark.parametrize("jobs", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_logits_through_a_relu_leave_classes_dead(digits: DataSet, jobs: int) -> None:
    """Switch: model.head_relu. A class whose logit is nowhere positive has no gradient left and is never learned."""
    images, dead, accuracy = torch.from_numpy(digits.train_images), {}, {}
    for head_relu in (False, True):
        networks = [trained(digits, job, {**part("model/tiny8.yaml"), "head_relu": head_relu}) for job in range(jobs)]
        with torch.no_grad():
            dead[head_relu] = [int((network(images) <= 0).all(0).sum()) for network, _ in networks]
        accuracy[head_relu] = float(np.mean([correct for _, correct in networks]))
    print(f"dead classes of 10: {dead[True]} with the ReLU, {dead[False]} without; mean test accuracy {accuracy}")
    assert sum(dead[False]) == 0 < 2 * jobs < sum(dead[True])
    assert accuracy[True] < accuracy[False] - 0.1


def with_batch_norm() -> dict:
    """The default model with five channels and a batch norm behind each convolution."""
    model = {**part("model/tiny8.yaml"), "name": "tiny5_bn"}
    model["blocks"] = [
        {**block, "out": 5, "batch_norm": True} if block["kind"] == "conv" else block for block in model["blocks"]
    ]
    return model


def test_inserted_batch_norm_does_not_preserve_the_function_in_training(digits: DataSet) -> None:
    """Switch: growth.bn_init. Calibration makes evaluation exact; only leaving the batch norm out, training. Means over
    six networks, whose changes in training differ by a factor of six.
    """
    networks = [trained(digits, job, with_batch_norm(), epochs=6)[0] for job in range(6)]
    images, found = torch.from_numpy(digits.train_images), {}
    for init in ("default", "calibrated", "none"):
        for training in (False, True):
            changes = []
            for network in networks:
                grown = deepen(network.eval(), 0, GrowthSettings(bn_init=init), images, 0)
                with torch.no_grad():
                    before, after = (net.train(training)(images[:64]) for net in (network, grown))
                changes.append(float((after - before).norm() / before.norm()))
            found[init, training] = float(np.mean(changes))
            print(f"bn_init {init}, {'training' if training else 'evaluation'}: outputs {found[init, training]:.2e}")
    assert found["calibrated", False] < 1e-6 < found["default", False] < 2e-5
    assert min(found["default", True], found["calibrated", True]) > 0.01
    assert found["none", True] == found["none", False] == 0


def test_temperature_on_probabilities_is_all_or_nothing() -> None:
    """Switch: temperature_on. Divided probabilities are nearly equal even for a policy that is certain."""
    certain = torch.tensor([30.0, 0.0, 0.0, 0.0])
    on_probabilities = [float((certain.softmax(-1) / tau).softmax(-1).max()) for tau in (1.0001, 10.0, 1000.0)]
    on_logits = [float((certain / tau).softmax(-1).max()) for tau in (1.0001, 10.0, 1000.0)]
    print(f"largest probability at temperatures just above 1, 10 and 1000: {on_probabilities}, on logits {on_logits}")
    assert on_probabilities == pytest.approx([0.475, 0.269, 0.250], abs=1e-3)
    assert on_logits == pytest.approx([1.0, 0.870, 0.256], abs=1e-3)
    hot = {tau: sum(cooled(tau, 0.9, 1, episode) > 1 for episode in range(10_000)) for tau in (10.0, 100.0, 1000.0)}
    assert hot == {10.0: 22, 100.0: 44, 1000.0: 66}


def test_the_parents_sequence_and_rank_stand_beside_the_policys_own(shared_data: Path, tmp_path: Path) -> None:
    """The published system scored a transferred policy by its first parameters; here both are recorded."""
    problems = published(shared_data / "cases/adaptation/simulations.csv")
    parent = learn(ExactLearner(), problems, (Phase(("early",), 300),), tmp_path / "parent")
    child = learn(ExactLearner(), problems, (Phase(("late",), 300),), tmp_path / "child", start=parent.checkpoint)
    late = problems["late"]
    told = {}
    for name, learned in (("parent", parent), ("child", child)):
        policy = ExactLearner().load(learned.checkpoint, late)
        told[name] = late.rollout(policy, late.units("test")[0]).details["sequences"].iloc[0]
    assert told["parent"]["parent_sequence"] == "" and np.isnan(told["parent"]["parent_rank"])
    assert (told["child"]["parent_sequence"], told["child"]["parent_rank"]) == (
        told["parent"]["sequence"],
        told["parent"]["rank"],
    )
    assert told["child"]["rank"] == 1 < told["child"]["parent_rank"]
