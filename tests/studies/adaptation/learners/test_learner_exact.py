from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from small_tables import SCENARIOS, learn, published, ranks

from schedlab.config.contract import Budget, Phase
from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.studies.adaptation.example import example_problem
from schedlab.studies.adaptation.learners import exact
from schedlab.studies.adaptation.learners.exact import ExactLearner, _loss

STARTS = (60.0, 120.0, 190.0)


@pytest.fixture(scope="module")
def csv(shared_data: Path) -> Path:
    return shared_data / "cases/adaptation/simulations.csv"


@pytest.fixture(scope="module")
def examples() -> dict:
    return {f"at-{start:g}": example_problem(start) for start in STARTS}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["convnet2", "convnet3"])
def test_it_reaches_the_ceiling_of_every_single_scenario(csv: Path, tmp_path: Path, name: str) -> None:
    for scenario, problem in published(csv, name).items():
        alone = {scenario: problem}
        learned = learn(ExactLearner(), alone, (Phase((scenario,), 300),), tmp_path / scenario)
        assert ranks(ExactLearner(), learned.checkpoint, alone) == {scenario: 1}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_one_policy_is_best_in_all_five_published_scenarios(csv: Path, tmp_path: Path, seed: int) -> None:
    problems = published(csv)
    learned = learn(ExactLearner(), problems, (Phase(SCENARIOS, 300),), tmp_path, seed)
    assert set(ranks(ExactLearner(), learned.checkpoint, problems).values()) == {1}
    accuracies = [
        value
        for metric, value, *at in learned.curves
        if metric == "accuracy" and dict(at)["update"] == max(updates(learned))
    ]
    assert round(float(np.mean(accuracies)), 4) == 0.7194


def updates(learned) -> set[int]:
    return {dict(at)["update"] for _, _, *at in learned.curves}


def test_it_reaches_the_ceiling_of_the_training_replicates(examples: dict, tmp_path: Path) -> None:
    learned = learn(ExactLearner(), examples, (Phase(tuple(examples), 300),), tmp_path)
    for problem in examples.values():
        mean = problem.view.reward[list(problem.rows("train"))].mean(0)
        outcome = problem.rollout(ExactLearner().load(learned.checkpoint, problem), problem.units("test")[0])
        assert outcome.details["sequences"]["sequence"].tolist() == [problem.tree.sequences[mean.argmax()]]


def test_the_loss_is_the_expectation_over_all_sequences() -> None:
    logits = torch.tensor([[0.3, -1.0, 0.2, 0.9]], requires_grad=True)
    scaled = torch.tensor([[0.0, -1.0, -2.0, -0.5]])
    loss = _loss(logits.log_softmax(-1), scaled, 0.5)
    chances = torch.softmax(logits, -1).detach().double().numpy()[0]
    expected = -(chances @ scaled.numpy()[0] - 0.5 * chances @ np.log(chances)) / 0.5
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    loss.sum().backward()
    merit = scaled.numpy()[0] / 0.5 - np.log(chances)
    np.testing.assert_allclose(logits.grad[0], -chances * (merit - chances @ merit), atol=1e-6)


def test_it_looks_every_training_up(examples: dict, tmp_path: Path) -> None:
    learned = learn(ExactLearner(), examples, (Phase(tuple(examples), 1),), tmp_path)
    assert learned.budget == Budget(
        trainings=sum(problem.view.reward[list(problem.rows("train"))].size for problem in examples.values())
    )


