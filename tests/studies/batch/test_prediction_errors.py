"""Predicted run times against plain statements, and the table of their errors."""

from __future__ import annotations

import numpy as np
import pytest
from small_jobs import jobs_from

from schedlab.cli.main import main
from schedlab.studies.batch.jobs import Machine
from schedlab.studies.batch.prediction_errors import (
    PREDICTORS,
    error_table,
    log_errors,
    predictions_of_test_part,
    user_errors,
)
from schedlab.studies.batch.simulator.history import (
    HistoryPriority,
    history_priority,
    memory_of,
    predicted,
    predictions,
)
from schedlab.studies.batch.simulator.predictions import Past
from schedlab.studies.batch.simulator.run_time_regression import LogRegression, predicted_run


def drawn(count: int = 120, seed: int = 3):
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.integers(0, 60, count)).astype(float)
    run = rng.integers(1, 400, count).astype(float)
    jobs = jobs_from(list(zip(submit, run, run * rng.integers(1, 5, count), rng.integers(1, 8, count), strict=True)))
    return jobs, submit + rng.integers(0, 200, count) + run


def test_the_mean_of_the_last_two_jobs_is_that_of_a_plain_search():
    jobs, ended = drawn()
    ended[::7] = np.nan
    found = Past(jobs, ended).means_of_last_two()
    for job in range(len(jobs)):
        known = [k for k in range(len(jobs)) if jobs.user[k] == jobs.user[job] and ended[k] <= jobs.submit[job]]
        last = sorted(known, key=lambda k: ended[k])[-2:]
        assert np.isnan(found[job]) if not last else found[job] == pytest.approx(np.mean(jobs.run[last]))


def test_the_predictions_of_the_regression_are_those_of_its_model_at_each_submission():
    jobs, ended = drawn()
    past = Past(jobs, ended)
    found, regression = LogRegression(past, 0).predictions(), LogRegression(past, 0)
    start, nobody = ended - jobs.run, np.empty(0, dtype=np.int64)
    assert len({*found}) > 20
    alone = 0
    for job in range(len(jobs)):
        before = (start < jobs.submit[job]) & (jobs.submit[job] < ended) & (jobs.user == jobs.user[job])
        if jobs.submit[job] > jobs.submit[job - 1] and not before.any():
            model = regression.before(job, 1)
            args = jobs.requested[job], jobs.submit[job], nobody, 0, start
            assert found[job] == predicted_run(model, 0, *args)
            alone += 1
    assert alone > 5


def test_the_predictions_from_history_are_those_of_the_policy_at_each_submission():
    jobs, ended = drawn()
    past = Past(jobs, ended)
    found = predictions(history_priority(), past)
    for job in range(0, len(jobs), 7):
        policy: HistoryPriority = history_priority().at(past, job, 1)
        memory = memory_of(policy, jobs.take(slice(job, job + 1)), Machine(8, 8))
        assert found[job] == pytest.approx(jobs.requested[job] * np.exp(predicted(memory, 0)[0]))


def test_a_later_job_changes_no_prediction():
    jobs, ended = drawn()
    first = predictions_of_test_part(jobs, ended)
    jobs.run[-1] *= 3
    again = predictions_of_test_part(jobs, ended)
    assert list(first) == list(PREDICTORS) and first.equals(again) and first.index[0] == 72


def test_errors():
    jobs = jobs_from([(k, 10.0, 20.0 if k < 15 else 5.0, 1) for k in range(30)])
    predicted = predictions_of_test_part(jobs, jobs.submit + jobs.run)
    table = error_table(jobs, predicted).set_index("predictor")
    assert table.loc["requested", ["jobs", "mean_absolute_s", "under_predicted"]].to_list() == [12, 5.0, 1.0]
    assert table.loc["requested", "mean_log"] == pytest.approx(np.log(0.5))
    assert (table["users"] == 0).all() and table["user_median"].isna().all()  # four jobs each
    assert log_errors(jobs, predicted).shape == (12, 5) and user_errors(jobs, predicted).empty


def test_jobs_without_a_request_are_left_out_and_a_log_without_any_is_refused(tmp_path, capsys):
    line = "{0} {0} 0 10 1 -1 -1 1 {1} -1 1 1 1 1 1 -1 -1 -1\n"
    some = tmp_path / "some.swf"
    some.write_text("; MaxProcs: 8\n" + "".join(line.format(k, 20 if k % 2 else -1) for k in range(1, 61)))
    assert main(["batch", "predictions", "--trace", str(some), "--by-user", str(tmp_path / "users.csv")]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split(",")[:2] for row in rows] == [[name, "12"] for name in PREDICTORS]
    assert (tmp_path / "users.csv").read_text().splitlines()[0] == ",".join(("user", "jobs", *PREDICTORS))
    none = tmp_path / "none.swf"
    none.write_text("; MaxProcs: 8\n" + "".join(line.format(k, -1) for k in range(1, 61)))
    assert main(["batch", "predictions", "--trace", str(none)]) == 2
    assert "none.swf" in capsys.readouterr().err
