from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_tables import SCENARIOS, learn, published, ranks

from schedlab.config.contract import Budget, Phase
from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.studies.adaptation.example import example_problem
from schedlab.studies.adaptation.learners import sequence
from schedlab.studies.adaptation.learners.sequence import BanditLearner, ConstantLearner, NearestLearner


@pytest.fixture(scope="module")
def examples() -> dict:
    return {f"at-{start:g}": example_problem(start) for start in (60.0, 120.0, 190.0)}


def taken(learner, learned, problem) -> str:
    outcome = problem.rollout(learner.load(learned.checkpoint, problem), problem.units("test")[0])
    return outcome.details["sequences"]["sequence"][0]


def test_the_best_constant_sequence_of_the_published_scenarios_is_the_published_one(
    shared_data: Path, tmp_path: Path
) -> None:
    problems = published(shared_data / "cases/adaptation/simulations.csv")
    learned = learn(ConstantLearner(), problems, (Phase(SCENARIOS, 1),), tmp_path)
    assert {taken(ConstantLearner(), learned, problem) for problem in problems.values()} == {"011"}
    assert ranks(ConstantLearner(), learned.checkpoint, problems) == dict(zip(SCENARIOS, (3, 12, 9, 1, 1), strict=True))


def test_constant_learns_from_training_units_alone(examples: dict, tmp_path: Path) -> None:
    learned = learn(ConstantLearner(), examples, (Phase(tuple(examples), 1),), tmp_path)
    mean = np.mean([problem.view.reward[:2].mean(0) for problem in examples.values()], axis=0)
    assert read_checkpoint(learned.checkpoint).meta["sequence"] == examples["at-60"].tree.sequences[mean.argmax()]


def test_a_bandit_finds_the_best_constant_sequence(examples: dict, tmp_path: Path) -> None:
    alone = {"at-60": examples["at-60"]}
    learned = learn(BanditLearner(), alone, (Phase(("at-60",), 6000),), tmp_path, params={"exploration": 0.3})
    mean = alone["at-60"].view.reward[:2].mean(0)
    chosen = alone["at-60"].tree.index(read_checkpoint(learned.checkpoint).meta["sequence"])
    assert np.sum(mean > mean[chosen]) < 3
    rewards = [value for metric, value, *_ in learned.curves if metric == "reward"]
    assert np.mean(rewards[-20:]) > np.mean(rewards[:4])


def test_a_bandit_pulls_every_arm_before_any_twice_and_is_bound_to_its_seed(examples: dict, tmp_path: Path) -> None:
    jobs = [
        learn(
            BanditLearner(),
            examples,
            (Phase(tuple(examples), 64),),
            tmp_path / str(i),
            seed,
            params={"record_every": 1},
        )
        for i, seed in enumerate((1, 1, 2))
    ]
    assert jobs[0].curves == jobs[1].curves and jobs[0].checkpoint.read_bytes() == jobs[1].checkpoint.read_bytes()
    assert jobs[0].curves != jobs[2].curves
    alone = learn(BanditLearner(), examples, (Phase(("at-60",), 64),), tmp_path / "alone", params={"record_every": 1})
    rows = examples["at-60"].view.reward[:2]
    pulled = [set(np.argwhere(rows == value)[:, 1].tolist()) for _, value, *_ in alone.curves]
    assert set().union(*pulled) == set(range(64))


def test_nearest_acts_as_in_the_scenario_of_the_nearest_time(examples: dict, tmp_path: Path) -> None:
    learned = learn(NearestLearner(), examples, (Phase(("at-60", "at-190"), 1),), tmp_path)
    best = {
        name: problem.tree.sequences[problem.view.reward[:2].mean(0).argmax()] for name, problem in examples.items()
    }
    assert best["at-60"] != best["at-190"]
    assert taken(NearestLearner(), learned, examples["at-60"]) == best["at-60"]
    assert taken(NearestLearner(), learned, examples["at-190"]) == best["at-190"]
    assert taken(NearestLearner(), learned, example_problem(70.0)) == best["at-60"]
    assert taken(NearestLearner(), learned, example_problem(150.0)) == best["at-190"]


@pytest.mark.parametrize("learner", [ConstantLearner(), NearestLearner()])
def test_a_sequence_for_other_decisions_is_refused(examples: dict, tmp_path: Path, learner) -> None:
    learned = learn(learner, examples, (Phase(("at-60",), 1),), tmp_path)
    write_checkpoint(tmp_path / "two.zip", {**read_checkpoint(learned.checkpoint).meta, "decisions": 2})
    with pytest.raises(UserError, match=r"2.*3"):
        learner.load(tmp_path / "two.zip", examples["at-60"])
    other = NearestLearner() if isinstance(learner, ConstantLearner) else ConstantLearner()
    with pytest.raises(UserError, match="kind"):
        other.load(learned.checkpoint, examples["at-60"])


def test_each_look_at_the_tables_is_a_training_once(examples: dict, tmp_path: Path) -> None:
    everything = sum(problem.view.reward[list(problem.rows("train"))].size for problem in examples.values())
    phases = (Phase(tuple(examples), 1),)
    for learner in (ConstantLearner(), NearestLearner()):
        learned = learn(learner, examples, phases, tmp_path / type(learner).__name__)
        assert learned.budget == Budget(trainings=everything)
        assert {dict(at)["trainings"] for _, _, *at in learned.curves} == {everything}
    pulled = learn(BanditLearner(), examples, (Phase(tuple(examples), 5000),), tmp_path / "bandit").budget
    assert (pulled.episodes, pulled.decisions) == (5000, 5000 * examples["at-60"].tree.decisions)
    assert len(examples["at-60"].tree.sequences) < pulled.trainings <= everything


class Killed(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1, 5, 7, 12])
def test_an_interrupted_bandit_goes_on_to_the_same_bytes(
    examples: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    phases = (Phase(("at-60", "at-190"), 100), Phase(("at-120",), 110))
    monkeypatch.setattr(sequence, "SAVE_EVERY", 2)
    whole = learn(BanditLearner(), examples, phases, tmp_path / "whole", 3)
    original, count = sequence._Pulls.step, 0

    def killed(self, *arguments) -> None:
        nonlocal count
        count += 1
        if count > after:
            raise Killed
        original(self, *arguments)

    monkeypatch.setattr(sequence._Pulls, "step", killed)
    with pytest.raises(Killed):
        learn(BanditLearner(), examples, phases, tmp_path / "cut", 3)
    monkeypatch.setattr(sequence._Pulls, "step", original)
    cut = learn(BanditLearner(), examples, phases, tmp_path / "cut", 3)
    assert cut.checkpoint.read_bytes() == whole.checkpoint.read_bytes()
    assert cut.curves == whole.curves and cut.budget == whole.budget
