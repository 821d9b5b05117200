"""Orders of a waiting queue: each gives every job a score, and the smallest score comes first. Ties keep the order of
arrival.

Published formulas: WFP3 and UNICEP (Tang et al. 2009), F1 (Carastan-Santos and de Camargo 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Numbers = np.ndarray | float
Score = Callable[[Numbers, Numbers, Numbers, float], Numbers]


@dataclass(frozen=True)
class Priority:
    """A score as a function of (hosts, walltimes, submission times, now), for one job or many (shape (jobs,)); times in
    s.

    ages    whether scores change while a job waits, so that the queue must be sorted again at each decision
    """

    score: Score
    ages: bool = False


def _first_come(_hosts: Numbers, _walltime: Numbers, submitted: Numbers, _now: float) -> Numbers:
    return 0.0 * submitted  # equal scores, so that the order of arrival remains


def _wfp3(hosts: Numbers, walltime: Numbers, submitted: Numbers, now: float) -> Numbers:
    return -(((now - submitted) / walltime) ** 3) * hosts


def _unicep(hosts: Numbers, walltime: Numbers, submitted: Numbers, now: float) -> Numbers:
    return -(now - submitted) / (np.log2(np.maximum(hosts, 2)) * walltime)


def _f1(hosts: Numbers, walltime: Numbers, submitted: Numbers, _now: float) -> Numbers:
    value: Numbers = np.log10(walltime) * hosts + 870 * np.log10(np.where(submitted > 0, submitted, 0.1))
    return value


PRIORITIES = {
    "fcfs": Priority(_first_come),
    "sjf": Priority(lambda _hosts, walltime, _submitted, _now: walltime),
    "ljf": Priority(lambda _hosts, walltime, _submitted, _now: -walltime),
    "smallest": Priority(lambda hosts, _walltime, _submitted, _now: hosts),
    "largest": Priority(lambda hosts, _walltime, _submitted, _now: -hosts),
    "smallest_area": Priority(lambda hosts, walltime, _submitted, _now: hosts * walltime),
    "f1": Priority(_f1),
    "wfp3": Priority(_wfp3, ages=True),
    "unicep": Priority(_unicep, ages=True),
}
