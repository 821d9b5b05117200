"""Policies that bring their own backfilling: what they run, and where they are refused."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.batch.backfilling import BACKFILLING_POLICIES, require_backfilling
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.study import KINDS, STUDY
from schedlab.workloads.prepare import make_trace

WORKLOAD = {
    "name": "drawn",
    "source": "lublin",
    "lublin": {"jobs": 600, "processors": 32, "load": 1.2, "users": 5, "estimates": {"model": "menu"}},
}


def problem_of(**values) -> BatchProblem:
    made = validate(
        BatchScenario, {"name": "drawn", "seed": 1, "workload": WORKLOAD, "windows": {"length": 200}, **values}
    )
    return BatchProblem(made, make_trace(made.workload)[0])


def starts(problem: BatchProblem, name: str) -> list[float]:
    policy = RULE_MAKERS[name]({}, problem, 0)
    return problem.run(policy, problem.units("test")[0]).start.tolist()


@pytest.mark.parametrize(
    ("name", "alone", "values"),
    [
        ("fcfs_backfill_sjf", "fcfs", {"backfill": "easy", "backfill_order": "sjf"}),
        ("f1_backfill_area", "f1", {"backfill": "easy", "backfill_order": "area"}),
        ("lxf_backfill_fcfs", "lxf", {"backfill": "easy", "backfill_order": "fcfs"}),
        ("easy_plus_plus", "fcfs", {"backfill": "easy_predicted"}),
        ("easy_learned", "fcfs", {"backfill": "easy_learned"}),
        ("conservative", "fcfs", {"backfill": "conservative"}),
    ],
)
def test_each_runs_as_its_rule_does_in_a_scenario_of_that_backfilling(name, alone, values):
    easy = problem_of(backfill="easy")
    found = starts(easy, name)
    assert found == starts(problem_of(**values), alone)
    assert not np.array_equal(found, starts(easy, alone))


def test_they_are_rivals_and_explained():
    assert set(BACKFILLING_POLICIES) | {"slurm", "lxf"} <= set(STUDY.rules) & set(STUDY.terms)
    assert KINDS["easy_plus_plus"] == "planner" and "conservative" not in KINDS


def test_they_are_refused_where_the_chosen_job_blocks():
    made = validate(
        BatchScenario, {"name": "drawn", "seed": 1, "workload": WORKLOAD, "rules": ["fcfs", "fcfs_backfill_sjf"]}
    )
    assert STUDY.check is not None
    assert [error.where for error in STUDY.check(made)] == ["rules.1"]
    with pytest.raises(UserError):
        require_backfilling("conservative", "legacy", "--policy")
