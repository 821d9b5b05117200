"""Windows of a workload as units, rules as policies, and what the scenario's check tells."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.metrics import METRICS
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.rules import ORACLES
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.study import STUDY, load_problem, problem_values
from schedlab.workloads.prepare import make_trace, write_trace

WORKLOAD = {"name": "drawn", "source": "lublin", "lublin": {"jobs": 400, "processors": 32, "load": 1.5}}


def scenario(**values) -> BatchScenario:
    return validate(
        BatchScenario, {"name": "drawn", "seed": 1, "workload": WORKLOAD, "windows": {"length": 32}, **values}
    )


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


@pytest.mark.parametrize(
    ("starts", "told"),
    [
        ([300, 10, 40, 60], "published, overlapping"),  # they share jobs
        ([250, 281], "published, overlapping"),
        ([10, 60, 300], "published, overlapping"),  # two lie in the part that is learned on
        ([220, 300], "published, overlapping"),  # one in the part that is chosen by
        ([240, 272, 368], "published, disjoint"),
    ],
)
def test_a_published_protocol_is_told_by_whether_its_windows_share_jobs_or_were_learned_on(starts, told):
    made = scenario(windows={"length": 32, "starts": starts})
    assert {unit.kind for unit in BatchProblem(made, make_trace(made.workload)[0]).units("test")} == {told}


@pytest.mark.parametrize(("starts", "told"), [([369], r"windows\.starts"), ([3, 3], "starts"), ([-1], "starts")])
def test_published_windows_that_cannot_be(starts, told):
    with pytest.raises(UserError, match=told):
        made = scenario(windows={"length": 32, "starts": starts})
        BatchProblem(made, make_trace(made.workload)[0])


def test_windows_of_a_protocol_weigh_what_it_says():
    made = scenario(windows={"length": 32, "starts": [300, 10], "weights": [4, 1]})
    each = BatchProblem(made, make_trace(made.workload)[0])
    rule = RULE_MAKERS["fcfs"]({}, each, 0)
    assert [each.rollout(rule, unit).weight for unit in each.units("test")] == [1.0, 4.0]
    with pytest.raises(UserError, match="weight"):
        scenario(windows={"length": 32, "starts": [300, 10], "weights": [4]})


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_an_oracle_is_its_rule_among_users_who_know_their_run_times(kill, backfill):
    drawn = {**WORKLOAD["lublin"], "estimates": {"model": "menu"}}
    made = scenario(workload={**WORKLOAD, "lublin": drawn}, kill=kill, backfill=backfill)
    asked = make_trace(made.workload)[0]
    known = BatchProblem(made, replace(asked, jobs=asked.jobs.assign(time_requested=asked.jobs["run"])))
    problem, unit = BatchProblem(made, asked), known.units("test")[1]
    for name in ORACLES:
        oracle, rule = (RULE_MAKERS[each]({}, problem, 0) for each in (f"{name}_true_times", name))
        found = problem.run(oracle, unit).start.tolist()
        assert found == known.run(rule, unit).start.tolist() != problem.run(rule, unit).start.tolist()


def test_every_rule_scores_every_measure(problem):
    unit = problem.units("test")[0]
    found = {name: problem.rollout(make({}, problem, 0), unit) for name, make in RULE_MAKERS.items()}
    for outcome in found.values():
        assert outcome.scores.keys() == {metric.name for metric in METRICS}
        assert len(outcome.details["jobs"]) == 32
    assert len({outcome.scores["avg_bsld"] for outcome in found.values()}) > 5
    assert problem.rollout(RULE_MAKERS["sjf"]({}, problem, 0), unit).scores == found["sjf"].scores


def test_a_warm_start_keeps_jobs_waiting(problem):
    made = scenario(warm_start=True)
    warm = BatchProblem(made, make_trace(made.workload)[0])
    waits = [
        sum(each.rollout(RULE_MAKERS["fcfs"]({}, each, 0), unit).scores["avg_wait"] for unit in each.units("test"))
        for each in (problem, warm)
    ]
    assert waits[1] > waits[0]


def test_the_problem_comes_back_from_its_frozen_part(problem, tmp_path):
    made = scenario()
    write_trace(made.workload, tmp_path / "trace.swf.gz", tmp_path / "report.json")
    values = {"name": "drawn", "mode": "default", "seed": 1, **problem_values(made), "upstream": {"make_trace": "0"}}
    again = load_problem(values, {"trace": tmp_path / "trace.swf.gz"})
    unit = problem.units("test")[1]
    policy = RULE_MAKERS["f1"]({}, problem, 0)
    assert again.rollout(policy, unit).scores == problem.rollout(policy, unit).scores


class Shortest:
    """Chooses the job of the shortest request, as sjf does."""

    def reset(self, unit):
        self.unit = unit

    def act(self, observation, mask):
        rows = observation[: 128 * 11].reshape(128, 11)
        return int(np.argmin(np.where(mask, rows[:, 0], np.inf)))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"backfill": "easy", "warm_start": True},
        {"backfill": "conservative", "kill": True},
        {"backfill": "easy", "backfill_order": "area"},
        {"backfill": "legacy", "backfill_order": "area"},
    ],
)
def test_a_policy_that_decides_job_by_job_is_scored_like_the_rule(values):
    made = scenario(**values)
    problem = BatchProblem(made, make_trace(made.workload)[0])
    for unit in problem.units("test")[:2]:
        rule = problem.rollout(RULE_MAKERS["sjf"]({}, problem, 0), unit)
        stepped = problem.rollout(Shortest(), unit)
        assert stepped.scores == rule.scores
        assert stepped.details["jobs"].equals(rule.details["jobs"])


def test_the_environment_of_a_unit_is_its_window(problem):
    unit = problem.units("test")[1]
    env = problem.env(unit, 0)
    _, info = env.reset()
    assert (info["start"], info["jobs"]) == (272, 32)
    done, policy = False, Shortest()
    while not done:
        _, reward, done, _, _ = env.step(policy.act(env.stepper.observations[0], env.action_masks()))
    assert reward == pytest.approx(-problem.rollout(policy, unit).scores["avg_bsld"])


def test_a_warm_environment_repeats_what_ran_before():
    made = scenario(warm_start=True)
    problem = BatchProblem(made, make_trace(made.workload)[0])
    env = problem.env(problem.units("test")[0], 0)
    assert env.reset()[0].tobytes() == env.reset()[0].tobytes()
    assert env.stepper.info(0)["running"] > 0


def test_windows_to_learn_on_lie_in_the_training_part(problem):
    task = problem.task()
    assert (min(task.starts), max(task.starts) + task.lengths[1]) == problem.part("train") == (0, 200)


def test_what_the_published_layouts_divide_by():
    made = scenario(environment={"layout": "rlscheduler"})
    trace = make_trace(made.workload)[0]
    problem = BatchProblem(made, trace)
    assert problem.task().scales.run == problem.jobs.run[:200].max() < problem.jobs.run.max()
    whole = scenario(environment={"layout": "rlscheduler", "scales": "whole"})
    assert BatchProblem(whole, trace).task().scales.run == problem.jobs.run.max()
    names = ("run", "last_submit", "procs", "memory_requested", "user", "group", "executable", "job_id")
    assert BatchProblem(whole, trace, dict.fromkeys(names, 1e9)).task().scales.run == 1e9


def test_a_policy_may_say_what_it_sees_and_must_choose_a_job(problem):
    class Last(Shortest):
        environment = EnvironmentSettings(layout="rlscheduler")

        def act(self, observation, mask):
            assert (observation.shape, mask.shape) == ((1024,), (128,))
            return 127

    with pytest.raises(UserError, match="row 127"):
        problem.rollout(Last(), problem.units("test")[0])


def test_a_policy_that_leaves_jobs_waiting_has_no_score(problem):
    class Idle(Shortest):
        environment = EnvironmentSettings(layout="dissertation", noop_ends=True)

        def act(self, observation, mask):
            return int(mask.size + observation.size * 0 - 1)

    with pytest.raises(UserError, match="32 jobs"):
        problem.rollout(Idle(), problem.units("test")[0])


@pytest.mark.parametrize("backfill", ["none", "legacy"])
def test_published_baselines_wait_until_128_jobs_do(backfill):
    workload = WORKLOAD | {"lublin": {"jobs": 700, "processors": 32, "load": 2.0}}
    made = scenario(workload=workload, windows={"length": 400, "starts": [0]}, backfill=backfill)
    problem = BatchProblem(made, make_trace(made.workload)[0])
    unit = problem.units("test")[0]
    rules = [load_object(STUDY.rules[name])({}, problem, 0) for name in ("smallest", "smallest_waiting")]
    rule, waiting = (problem.rollout(each, unit) for each in rules)
    jobs = waiting.details["jobs"]
    assert len(rule.details["jobs"]) == 400 and len(jobs) == 400 - 127
    assert jobs["start"].min() >= problem.jobs.submit[127]  # the 128th job must have come
    assert waiting.scores["avg_wait"] > rule.scores["avg_wait"]
    with pytest.raises(UserError, match="fcfs_waiting"):
        short = scenario(windows={"length": 100})
        problem = BatchProblem(short, make_trace(short.workload)[0])
        problem.rollout(load_object(STUDY.rules["fcfs_waiting"])({}, problem, 0), problem.units("test")[0])


def test_mistakes_of_a_scenario():
    wrong = {"baseline": "sfj", "layout": "rlscheduler", "oracle_runtime": True, "plan": True}
    found = list(STUDY.check(scenario(windows={"train_share": 0.6, "validation_share": 0.5}, environment=wrong)))
    assert [error.where for error in found] == [
        "windows.train_share",
        "environment.baseline",
        "environment.oracle_runtime",
        "environment.plan",
    ]
    made = scenario(windows={"length": 200})
    with pytest.raises(UserError, match=r"windows\.length"):
        BatchProblem(made, make_trace(made.workload)[0])


def test_backfilling_without_requested_times_is_refused_for_drawn_jobs_and_told_of_a_trace(caplog):
    lublin = {**WORKLOAD["lublin"], "estimates": {"model": "none"}}
    for workload, key in (
        (WORKLOAD | {"lublin": lublin}, "workload.lublin.estimates.model"),
        (WORKLOAD | {"estimates": {"model": "none"}}, "workload.estimates.model"),
    ):
        made = {
            backfill: scenario(workload=workload, backfill=backfill)
            for backfill in ("none", "legacy", "easy", "conservative")
        }
        assert [error.where for error in STUDY.check(made["easy"])] == [key]
        assert [len(list(STUDY.check(each))) for each in made.values()] == [0, 1, 1, 1]
    assert not list(
        STUDY.check(scenario(workload=WORKLOAD | {"lublin": lublin, "estimates": {"model": "menu"}}, backfill="easy"))
    )
    trace = make_trace(scenario().workload)[0]
    jobs = trace.jobs.assign(time_requested=trace.jobs["time_requested"].where(trace.jobs.index >= 3, -1))
    for backfill, told in (("none", ""), ("easy", "3 of 400 jobs request no time")):
        caplog.clear()
        BatchProblem(scenario(backfill=backfill), trace.with_jobs(jobs))
        assert told in caplog.text and bool(caplog.text) == bool(told)


def test_several_baselines_are_all_checked():
    found = list(STUDY.check(scenario(environment={"baseline": ["sjf", "f11"]})))
    assert [(error.where, "f11" in error.what) for error in found] == [("environment.baseline", True)]
    with pytest.raises(UserError, match="baseline"):
        scenario(environment={"baseline": []})


def test_every_name_of_the_door_leads_to_something_and_every_rule_has_its_words():
    assert STUDY.rules.keys() <= STUDY.terms.keys()
    for names in (STUDY.rules, STUDY.learners, STUDY.figures):
        assert all(callable(load_object(name)) for name in names.values())


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("3", "'3'"),
        (0.0, "0.0"),
        (None, "None"),
        (np.array([0]), "ndarray"),
        (True, "True"),
        (128, "128"),
        (-1, "-1"),
    ],
    ids=repr,
)
def test_what_is_no_row_is_refused(problem, answer, named):
    class Odd(Shortest):
        def act(self, *_):
            return answer

    with pytest.raises(UserError, match=named):
        problem.rollout(Odd(), problem.units("test")[0])


@pytest.mark.parametrize("number", [np.int64, np.int32, np.array], ids=lambda number: number.__name__)
def test_numbers_of_numpy_are_rows(problem, number):
    class Wrapped(Shortest):
        def act(self, observation, mask):
            return number(super().act(observation, mask))

    unit = problem.units("test")[0]
    assert problem.rollout(Wrapped(), unit).scores == problem.rollout(Shortest(), unit).scores


WHOLE = {
    "windows": {"length": 32, "continuous": True, "jitters": 2, "jitter": 30.0},
    "backfill": "easy",
    "most_wait": 100.0,
}


@pytest.fixture(scope="module")
def whole() -> BatchProblem:
    made = scenario(**WHOLE)
    return BatchProblem(made, make_trace(made.workload)[0])


def test_weeks_of_a_whole_run_hold_each_job_of_their_part_once(whole):
    for split in ("train", "validation", "test"):
        units, (first, end) = whole.units(split), whole.part(split)
        places = [(unit.facts["first_job"], unit.facts["first_job"] + unit.facts["jobs"]) for unit in units]
        assert places[0][0] == first and places[-1][1] == end
        assert all(one[1] == other[0] for one, other in pairwise(places))
        submit = whole.jobs.submit
        for begin, stop in places:
            assert len({int((when - submit[0]) // 604800) for when in submit[begin:stop]}) == 1
        assert [unit.block for unit in units] == [unit.id for unit in units]


@pytest.mark.parametrize("rule", ["fcfs", "lxf_predicted", "smallest_area_predicted", "easy_learned", "slurm"])
def test_weeks_are_scored_as_parts_of_one_run(whole, rule):
    """The mean over weeks, weighted by their jobs, is the mean of the runs with each jitter over the test part."""
    policy = RULE_MAKERS[rule]({}, whole, 0)
    outcomes = [whole.rollout(policy, unit) for unit in whole.units("test")]
    found = np.average([each.scores["avg_bsld"] for each in outcomes], weights=[each.weight for each in outcomes])
    first, means = whole.part("test")[0], []
    for run in whole.whole_runs(policy):
        wait = (run.start - run.jobs.submit)[first:]
        assert (wait >= 0).all() and (run.jobs.submit >= whole.jobs.submit).all()
        assert (run.jobs.submit < whole.jobs.submit + 30.0).all() and (run.jobs.job_id == whole.jobs.job_id).all()
        means.append(np.maximum(1.0, (wait + run.jobs.run[first:]) / np.maximum(run.jobs.run[first:], 10.0)).mean())
    assert found == pytest.approx(np.mean(means)) and means[0] != means[1]
    assert not any(name.startswith("util") for name in outcomes[0].scores)


def test_a_whole_run_is_no_place_for_policies_that_decide_job_by_job(whole):
    class Own:
        def reset(self, unit):
            pass

        def act(self, *_):
            return 0

    with pytest.raises(UserError, match="job by job"):
        whole.rollout(Own(), whole.units("test")[0])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"windows": {"jitter": 5.0}}, "continuous"),
        ({"windows": {"continuous": True, "jitters": 3}}, "jitter above 0"),
        ({"windows": {"continuous": True, "starts": [3]}}, "no starts"),
        ({"most_wait": 0.0, "backfill": "easy"}, "most_wait"),
    ],
)
def test_settings_of_whole_runs_that_contradict_each_other_are_refused(values, told):
    with pytest.raises(UserError, match=told):
        scenario(**values)


def test_a_bound_on_waits_needs_backfilling_and_a_whole_run_no_warm_start():
    wrong = scenario(most_wait=10.0, warm_start=True, windows={"continuous": True})
    assert {error.where for error in STUDY.check(wrong)} == {"most_wait", "warm_start"}
