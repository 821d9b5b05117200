"""WFP3 and UNICEP as RLScheduler's simulator ran them: it takes -1 - submit time as the wait of a job that has not
started.
"""

from __future__ import annotations

import numpy as np

from schedlab.studies.batch.jobs import UNKNOWN_REQUEST, Jobs

TINY = 1e-15  # added to the wait and inside the logarithm


def wfp3(jobs: Jobs) -> np.ndarray:
    """Return the scores (n,) of WFP3."""
    return -(((-1.0 - jobs.submit) / _request(jobs)) ** 3) * jobs.procs


def unicep(jobs: Jobs) -> np.ndarray:
    """Return the scores (n,) of UNICEP."""
    return -((-1.0 - jobs.submit) + TINY) / (np.log2(jobs.procs + TINY) * _request(jobs))


def _request(jobs: Jobs) -> np.ndarray:
    return np.where(jobs.requested == 0, UNKNOWN_REQUEST, jobs.requested)
