"""Rollouts with predicted durations. The policy knows neither durations nor the law of arrivals of the test jobs."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from schedlab.config.contract import Unit
from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.ramp.learners.afterstate.rollout_kernel import best_return, rollout_returns
from schedlab.studies.ramp.learners.afterstate.values import draw_starts, make_outlook
from schedlab.studies.ramp.learners.predicted.model import LEAST_ERROR
from schedlab.studies.ramp.learners.predicted.settings import PredictedSettings
from schedlab.studies.ramp.simulator.compiled import fixed_table, meeting
from schedlab.studies.ramp.simulator.compiled_kernel import (
    REJECT,
    Arrivals,
    Futures,
    Rollouts,
    Situation,
    Tables,
    occupy,
    play_table,
)
from schedlab.studies.ramp.simulator.simulation import Simulation

FUTURES = 4096  # imagined jobs
GROWTH = 1.25  # of the number of arrivals, after which jobs are imagined again
UNLIKELY = 0.01  # an action that meets the limit with a lower probability is not considered
OVERDUE = 0.01  # share of its predicted duration that a job runs on for if it should have ended


class PredictedPolicy:
    """Decides on the waiting job of a simulation.

    It knows the graph and limit of each job that has arrived, the time, the end of the episode, and which servers each
    running job occupies since when. Imagined jobs have graphs of the jobs that arrived in the episode; their limits and
    gaps are drawn from these jobs and from stored ones of training.
    """

    def __init__(
        self, tables: Tables, errors: np.ndarray, stored: np.ndarray, settings: PredictedSettings, seed: int
    ) -> None:
        """Take tables with predicted durations.

        errors  float64[A], deviation of log(predicted / true duration)
        stored  float64[n, 2], limit (beta) and gap (s) of jobs of training
        """
        self._predicted, self._errors, self._stored, self._settings = tables, errors, stored, settings
        self._outlook = make_outlook(tables, 1.0)  # only linear values read it
        self._seed = seed

    def reset(self, unit: Unit) -> None:
        """Begin the random stream of an episode, and forget what was seen in earlier ones."""
        self._random = generator(derive_seed(self._seed, "ramp", "predicted", unit.seed))
        self._tables = self._predicted._replace(durations=self._predicted.durations.copy())
        self._deviation = np.tile(self._errors, (len(self._tables.sequential), 1))
        self._graphs, self._betas, self._times = list[int](), list[float](), list[float]()
        self._imagined_at, self._ended = 0, 0

    def decide(self, simulation: Simulation, mask: np.ndarray) -> int:
        """Return a number of shards that the mask (int16[most + 1]) allows, or 0 to reject the job."""
        tables, cluster, job = self._tables, simulation.cluster, simulation.cluster.queue[0]
        graph = simulation.pool.place(job.graph)
        self._graphs.append(graph)
        self._betas.append(job.beta)
        self._times.append(cluster.time)
        if self._settings.watch:
            self._watch(simulation)
        if len(self._graphs) >= GROWTH * self._imagined_at:
            self._imagine()
        meets = ndtr(np.log(job.time_limit / tables.durations[graph]) / self._deviation[graph])
        likely = (meets > UNLIKELY) & (mask[tables.actions] > 0)
        now = Situation(
            self._ends(simulation),
            cluster.time,
            simulation.scenario.episodes.end,
            graph,
            int(likely @ (1 << np.arange(len(likely)))),
        )
        starts = draw_starts(self._random, self._rollouts, 1, self._settings.samples)[0]
        found = np.empty(len(meets) + 1)
        rollout_returns(tables, self._outlook, self._rollouts, now, starts, found)
        found[:-1] = meets * found[:-1] + (1 - meets) * found[-1]  # a job that exceeds its limit is blocked
        action = best_return(found)
        return 0 if action == REJECT else int(tables.actions[action])

    def _action(self, simulation: Simulation, job: int) -> int:
        """Return the index of the action that was taken on a job."""
        return int(np.searchsorted(self._tables.actions, simulation.decided[job][0]))

    def _ends(self, simulation: Simulation) -> np.ndarray:
        """Return when each server should become free, float64[servers] s."""
        ends, now = np.zeros(self._tables.servers), simulation.cluster.time
        for running in simulation.cluster.running:
            graph = simulation.pool.place(running.job.graph)
            duration = self._tables.durations[graph, self._action(simulation, running.job.index)]
            until = max(running.started + duration, now + OVERDUE * duration)
            occupy(ends, np.uint64(running.plan.placement.mask), until)
        return ends

    def _watch(self, simulation: Simulation) -> None:
        """Replace predictions by the durations of jobs that ended since the last decision."""
        completed = simulation.cluster.record.completed
        for done in completed[self._ended :]:
            graph, job = simulation.pool.place(done.running.job.graph), done.running.job.index
            place = graph, self._action(simulation, job)
            self._tables.durations[place], self._deviation[place] = done.duration, LEAST_ERROR
        self._ended = len(completed)

    def _imagine(self) -> None:
        """Draw imagined jobs, and choose the fixed degree that accepts most of them."""
        count, random, settings = len(self._graphs), self._random, self._settings
        graphs = np.array(self._graphs)[random.integers(count, size=FUTURES)]
        seen = np.column_stack([self._betas[1:], np.diff(self._times)])
        jobs = self._stored[random.integers(len(self._stored), size=FUTURES)]
        if len(seen):
            here = random.random(FUTURES) * (len(seen) + settings.prior) < len(seen)
            jobs = np.where(here[:, None], seen[random.integers(len(seen), size=FUTURES)], jobs)
        futures = Futures(jobs[:, 1].copy(), graphs, meeting(self._tables, graphs, jobs[:, 0]))
        self._rollouts = Rollouts(self._base(futures), np.empty(0), futures, settings.horizon)
        self._imagined_at = count

    def _base(self, futures: Futures) -> np.ndarray:
        """Return the table of the best fixed degree on imagined jobs."""
        tables, legal = self._tables, set(self._tables.actions.tolist())
        arrivals = Arrivals(np.cumsum(futures.gaps), futures.graphs, futures.meets)
        bases = [fixed_table(tables, degree) for degree in self._settings.degrees if degree in legal]
        bases = bases or [fixed_table(tables, 1)]
        accepted = [play_table(tables, arrivals, float(arrivals.times[-1]), base) for base in bases]
        return bases[int(np.argmax(accepted))]
