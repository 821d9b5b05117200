"""Rewards of a window, from the running average B of a measure over the jobs that have started so far.

Sources: RLScheduler (Zhang et al., SC20) for `episodic` and the combined score; W. Zhang's dissertation (Edinburgh, 2023) for `direct`
and `sigmoid`; `difference` and `improvement` are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Literal

from schedlab.config.errors import UserError, did_you_mean
from schedlab.studies.batch.metrics import SHORT

Reward = Literal["episodic", "direct", "sigmoid", "difference", "improvement"]
REWARDS = ("episodic", "direct", "sigmoid", "difference", "improvement")
SIGMOID_MISS = -1e-6  # `sigmoid` at the last step, and for a row without a job
LARGEST_EXPONENT = 700.0  # exp overflows soon after


def job_score(measure: str, wait: float, run: float, procs: int) -> float:
    """Return what a started job adds to a measure; lower is better.

    bsld, log_bsld (its natural logarithm), slowdown, wait and turnaround (s), utilisation (-run * procs, processor seconds).
    Raises UserError for a measure that is none.
    """
    scores = {
        "bsld": lambda: max(1.0, (wait + run) / max(run, SHORT)),
        "log_bsld": lambda: log(max(1.0, (wait + run) / max(run, SHORT))),
        "slowdown": lambda: (wait + run) / run,
        "wait": lambda: wait,
        "turnaround": lambda: wait + run,
        "utilisation": lambda: -run * procs,
    }
    if measure not in scores:
        raise UserError(f"there is no measure '{measure}'", where="reward", remedy=did_you_mean(measure, scores))
    return scores[measure]()


@dataclass
class RunningScore:
    """The average of a measure over the jobs of a window that have started so far, kept in constant time a job.

    count   jobs of the window
    """

    count: int
    started: int = 0
    total: float = 0.0

    def add(self, score: float) -> None:
        """Take in a job that started."""
        self.started += 1
        self.total += score

    @property
    def average(self) -> float:
        """Return B; 0 before any job has started."""
        return self.total / self.started if self.started else 0.0

    @property
    def last(self) -> bool:
        """Tell whether every job of the window has started."""
        return self.started == self.count


def reward(
    kind: Reward, score: RunningScore, added: float = 0.0, *, real: bool = True, scale: float = 100.0, baseline: float = 0.0
) -> float:
    """Return the reward of a step, after its jobs were added to the score.

    added      sum of the scores that this step added (difference)
    real       the row that was chosen holds a job, or is the one for waiting (sigmoid)
    scale      k of the sigmoid
    baseline   average of the measure on this window under the rule to improve on, such as SJF (improvement)

    episodic      0, at the last step -B
    direct        -B, at the last step 0 (as published)
    sigmoid       1 / (1 + exp(B / scale)) for a real row, but -1e-6 otherwise and at the last step (as published)
    difference    -added / n; over a window it sums to the episodic one
    improvement   0, at the last step baseline - B
    """
    if kind not in REWARDS:
        raise UserError(f"there is no reward '{kind}'", where="reward", remedy=did_you_mean(kind, REWARDS))
    if kind == "sigmoid":
        return 1.0 / (1.0 + exp(min(score.average / scale, LARGEST_EXPONENT))) if real and not score.last else SIGMOID_MISS
    if kind == "difference":
        return -added / score.count
    if kind == "direct":
        return 0.0 if score.last else -score.average
    if not score.last:
        return 0.0
    return (baseline if kind == "improvement" else 0.0) - score.average
