"""Windows of a workload as units, rules as policies, and what the scenario's check tells."""

from __future__ import annotations

import pytest

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.batch.problem import METRICS, BatchProblem
from schedlab.studies.batch.settings import BatchScenario
from schedlab.studies.batch.study import STUDY, load_problem, problem_values
from schedlab.workloads.prepare import make_trace, write_trace

WORKLOAD = {"name": "drawn", "source": "lublin", "lublin": {"jobs": 400, "processors": 32, "load": 1.5}}


def scenario(**values) -> BatchScenario:
    return validate(BatchScenario, {"name": "drawn", "seed": 1, "workload": WORKLOAD, "windows": {"length": 32}, **values})


@pytest.fixture(scope="module")
def problem() -> BatchProblem:
    made = scenario()
    return BatchProblem(made, make_trace(made.workload)[0])


def test_windows_of_the_parts_share_no_job(problem):
    starts = {split: [int(unit.id[-6:]) for unit in problem.units(split)] for split in ("train", "validation", "test")}
    assert starts == {"train": [0, 32, 64, 96, 128, 160], "validation": [200], "test": [240, 272, 304, 336, 368]}
    units = [unit for split in starts for unit in problem.units(split)]
    assert len({unit.block for unit in units}) == len({unit.seed for unit in units}) == len(units)


def test_published_windows_are_for_testing_alone_and_those_that_overlap_are_one_block():
    made = scenario(windows={"length": 32, "starts": [300, 10, 40, 60]})
    each = BatchProblem(made, make_trace(made.workload)[0])
    assert [len(each.units(split)) for split in ("train", "validation")] == [0, 0]
    units = each.units("test")
    assert [unit.id for unit in units] == ["test-000010", "test-000040", "test-000060", "test-000300"]
    assert [unit.block for unit in units] == ["test-000010"] * 3 + ["test-000300"]
    assert {unit.kind for unit in units} == {"published window"}


@pytest.mark.parametrize(("starts", "told"), [([369], "starts up to 368"), ([3, 3], "starts that differ"), ([-1], "starts")])
def test_published_windows_that_cannot_be(starts, told):
    with pytest.raises(UserError, match=told):
        made = scenario(windows={"length": 32, "starts": starts})
        BatchProblem(made, make_trace(made.workload)[0])


def test_every_rule_scores_every_measure(problem):
    unit = problem.units("test")[0]
    found = {name: problem.rollout(make({}, problem, 0), unit) for name, make in STUDY.rules.items()}
    for outcome in found.values():
        assert outcome.scores.keys() == {metric.name for metric in METRICS}
        assert len(outcome.details["jobs"]) == 32
    assert len({outcome.scores["avg_bsld"] for outcome in found.values()}) > 5
    assert problem.rollout(STUDY.rules["sjf"]({}, problem, 0), unit).scores == found["sjf"].scores


def test_a_warm_start_keeps_jobs_waiting(problem):
    made = scenario(warm_start=True)
    warm = BatchProblem(made, make_trace(made.workload)[0])
    waits = [
        sum(each.rollout(STUDY.rules["fcfs"]({}, each, 0), unit).scores["avg_wait"] for unit in each.units("test"))
        for each in (problem, warm)
    ]
    assert waits[1] > waits[0]


def test_the_problem_comes_back_from_its_frozen_part(problem, tmp_path):
    made = scenario()
    write_trace(made.workload, tmp_path / "trace.swf.gz", tmp_path / "report.json")
    values = {"name": "drawn", "mode": "default", "seed": 1, **problem_values(made), "upstream": {"make_trace": "0"}}
    again = load_problem(values, {"trace": tmp_path / "trace.swf.gz"})
    unit = problem.units("test")[1]
    policy = STUDY.rules["f1"]({}, problem, 0)
    assert again.rollout(policy, unit).scores == problem.rollout(policy, unit).scores


def test_mistakes_of_a_scenario():
    own = {"name": "mine", "target": "own.py:Mine"}
    found = list(STUDY.check(scenario(windows={"train_share": 0.6, "validation_share": 0.5}, rules=["fcfs", own])))
    assert [error.where for error in found] == ["windows.train_share", "rules.1.target"]
    made = scenario(windows={"length": 200})
    with pytest.raises(UserError, match="the test part of 400 jobs holds no window of 200"):
        BatchProblem(made, make_trace(made.workload)[0])


def test_every_rule_has_its_words():
    assert STUDY.rules.keys() <= STUDY.terms.keys()
