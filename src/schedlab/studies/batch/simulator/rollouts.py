"""The rollout policy: it simulates what follows if each promising job starts first, and starts the job with the lowest
cost.

What follows is played by base priorities: for each of them and each of the first HEADS jobs of its order, that job
comes first and the base goes on with the queue and with jobs that arrive. These are stretches of the training part,
drawn when the policy was learned; without them (horizon 0) the present queue is planned. Jobs run as long as is
predicted of them (predictions.py), drawn ones as long as they did. The cost is the sum of predicted weights times
waits. Rollouts go back to Tesauro and Galperin ("On-line policy improvement using Monte-Carlo search", NeurIPS 1996).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.batch.jobs import Jobs, Machine
from schedlab.studies.batch.rules import positive_request
from schedlab.studies.batch.simulator.predictions import CLASSES, History, Past, Predictor, Prior, Sums, predictor_of

BASE_FEATURES = {
    "log_run": "ln(p) / 10",
    "log_nodes": "ln(m) / 5",
    "log_weight": "-ln(v) / 10",
    "share_log_run": "m / M ln(p) / 10",
    "share_root_run": "m / M sqrt(p) / 100",
    "submit_days": "days since the window began",
}  # p predicted run time in s, v predicted weight in 1/s, m nodes of M
BASES = {
    "shortest": {"log_run": 1.0},
    "smallest": {"log_nodes": 1.0},
    "smallest_area": {"log_run": 1.0, "log_nodes": 0.5},
    "f1": {"share_log_run": 1.0, "submit_days": 0.003},
    "costly": {"log_weight": 1.0},
    "costly_per_area": {"log_run": 1.0, "log_nodes": 0.5, "log_weight": 1.0},
}


def base_coefficients(name: str) -> np.ndarray:
    """Return the coefficients of a named base, lowest sum first, (6,)."""
    return np.array([BASES[name].get(feature, 0.0) for feature in BASE_FEATURES])


@dataclass(frozen=True)
class Arrivals:
    """Sequences of jobs of the training part, (stretches, horizon) each.

    gap s after the job before (the first: after now), share of the machine's nodes, run s as it was, requested s;
    predicted run time s and weight 1/s when it was submitted
    """

    gap: np.ndarray
    share: np.ndarray
    run: np.ndarray
    requested: np.ndarray
    predicted: np.ndarray
    weight: np.ndarray

    @classmethod
    def drawn(
        cls, past: Past, machine: Machine, prior: Prior, end: int, shape: tuple[int, int], rng: np.random.Generator
    ) -> Arrivals:
        """Draw (stretches, horizon) from jobs 0 .. end - 1, of which there are more than `horizon`."""
        stretches, horizon = shape
        predicted, weight = past.predictions(prior, end)
        jobs = past.jobs.take(slice(0, end))
        places = rng.integers(0, end - horizon, stretches)[:, None] + np.arange(horizon)
        columns = (
            np.diff(jobs.submit, prepend=jobs.submit[0]),
            jobs.nodes / machine.nodes,
            jobs.run,
            positive_request(jobs),
            predicted,
            weight,
        )
        return cls(*(column[places] for column in columns))


@dataclass(frozen=True)
class RolloutPolicy:
    """What was learned: base priorities (bases, 6), the prior of predictions, and arrivals. samples: stretches tried at
    each decision; 0: no rollouts, the first base decides. history: what is known when the window begins; None: nothing.
    """

    bases: np.ndarray
    prior: Prior
    arrivals: Arrivals
    samples: int = 8
    history: History | None = None

    def at(self, past: Past, start: int, count: int) -> RolloutPolicy:
        """Return the policy with the history at the beginning of a window."""
        return replace(self, history=past.history(start, count))

    def reordered(self, order: np.ndarray) -> RolloutPolicy:
        """Return the policy for the jobs of the window in another order (n,)."""
        return replace(self, history=self.history and replace(self.history, user=self.history.user[order]))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file holds."""
        parts: dict[str, Any] = {"prior": self.prior, "arrivals": self.arrivals}
        named = {
            name: {field.name: getattr(part, field.name) for field in fields(part)} for name, part in parts.items()
        }
        return {"bases": self.bases} | {f"{name}/{key}": named[name][key] for name in named for key in named[name]}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], samples: int, where: str) -> RolloutPolicy:
        """Return the policy in a file's arrays. Raises UserError if an array is missing or has the wrong form."""
        try:
            prior = Prior(*(arrays[f"prior/{field.name}"] for field in fields(Prior)))
            arrivals = Arrivals(*(arrays[f"arrivals/{field.name}"] for field in fields(Arrivals)))
            policy = cls(arrays["bases"], prior, arrivals, samples)
            sound = policy.bases.shape[1:] == (len(BASE_FEATURES),) and prior.log_ratio.shape == (CLASSES,)
        except KeyError:
            sound = False
        if not sound:
            what, expected = "the policy reads other features", ", ".join(BASE_FEATURES)
            raise UserError(what, where=where, expected=expected, remedy="learn it again")
        return policy


def untrained_base(name: str, jobs: Jobs) -> RolloutPolicy:
    """Return a policy in which a named base priority decides alone, with predictions whose prior comes from jobs with
    known run times.
    """
    nothing = Arrivals(*(np.empty((1, 0)) for _ in fields(Arrivals)))
    return RolloutPolicy(base_coefficients(name)[None], Prior.of(jobs), nothing, samples=0)


class Rollout(NamedTuple):
    """A policy on the jobs of a window: bases; predictor; gap to weight as in Arrivals, nodes instead of shares.

    shape (3,): nodes of the machine, samples, decisions so far
    """

    bases: np.ndarray
    predictor: Predictor
    gap: np.ndarray
    nodes: np.ndarray
    run: np.ndarray
    requested: np.ndarray
    predicted: np.ndarray
    weight: np.ndarray
    shape: np.ndarray


def rollout_of(policy: RolloutPolicy, jobs: Jobs, machine: Machine) -> Rollout:
    """Return the arrays of a policy for a window."""
    arrivals: dict[str, Any] = {
        field.name: np.ascontiguousarray(getattr(policy.arrivals, field.name)) for field in fields(Arrivals)
    }
    nodes = np.clip(np.rint(arrivals.pop("share") * machine.nodes), 1, machine.nodes).astype(np.int64)
    predictor = predictor_of(policy.prior, jobs, policy.history)
    shape = np.array([machine.nodes, policy.samples, 0], dtype=np.int64)
    return Rollout(np.ascontiguousarray(policy.bases), predictor, nodes=nodes, shape=shape, **arrivals)


def _no_rollout() -> Rollout:
    whole, number, table, flag = np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 0)), np.empty(0, dtype=np.bool_)
    predictor = Predictor(whole, Sums(number, number, number), number, number, number, flag, whole, number, number)
    return Rollout(table, predictor, table, np.empty((0, 0), dtype=np.int64), table, table, table, table, whole)


NO_ROLLOUT = _no_rollout()
