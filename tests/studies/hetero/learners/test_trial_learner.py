"""The learner `trials`: scores of options, learned on copies of runs, and the policy that follows them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_hetero import managed_scenario, part, prepared

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.studies.hetero.env.options import plain_options
from schedlab.studies.hetero.kernels.choice_kernel import OWN, SHARED, score_rows
from schedlab.studies.hetero.kernels.cluster_kernel import CORE_CODES
from schedlab.studies.hetero.kernels.trial_kernel import NO_PAIR, RESERVE, Trials, play_with_trials
from schedlab.studies.hetero.learners.choice_network import ChoiceNetwork, TriedOptions, kernel_scorer
from schedlab.studies.hetero.learners.compiled_runs import CompiledRuns
from schedlab.studies.hetero.learners.trial_learner import ChoicePolicy, TrialLearner, _Drawn
from schedlab.studies.hetero.rules import PairRule, ReserveRule

METRIC, CORES = "mean_bounded_slowdown", ("low_power", "high_mem_bw", "high_gflops")
REPLICATES = {"validation": 3, "test": 3}
PHASES = (
    Phase(("small",), 12, {"continued_by": "saf-low_power", "passes": 10, "average": 0.0}),
    Phase(("small",), 12, {}),
)


def problem(folder, simulator="compiled", **changes):
    workload = managed_scenario(30).workload.model_dump()
    workload["lublin"] |= {"processors": 24, "load": 3.0}
    settings = managed_scenario(
        30, **{"replicates": REPLICATES, "simulator": simulator, "workload": workload, **changes}
    )
    return prepared(settings, folder)


def policy(seed: int) -> ChoicePolicy:
    torch.manual_seed(seed)
    return ChoicePolicy(kernel_scorer(ChoiceNetwork(8), 6, CORES), CORES)


class Interrupted(Exception):
    pass


def learn(made, folder, seed=0, stop_after=None):
    """Learn and return the file of the policy, the curve and the budget."""
    params = {"episodes_per_update": 6, "tried": 0.3, "hidden": 8, "minibatch": 32, "validation": 1}
    spec = PolicySpec("small", "learned", "trials", params, train_on=PHASES)
    points = []

    def curve(metric, value, **place):
        points.append((metric, value, place["step"]))
        if stop_after is not None and len(points) > stop_after:
            raise Interrupted

    paths = LearnPaths(None, folder / "policy.zip", folder / "progress")
    budget = TrialLearner().learn({"small": made}, spec, seed, paths, curve)
    return paths.checkpoint, points, budget


@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_takes_the_options_of_the_plain_statement(tmp_path, seed):
    plain, fast = (problem(tmp_path, name) for name in ("embedded", "compiled"))
    for unit in plain.units("test"):
        found = [made.rollout(policy(seed), unit).scores for made in (plain, fast)]
        assert found[1] == pytest.approx({name: found[0][name] for name in found[1]}, rel=1e-5)
        assert CompiledRuns(fast).scores(policy(seed), unit) is not None


def test_the_order_of_options_changes_no_score():
    scorer, rng = policy(0).scorer, np.random.default_rng(1)
    rows, order = rng.random((7, SHARED + OWN)), rng.permutation(7)
    assert score_rows(rows, scorer)[order] == pytest.approx(score_rows(rows[order], scorer))
    torch.manual_seed(0)
    assert score_rows(rows, scorer) == pytest.approx(
        ChoiceNetwork(8)(torch.from_numpy(rows.astype(np.float32))).detach().numpy(), abs=1e-5
    )


def test_waiting_is_no_option_where_no_job_runs(tmp_path):
    made, seen = problem(tmp_path, "embedded"), []

    class Watching(ChoicePolicy):
        def decide(self, system):
            options = plain_options(system, 6, CORES)
            seen.append((bool(system.model.running), [option.job is None for option in options]))
            assert all(not system.model.lacks(option.job) for option in options if option.job is not None)
            super().decide(system)

    made.rollout(Watching(policy(0).scorer, CORES), made.units("test")[0])
    assert all(waiting[:1] == [running] and not any(waiting[1:]) for running, waiting in seen if waiting)
    assert {running for running, _ in seen} == {True, False}


def test_the_value_of_a_trial_is_the_slowdown_of_the_run_that_takes_its_option(tmp_path):
    """Where all decisions are tried and copies go on by scores, the first choice has the value of the whole run."""
    made, scorer = problem(tmp_path), policy(2).scorer
    for unit in made.units("test"):
        compiled = CompiledRuns(made).jobs(unit)
        trials = Trials(scorer, np.array([NO_PAIR, NO_PAIR]), 10.0, 99, 0.0, 0)
        found = play_with_trials(compiled.jobs, compiled.cluster, trials, np.ones(500, bool))
        rows, counts, values, reached, _ = found
        assert reached == pytest.approx(made.rollout(policy(2), unit).scores[METRIC])
        for row, count, own in zip(rows, counts, values, strict=True):
            assert own[np.argmax(score_rows(row[:count].astype(float), scorer))] == pytest.approx(reached, rel=1e-6)


def test_an_option_that_was_not_tried_counts_as_the_worst_that_was():
    numbers, values = np.zeros((3, 4, 2), np.float32), np.full((3, 4), np.inf)
    values[0, :3], values[1, :2], values[2, 1:3] = (1.0, 2.0, 6.0), (5.0, 5.0), (2.0, 4.0)
    tried = TriedOptions.of_episode(numbers, np.array([3, 2, 4]), values, 2.0)
    assert tried.counts.tolist() == [3, 4] and len(tried.numbers) == 7  # without the decision whose options are alike
    assert tried.advantages == pytest.approx([1.0, 0.5, -1.5, -0.5, 0.5, -0.5, -0.5])


def test_copies_go_on_by_the_rule_with_a_reserve(tmp_path):
    """The best option of a decision is no worse than the rule, where the run so far is the rule's: at the start."""
    made, scorer, rule = problem(tmp_path), policy(2).scorer, ReserveRule(1000.0, 0.5)
    for unit in made.units("test"):
        compiled = CompiledRuns(made).jobs(unit)
        cores = rule.reserved(compiled.cluster.size.sum())
        trials = Trials(scorer, np.array([RESERVE, CORE_CODES[rule.cores]]), 10.0, 99, rule.longest, cores)
        _, counts, values, _, _ = play_with_trials(compiled.jobs, compiled.cluster, trials, np.ones(500, bool))
        scored = made.rollout(rule, unit).scores[METRIC]
        assert values[0, : counts[0]].min() <= scored * (1 + 1e-9)
        assert np.abs(values[:, :3] - scored).min() < 1e-9  # some option is what the rule does


