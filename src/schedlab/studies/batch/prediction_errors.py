"""How far predictions of run times are from the true ones, each made when the job was submitted.

The ends of earlier jobs are those of the log; jobs of a log without waits count as run at once.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from schedlab.studies.batch.jobs import Jobs
from schedlab.studies.batch.scenario import WindowSettings
from schedlab.studies.batch.simulator.history import history_priority
from schedlab.studies.batch.simulator.history import predictions as history_predictions
from schedlab.studies.batch.simulator.predictions import Past, Prior
from schedlab.studies.batch.simulator.run_time_regression import LogRegression
from schedlab.studies.batch.windows import part_of

PREDICTORS = {
    "requested": "requested time",
    "last_two": "mean of the user's last two jobs, at most the request (`easy_plus_plus`)",
    "mean": "decayed mean over the user's jobs (`*_predicted`)",
    "regression": "regression, updated at each end (`easy_learned`)",
    "history": "means over the user's jobs with the same request and size (`lxf_predicted`)",
}
FEW = 10  # jobs of a user whose errors are averaged at least


def predictions_of_test_part(jobs: Jobs, ended: np.ndarray) -> pd.DataFrame:
    """Return the run times (s) that each of PREDICTORS predicts, a column each. Rows: jobs of the test part that have a
    requested time, by their place.

    ended (n,) s: when jobs ended in the log; NaN: it does not say
    """
    past = Past(jobs, np.where(np.isfinite(ended), ended, jobs.submit + jobs.run))
    windows = WindowSettings()
    learned_from = jobs.take(slice(*part_of(len(jobs), windows, "train")))
    request = np.where(jobs.requested > 0, jobs.requested, np.nan)
    last = past.means_of_last_two()
    table = pd.DataFrame(
        {
            "requested": request,
            "last_two": np.where(np.isnan(last), request, np.minimum(last, request)),
            "mean": past.predictions(Prior.of(learned_from), len(jobs))[0],
            "regression": LogRegression(past, 0).predictions(),
            "history": history_predictions(history_priority(), past),
        }
    )
    return table.iloc[slice(*part_of(len(jobs), windows, "test"))].dropna(subset="requested")


def log_errors(jobs: Jobs, predicted: pd.DataFrame) -> pd.DataFrame:
    """Return ln(prediction / run time) of the jobs of `predicted`, both at least 1 s."""
    return np.log(predicted.clip(lower=1.0).div(np.maximum(jobs.run[predicted.index], 1.0), axis=0))


def user_errors(jobs: Jobs, predicted: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each user with at least FEW jobs: user, number of jobs, and the mean size of the logarithm for
    each predictor.
    """
    of_users = log_errors(jobs, predicted).abs().groupby(jobs.user[predicted.index])
    table = of_users.mean().rename_axis("user").reset_index()
    table.insert(1, "jobs", of_users.size().to_numpy())
    return table[(table["jobs"] >= FEW) & (table["user"] >= 0)].reset_index(drop=True)


def error_table(jobs: Jobs, predicted: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each predictor.

    jobs, mean_absolute_s         number of jobs; mean of |prediction - run time|
    mean_log, mean_absolute_log   means of ln(prediction / run time) and of its size
    under_predicted               share of the jobs that ran longer than predicted
    users, user_median, user_p90  rows of `user_errors`; median and 90th percentile of their means
    """
    run, logs, users = jobs.run[predicted.index], log_errors(jobs, predicted), user_errors(jobs, predicted)
    table = pd.DataFrame(
        {
            "jobs": len(predicted),
            "mean_absolute_s": predicted.sub(run, axis=0).abs().mean(),
            "mean_log": logs.mean(),
            "mean_absolute_log": logs.abs().mean(),
            "under_predicted": predicted.lt(run, axis=0).mean(),
            "users": len(users),
            "user_median": users[list(PREDICTORS)].median(),
            "user_p90": users[list(PREDICTORS)].quantile(0.9),
        }
    )
    return table.rename_axis("predictor").reset_index()
