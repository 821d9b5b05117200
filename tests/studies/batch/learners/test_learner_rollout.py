"""Learning to roll out: the best candidate is kept, the search betters a base, a job resumes with equal bytes."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.config.contract import Budget, LearnPaths, Phase, PolicySpec
from schedlab.config.schema import validate
from schedlab.learning.job import LearningJob
from schedlab.stages.learn import CurveRecorder
from schedlab.studies.batch.learners import rollout as learner_rollout
from schedlab.studies.batch.learners.policy_files import load_priority
from schedlab.studies.batch.learners.rollout import RolloutLearner
from schedlab.studies.batch.learners.search import Judge, merit
from schedlab.studies.batch.learners.search_settings import CORRECT_RULES, RolloutSettings
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.rollouts import RolloutPolicy
from schedlab.workloads.prepare import make_trace

WORKLOAD = {"name": "drawn", "source": "lublin", "lublin": {"jobs": 500, "processors": 32, "load": 1.2, "users": 5}}
SETTINGS = {
    "population": 4,
    "windows": 3,
    "stride": 16,
    "most_windows": 4,
    "samples": 2,
    "stretches": 8,
    "horizons": [0, 4],
}


@pytest.fixture(scope="module")
def problems() -> dict[str, BatchProblem]:
    made = validate(BatchScenario, {"name": "drawn", "seed": 1, "workload": WORKLOAD, "windows": {"length": 40}})
    return {"drawn": BatchProblem(made, make_trace(made.workload)[0])}


def learn(folder, problems, seed: int = 3, steps: int = 3, **params):
    paths = LearnPaths(None, folder / "policy.zip", folder / "progress")
    paths.progress.mkdir(parents=True, exist_ok=True)
    spec = PolicySpec("policy", "learned", "rollout", {**SETTINGS, **params}, train_on=(Phase(("drawn",), steps),))
    with CurveRecorder(paths.progress / "curve.jsonl") as curve:
        RolloutLearner().learn(problems, spec, seed, paths, curve)
        return paths.checkpoint.read_bytes(), curve.points()


def test_the_best_candidate_is_kept(problems, tmp_path) -> None:
    learn(tmp_path, problems)
    kept = load_priority(tmp_path / "policy.zip")
    judge = Judge(list(problems.values()), validate(RolloutSettings, SETTINGS), Budget())
    best_rule = min(merit(judge.figures(rule)) for rule in CORRECT_RULES)
    assert merit(judge.figures(kept)) <= best_rule
    learn(tmp_path / "own", problems, candidates=[])
    own = load_priority(tmp_path / "own" / "policy.zip")
    assert isinstance(own, RolloutPolicy)
    assert merit(judge.figures(kept)) == min(merit(judge.figures(own)), best_rule, merit(judge.figures("planner")))
    assert (
        RolloutLearner().load(tmp_path / "own" / "policy.zip", problems["drawn"]).rule.bases.tolist()
        == own.bases.tolist()
    )


def test_same_seed_same_bytes_and_another_seed_others(problems, tmp_path) -> None:
    first, points = learn(tmp_path / "a", problems, candidates=[], horizons=[4])
    again, same_points = learn(tmp_path / "b", problems, candidates=[], horizons=[4])
    other, _ = learn(tmp_path / "c", problems, candidates=[], horizons=[4], seed=4)
    assert first == again and points == same_points and first != other
    splits = {point["split"] for point in points if point["metric"] == "ratio_to_rule"}
    assert splits == {"validation", "train"} and {point["phase"] for point in points} == {0}


def test_damaged_progress_begins_anew(problems, tmp_path) -> None:
    whole, _ = learn(tmp_path / "whole", problems, candidates=[], horizons=[4])
    (tmp_path / "torn" / "progress").mkdir(parents=True)
    (tmp_path / "torn" / "progress" / "learning.zip").write_bytes(b"half a file")
    assert learn(tmp_path / "torn", problems, candidates=[], horizons=[4])[0] == whole


def test_an_interrupted_job_goes_on_with_equal_bytes(problems, tmp_path, monkeypatch) -> None:
    whole, _ = learn(tmp_path / "whole", problems)
    advance, calls = learner_rollout.make_generation, iter(range(100))

    def failing(*values):
        if next(calls) == 4:
            raise KeyboardInterrupt
        advance(*values)

    monkeypatch.setattr(learner_rollout, "make_generation", failing)
    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path / "cut", problems)
    calls = iter(range(10, 100))
    assert learn(tmp_path / "cut", problems)[0] == whole
    assert len(list(calls)) == 90 - 2  # the second search goes on after its first generation


def test_progress_of_a_longer_search_is_not_taken_up(problems, tmp_path) -> None:
    values = {"seed": 4, "candidates": [], "horizons": [4]}
    whole, _ = learn(tmp_path / "whole", problems, steps=1, **values)
    longer, _ = learn(tmp_path / "other", problems, steps=3, **values)
    assert (tmp_path / "other/progress/learning.zip").is_file()
    assert learn(tmp_path / "other", problems, steps=1, **values)[0] == whole != longer


def test_predictions_and_arrivals_come_from_the_training_part_alone(problems, tmp_path) -> None:
    problem = problems["drawn"]
    paths = LearnPaths(None, tmp_path / "policy.zip", tmp_path)
    spec = PolicySpec("policy", "learned", "rollout", train_on=(Phase(("drawn",), 1),))
    job = LearningJob("any", {}, spec, 0, paths, lambda *_, **__: None)
    search = learner_rollout.BaseSearch(job, {"drawn": problem}, [validate(RolloutSettings, SETTINGS)])
    end = problem.part("train")[1]
    found = search._arrivals(4)
    pairs = set(zip(problem.jobs.run[:end].tolist(), problem.jobs.requested[:end].tolist(), strict=True))
    assert set(zip(found.run.ravel().tolist(), found.requested.ravel().tolist(), strict=True)) <= pairs
    assert found.gap.shape == (8, 4) and np.isfinite(found.weight).all()
