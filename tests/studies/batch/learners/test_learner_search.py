"""Searches without a network: they better their start, keep what validation says, and resume with equal bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from schedlab.config.contract import Budget, LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.settings import PolicySettings
from schedlab.stages.learn import CurveRecorder
from schedlab.studies.batch.learners import search as learner_search
from schedlab.studies.batch.learners.policy_files import load_priority
from schedlab.studies.batch.learners.search import (
    EvolutionLearner,
    Judge,
    best_rule,
    drawn_windows,
    merit,
    spread_windows,
)
from schedlab.studies.batch.learners.search_settings import (
    CORRECT_RULES,
    CandidateSettings,
    RolloutSettings,
)
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.rules import PLAN, PLANNER, LinearPriority
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.study import check_policy
from schedlab.workloads.prepare import make_trace

WORKLOAD = {"name": "drawn", "source": "lublin", "lublin": {"jobs": 600, "processors": 32, "load": 1.2}}
SETTINGS = {"longer_without_plans": 1, "population": 6, "windows": 4, "stride": 16, "most_windows": 8, "check_every": 2}


def drawn_problem(**values) -> BatchProblem:
    made = validate(
        BatchScenario, {"name": "drawn", "seed": 1, "workload": WORKLOAD, "windows": {"length": 48}, **values}
    )
    return BatchProblem(made, make_trace(made.workload)[0])


@pytest.fixture(scope="module")
def problems() -> dict[str, BatchProblem]:
    return {"drawn": drawn_problem()}


def learn(folder, problems, learner=None, seed: int = 3, steps: int = 4, **params):
    paths = LearnPaths(params.pop("start", None), folder / "policy.zip", folder / "progress")
    paths.progress.mkdir(parents=True, exist_ok=True)
    spec = PolicySpec(
        "policy", "learned", "evolution", {**SETTINGS, **params}, train_on=(Phase(tuple(problems), steps),)
    )
    with CurveRecorder(paths.progress / "curve.jsonl") as curve:
        (learner or EvolutionLearner()).learn(problems, spec, seed, paths, curve)
        return paths.checkpoint.read_bytes(), curve.points()


def test_windows_lie_within_their_part(problems) -> None:
    problem = problems["drawn"]
    drawn = drawn_windows([problem], 200, np.random.default_rng(0), Budget())
    assert {start for _, start in drawn.places} <= set(range(300 - 48 + 1))
    assert [start for _, start in spread_windows([problem], "validation", 4, 100, Budget()).places] == [
        300,
        304,
        308,
        312,
    ]
    assert len(spread_windows([problem], "train", 1, 7, Budget()).places) == 7
    with pytest.raises(UserError, match="scenario drawn: windows"):
        spread_windows([drawn_problem(windows={"length": 64})], "validation", 4, 100, Budget())


def test_a_window_is_scored_as_the_problem_scores_it(problems) -> None:
    problem = problems["drawn"]
    unit = problem.units("validation")[0]
    found = spread_windows([problem], "validation", 48, 1, Budget()).bsld("f1")
    assert found.tolist() == [problem.rollout(RULE_MAKERS["f1"]({}, problem, 0), unit).scores["avg_bsld"]]


def test_the_search_betters_its_start_on_training_windows(problems, tmp_path) -> None:
    _, points = learn(tmp_path, problems, steps=8, starts=["linear"], population=10)
    course = [point["value"] for point in points if point["metric"] == "fitness"]
    assert len(course) == 8
    used = [(point["episodes"], point["decisions"]) for point in points if point["metric"] == "fitness"]
    windows = (1 + 10) * SETTINGS["windows"]
    assert [episodes for episodes, _ in used] == [windows * generation for generation in range(1, 9)]
    assert all(later[1] - earlier[1] >= 48 * windows for earlier, later in pairwise(used))
    assert np.mean(course[-2:]) < course[0] - 0.2


def test_same_seed_same_bytes_and_another_seed_others(problems, tmp_path) -> None:
    first, points = learn(tmp_path / "a", problems, candidates=[])
    again, same_points = learn(tmp_path / "b", problems, candidates=[])
    other, _ = learn(tmp_path / "c", problems, candidates=[], seed=4)
    assert first == again and points == same_points
    assert first != other


def test_damaged_progress_begins_anew(problems, tmp_path) -> None:
    whole, _ = learn(tmp_path / "whole", problems, candidates=[])
    (tmp_path / "torn" / "progress").mkdir(parents=True)
    (tmp_path / "torn" / "progress" / "learning.zip").write_bytes(b"half a file")
    assert learn(tmp_path / "torn", problems, candidates=[])[0] == whole


def test_what_searches_all_at_once_takes_one_phase_and_no_parent() -> None:
    settings = RolloutSettings()
    phase = {"scenarios": ["lublin"], "steps": 1}
    given = {"name": "p", "learner": {"name": "any"}, "train_on": [phase, phase], "parent": "other", "seeds": [0]}
    assert [error.where for error in check_policy(validate(PolicySettings, given), settings)] == ["train_on", "parent"]
    assert not list(check_policy(validate(PolicySettings, {**given, "train_on": [phase], "parent": None}), settings))


def test_an_interrupted_search_goes_on_with_equal_bytes(problems, tmp_path, monkeypatch) -> None:
    whole, points = learn(tmp_path / "whole", problems, candidates=[])
    advance, calls = learner_search.make_generation, []

    def killed(*arguments) -> None:
        calls.append(1)
        if len(calls) in (3, 7, 8):
            raise KeyboardInterrupt
        advance(*arguments)

    monkeypatch.setattr(learner_search, "make_generation", killed)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            learn(tmp_path / "cut", problems, candidates=[])
    resumed, resumed_points = learn(tmp_path / "cut", problems, candidates=[])
    assert len(calls) == 2 * 4 + 3
    assert resumed == whole
    key = lambda point: tuple(str(point[name]) for name in CurveRecorder.PLACE)  # noqa: E731
    assert sorted(resumed_points, key=key) == sorted(points, key=key)


def test_progress_of_a_longer_search_or_of_another_parent_is_not_taken_up(problems, tmp_path) -> None:
    parents = [tmp_path / f"{name}/policy.zip" for name in ("first", "second")]
    for number, parent in enumerate(parents):
        learn(parent.parent, problems, seed=number, steps=2, starts=["linear"], candidates=[])
    first = {"start": parents[0], "candidates": []}
    for name, values in {
        "longer": {"steps": 3, **first},
        "of-another": {"steps": 1, **first, "start": parents[1]},
    }.items():
        whole, _ = learn(tmp_path / "whole" / name, problems, steps=1, **first)
        other, _ = learn(tmp_path / name, problems, **values)
        assert (tmp_path / name / "progress/learning.zip").is_file()
        assert learn(tmp_path / name, problems, steps=1, **first)[0] == whole != other, name


def test_what_needs_no_search_is_kept_where_no_search_beats_it(problems, tmp_path) -> None:
    learn(tmp_path, problems, steps=1, starts=["linear"], step_zero=1e-9)
    kept = load_priority(tmp_path / "policy.zip")
    judge = Judge(list(problems.values()), CandidateSettings(stride=16, most_windows=8), Budget())
    figures = {
        name: merit(judge.figures(PLANNER if name == "planner" else name)) for name in (*CORRECT_RULES, "planner")
    }
    best = min(figures, key=figures.get)
    assert (kept if isinstance(kept, str) else "planner") == best


def test_a_search_begins_at_its_parent_and_keeps_out_what_it_does_not_weigh(problems, tmp_path) -> None:
    learn(tmp_path / "parent", problems, starts=["linear"], candidates=[])
    parent = load_priority(tmp_path / "parent" / "policy.zip")
    assert isinstance(parent, LinearPriority) and (parent.weights[PLAN:] == 0).all()
    learn(
        tmp_path / "child",
        problems,
        steps=1,
        start=tmp_path / "parent" / "policy.zip",
        candidates=[],
        step_planner=1e-9,
    )
    child = load_priority(tmp_path / "child" / "policy.zip")
    assert child.weights == pytest.approx(parent.weights, abs=1e-6)


def test_a_candidate_is_judged_on_validation_and_training_windows_together(problems) -> None:
    judge = Judge(list(problems.values()), CandidateSettings(stride=16, most_windows=8), Budget())
    figures = judge.figures("ljf")
    both = [np.concatenate([judge.validation.bsld(rule), judge.training.bsld(rule)]) for rule in ("ljf", judge.rule)]
    assert figures[4:].tolist() == pytest.approx(
        [np.log(both[0].mean() / both[1].mean()), np.log(both[0] / both[1]).mean()]
    )
    assert merit(figures) == pytest.approx(figures[4] + figures[5])
    assert judge.figures(judge.rule).tolist() == [0.0] * 6


def test_the_rule_by_mean_and_by_logarithm() -> None:
    values = {"a": np.array([1.0, 100.0]), "b": np.array([9.0, 40.0])}
    assert (best_rule("ab", values, "mean"), best_rule("ab", values, "log")) == ("b", "a")