def test_it_stops_when_it_is_sure_and_never_takes_more_updates_than_given(examples: dict, tmp_path: Path) -> None:
    learned = learn(ExactLearner(), examples, (Phase(tuple(examples), 2000),), tmp_path / "long")
    assert max(updates(learned)) < 400
    short = learn(ExactLearner(), examples, (Phase(tuple(examples), 7),), tmp_path / "short")
    assert max(updates(short)) == 5  # recorded every five


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(examples: dict, tmp_path: Path) -> None:
    phases = (Phase(tuple(examples), 30),)
    one, same, other = (
        learn(ExactLearner(), examples, phases, tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one.checkpoint.read_bytes() == same.checkpoint.read_bytes() and one.curves == same.curves
    assert one.checkpoint.read_bytes() != other.checkpoint.read_bytes()


class Killed(Exception):
    pass


@pytest.mark.parametrize("after", [0, 3, 8, 11, 17])
def test_an_interrupted_job_goes_on_to_the_same_bytes(
    examples: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    first, second, _ = examples
    phases = (Phase((first,), 8), Phase((first, second), 9))  # 9 and 10 looks
    monkeypatch.setattr(exact, "SAVE_EVERY", 2)
    whole = learn(ExactLearner(), examples, phases, tmp_path / "whole", 3)
    original, count = exact._Learning.step, 0

    def killed(self, *arguments) -> bool:
        nonlocal count
        count += 1
        if count > after:
            raise Killed
        return original(self, *arguments)

    monkeypatch.setattr(exact._Learning, "step", killed)
    with pytest.raises(Killed):
        learn(ExactLearner(), examples, phases, tmp_path / "cut", 3)
    after, before = 100, count - 1
    monkeypatch.setattr(exact._Learning, "step", killed)
    cut = learn(ExactLearner(), examples, phases, tmp_path / "cut", 3)
    assert cut.checkpoint.read_bytes() == whole.checkpoint.read_bytes()
    assert cut.curves == whole.curves and cut.budget == whole.budget
    assert count - before - 1 <= 19 - before + 1  # at most one of the steps was made a second time


def test_a_child_starts_from_its_parent_and_writes_its_own_parameters(examples: dict, tmp_path: Path) -> None:
    first, _, last = examples
    parent = learn(ExactLearner(), examples, (Phase((first,), 300),), tmp_path / "parent")
    before = parent.checkpoint.read_bytes()
    child = learn(ExactLearner(), examples, (Phase((last,), 300),), tmp_path / "child", start=parent.checkpoint)
    unchanged = learn(
        ExactLearner(),
        examples,
        (Phase((last,), 1),),
        tmp_path / "same",
        start=parent.checkpoint,
        params={"learning_rate": 1e-30},
    )
    assert parent.checkpoint.read_bytes() == before != child.checkpoint.read_bytes()
    arrays, started = read_checkpoint(parent.checkpoint).arrays, read_checkpoint(unchanged.checkpoint).arrays
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, started[name])
    problem = examples[last]
    chosen = problem.rollout(ExactLearner().load(child.checkpoint, problem), problem.units("train")[0]).details[
        "sequences"
    ]["sequence"][0]
    assert chosen == problem.tree.sequences[problem.view.reward[list(problem.rows("train"))].mean(0).argmax()]


def test_a_policy_for_another_number_of_actions_is_refused_when_it_is_loaded(examples: dict, tmp_path: Path) -> None:
    learned = learn(ExactLearner(), examples, (Phase(tuple(examples), 2),), tmp_path, params={"head": "fixed"})
    checkpoint = read_checkpoint(learned.checkpoint)
    write_checkpoint(tmp_path / "five.zip", {**checkpoint.meta, "actions": 5}, checkpoint.arrays)
    with pytest.raises(UserError, match=r"five\.zip.*example-60.*5.*4"):
        ExactLearner().load(tmp_path / "five.zip", examples["at-60"])
    write_checkpoint(tmp_path / "odd.zip", {"kind": "adaptation-network", "actions": 4}, checkpoint.arrays)
    with pytest.raises(UserError, match=r"odd\.zip"):
        ExactLearner().load(tmp_path / "odd.zip", examples["at-60"])
    with pytest.raises(UserError, match="shape"):
        learn(
            ExactLearner(),
            examples,
            (Phase(tuple(examples), 2),),
            tmp_path / "x",
            start=learned.checkpoint,
            params={"head": "fixed", "linear": 32},
        )


def test_wrong_jobs_are_told(examples: dict, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'at-6'.*'at-60'"):
        learn(ExactLearner(), examples, (Phase(("at-6",), 2),), tmp_path)
    with pytest.raises(UserError, match=r"'learning_rte'.*'learning_rate'"):
        learn(ExactLearner(), examples, (Phase(("at-60",), 2),), tmp_path, params={"learning_rte": 1})
    with pytest.raises(UserError, match="'encoder'"):
        learn(ExactLearner(), examples, (Phase(("at-60",), 2, {"encoder": "vocab"}),), tmp_path)
