"""Jobs drawn from a pool that contains every graph `replication` times, each copy with a separately drawn beta.

See docs/reference/ramp_model.md. Each random stream of an episode is derived from the episode's seed and a name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.studies.ramp.graphs.graph import ForwardGraph, TrainingGraph, training_graph
from schedlab.studies.ramp.scenario import SECONDS, JobSettings
from schedlab.studies.ramp.simulator.distributions import Distribution, choose, of_scenario, require_shares
from schedlab.studies.ramp.simulator.gaps import Gaps, gaps_of
from schedlab.studies.ramp.simulator.jobs import Job, PoolRanges, pool_ranges


class JobPool:
    """The pool of all episodes: graphs with times in seconds, and the distributions of betas and gaps. If a
    distribution is scaled by a drawn sample, the scenario's seed decides this sample.

    Raises UserError for an empty pool and for betas outside (0, 1].
    """

    def __init__(
        self, graphs: Sequence[ForwardGraph], settings: JobSettings, seed: int, join_sinks: bool = True
    ) -> None:
        if not graphs:
            raise UserError("there are no graphs", where="graphs", expected="at least one")
        self.settings = settings
        self.graphs: tuple[TrainingGraph, ...] = tuple(
            training_graph(graph, SECONDS[settings.time_unit], join_sinks=join_sinks) for graph in graphs
        )
        self._places = {graph.digest: number for number, graph in enumerate(self.graphs)}
        self._betas = of_scenario(settings.beta, seed, "beta")
        self._gaps = gaps_of(settings.interarrival, seed)
        require_shares(self._betas, "jobs.beta")

    def episode(self, seed: int) -> DrawnJobs:
        """Return the jobs of one episode."""
        beta = choose(self._betas, generator(seed, "ramp", "beta"))
        gap = choose(self._gaps, generator(seed, "ramp", "gap"))
        return DrawnJobs(self.graphs, self.settings, beta, gap, seed)

    @property
    def most_sequential_time(self) -> float:
        """Largest sequential time over all graphs, s."""
        return max(graph.step_time for graph in self.graphs) * self.settings.steps

    @property
    def least_sequential_time(self) -> float:
        """Smallest sequential time over all graphs, s."""
        return min(graph.step_time for graph in self.graphs) * self.settings.steps

    @property
    def mean_gap(self) -> float:
        """Expected time from one arrival to the next, s."""
        return float(np.mean([gap.mean for gap in self._gaps]))

    def place(self, graph: TrainingGraph) -> int:
        """Return the number of a graph in the pool."""
        return self._places[graph.digest]

    def draw(self, random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return independent jobs: graphs int64[count], betas float64[count], gaps before them float64[count] s."""
        graphs = random.integers(len(self.graphs), size=count)
        beta, gap = choose(self._betas, random), choose(self._gaps, random)
        return graphs, np.asarray(beta.sample(random, count)), np.asarray(gap.sample(random, count))


class DrawnJobs:
    """The source of jobs (JobSource) of an episode: each arrival is a random job of the pool.

    members  int64[jobs], the graph of each job of the pool
    betas    float64[jobs]
    """

    def __init__(
        self, graphs: Sequence[TrainingGraph], settings: JobSettings, beta: Distribution, gap: Gaps, seed: int
    ) -> None:
        self._graphs, self._settings = graphs, settings
        self.members = np.tile(np.arange(len(graphs)), settings.replication)
        self.betas = np.asarray(beta.sample(generator(seed, "ramp", "pool"), len(self.members)))
        self._draws, self._gap_after = generator(seed, "ramp", "draws"), gap.begin(generator(seed, "ramp", "gaps"))
        self._left = list(range(len(self.members)))
        self._refills = 0

    @property
    def ranges(self) -> PoolRanges:
        """Smallest and largest values over the pool."""
        return pool_ranges(self._graphs, self.members, self.betas, self._settings.steps)

    def draw(self, index: int) -> Job:
        """Return a random job of the pool. Raises UserError if none is left and the pool is not filled again."""
        if not self._left:
            if self._settings.sampling != "remove_and_repeat":
                what = "the pool is empty"
                raise UserError(what, where="jobs.replication", expected="a pool that is as large as the episode needs")
            self._left = list(range(len(self.members)))
            self._refills += 1
        place = int(self._draws.integers(len(self._left)))
        number = self._left[place]
        if self._settings.sampling != "replace":
            self._left[place] = self._left[-1]
            self._left.pop()
        job_id = number + self._refills * len(self.members)
        return Job(index, job_id, self._graphs[self.members[number]], self._settings.steps, float(self.betas[number]))

    def next_arrival(self, now: float) -> float:
        """Return the time of the next arrival, s; infinity if the pool is empty and is not filled again."""
        if not self._left and self._settings.sampling == "remove":
            return math.inf
        return now + self._gap_after(now)