def test_learning_is_better_than_its_start_and_than_the_pair_that_it_imitates(tmp_path):
    made = problem(tmp_path)
    checkpoint, points, budget = learn(made, tmp_path / "learned")
    learned = TrialLearner().load(checkpoint, made)

    def score(rule):
        return np.mean([made.rollout(rule, unit).scores[METRIC] for unit in made.units("validation")])

    found = [-value for metric, value, _ in points if metric == "return"]
    assert score(learned) == pytest.approx(min(found[1::2]))  # the best of the validations is kept
    assert score(learned) < score(PairRule("saf-low_power"))
    assert budget.episodes == 24 and budget.decisions > 1000


def test_an_interrupted_job_ends_with_the_same_bytes(tmp_path):
    made = problem(tmp_path)
    whole, points, budget = learn(made, tmp_path / "whole")
    with pytest.raises(Interrupted):
        learn(made, tmp_path / "parted", stop_after=len(points) - 2)
    parted, _, again = learn(made, tmp_path / "parted")
    assert parted.read_bytes() == whole.read_bytes() and again == budget
    assert learn(made, tmp_path / "other", seed=1)[0].read_bytes() != whole.read_bytes()


def test_scenarios_whose_workloads_cannot_be_drawn_are_refused(tmp_path):
    files = {key: part(f"{key}/learning.yaml") for key in ("platform", "workload")}
    files["platform"]["pstates"] = {"managed": True}
    made = problem(tmp_path, **files)
    with pytest.raises(UserError) as caught:
        learn(made, tmp_path / "none")
    assert "scenario small" in caught.value.where


def test_more_workloads_of_validation_are_drawn_where_there_are_too_few(tmp_path):
    made = problem(tmp_path)
    drawn = _Drawn(made, 5)
    units = [CompiledRuns(made).jobs(unit).jobs for unit in made.units("validation")]
    assert len(drawn.validation) == 5 and len(units) == 3
    assert all(np.array_equal(one.time, other.time) for one, other in zip(drawn.validation, units, strict=False))
    assert len({tuple(jobs.time) for jobs in drawn.validation}) == 5
