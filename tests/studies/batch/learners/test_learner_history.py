"""Learning an order from history on several logs: it betters the untrained one, and a job resumes with equal bytes."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.learning.checkpoints import write_checkpoint
from schedlab.stages.learn import CurveRecorder
from schedlab.studies.batch.learners.history import HistoryLearner, HistorySearch, parameters_at
from schedlab.studies.batch.learners.policy_files import KIND, load_priority
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.repeats import RepeatSettings, repeated_trace
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.history import PARAMETERS, START, HistoryPriority

USERS = {"users": 5, "estimates": {"model": "menu", "factor": 10}}
REPEATS = RepeatSettings(share=0.7, failures=0.2)
SETTINGS = {"population": 4, "jitters": 2, "most_jobs": 100, "blocks": 4}
NAMES = ("first", "second")


@pytest.fixture(scope="module")
def problems() -> dict[str, BatchProblem]:
    found = {}
    for number, name in enumerate(NAMES):
        workload = {
            "name": name,
            "source": "lublin",
            "seed": number,
            "load": 1.2,
            "lublin": {"jobs": 200, "processors": 32, **USERS},
        }
        whole = {"windows": {"length": 40, "continuous": True}, "backfill": "easy", "most_wait": 200.0}
        made = validate(BatchScenario, {"name": name, "seed": 1, "workload": workload, **whole})
        found[name] = BatchProblem(made, repeated_trace(made.workload, REPEATS)[0])
    return found


def learn(folder, problems, seed: int = 3, steps: int = 3, **params):
    paths = LearnPaths(None, folder / "policy.zip", folder / "progress")
    paths.progress.mkdir(parents=True, exist_ok=True)
    spec = PolicySpec("policy", "learned", "history", {**SETTINGS, **params}, train_on=(Phase(NAMES, steps),))
    with CurveRecorder(paths.progress / "curve.jsonl") as curve:
        budget = HistoryLearner().learn(problems, spec, seed, paths, curve)
        return paths.checkpoint.read_bytes(), curve.points(), budget


def test_the_search_moves_away_from_the_untrained_parameters_and_counts_its_runs(problems, tmp_path) -> None:
    file, points, budget = learn(tmp_path / "a", problems)
    policy = load_priority(tmp_path / "a" / "policy.zip")
    assert isinstance(policy, HistoryPriority) and not np.array_equal(policy.values, START)
    assert HistoryLearner().load(tmp_path / "a" / "policy.zip", problems["first"]).rule.values.tolist() == (
        policy.values.tolist()
    )
    assert budget.episodes == 3 * 4 * 2  # generations, points, traces
    assert budget.decisions == 100 * (budget.episodes + 2 * 2)  # and the untrained order on each jitter and trace
    assert {point["metric"] for point in points} >= {"fitness", "best_fitness"}
    assert learn(tmp_path / "b", problems)[0] == file != learn(tmp_path / "c", problems, seed=4)[0]


def test_an_interrupted_job_goes_on_with_equal_bytes(problems, tmp_path, monkeypatch) -> None:
    whole = learn(tmp_path / "whole", problems)[0]
    step, calls = HistorySearch.step, iter(range(100))

    def failing(self, phase, update):
        if next(calls) == 2:
            raise KeyboardInterrupt
        step(self, phase, update)

    monkeypatch.setattr(HistorySearch, "step", failing)
    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path / "torn", problems)
    monkeypatch.setattr(HistorySearch, "step", step)
    assert learn(tmp_path / "torn", problems)[0] == whole


def test_every_point_of_the_search_is_a_policy() -> None:
    np.testing.assert_allclose(parameters_at(np.zeros(len(PARAMETERS))), START)
    for end in (-50.0, 50.0):
        values = parameters_at(np.full(len(PARAMETERS), end))
        HistoryPriority(values)
        assert 0.0 < values[5] < 1.0


def test_a_file_with_other_parameters_is_refused(tmp_path) -> None:
    path = tmp_path / "policy.zip"
    write_checkpoint(path, {"kind": KIND, "parameters": [*PARAMETERS[1:], "other"], "about": {}}, {"values": START})
    with pytest.raises(UserError, match="other parameters"):
        load_priority(path)
