"""The layouts of an observation: 128 rows of jobs (fewer in `shortlist`), then the features of the machine, as one
float32 vector.

Sources: RLScheduler (Zhang et al., SC20) for `rlscheduler`; W. Zhang's dissertation (Edinburgh, 2023) for
`dissertation`. The columns of `features` are those of the linear priority, and whether the row holds a job; real run
times and the features of a plan follow if the settings include them. `shortlist` shows few jobs, in the order of a
rule, and every number lies between 0 and 1 (-1: the row for waiting), so that a stock multilayer perceptron can read
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np

from schedlab.config.errors import UserError, did_you_mean
from schedlab.studies.batch.env.settings import ROWS, EnvironmentSettings
from schedlab.studies.batch.jobs import UNKNOWN_REQUEST, Jobs, Machine
from schedlab.studies.batch.rules import NAMES, PLAN, positive_request

FEATURES, RLSCHEDULER, DISSERTATION, SHORTLIST = range(4)
LONGEST = 14.0  # ln of the seconds (two weeks) that the layout shortlist shows as 1
LARGEST_RATIO, LONGEST_QUEUE = 10.0, 10.0  # likewise, ln of a wait over the requested time, and of waiting jobs
BOUND = 64.0  # no number of the layout features is larger
COLUMNS = {
    "features": (*NAMES[:PLAN], "job"),
    "rlscheduler": ("wait", "request", "procs", "memory", "user", "group", "executable", "fits"),
    "dissertation": ("submit", "wait", "request", "run", "procs", "memory", "user", "group", "fits", "job"),
    "shortlist": ("request", "procs", "share", "wait", "wait_ratio", "fits", "delay", "job"),
}
FAIRNESS = "fairness"  # RLScheduler's column, before `fits`
PADDING = {
    "features": 0.0,
    "rlscheduler": (0.0, *[1.0] * 6, 0.0),
    "dissertation": (*[-1.0] * 8, 0.0, 0.0),
    "shortlist": 0.0,
}  # a row that holds nothing
CEILING = {"features": BOUND, "rlscheduler": 1.0 - 1e-5, "dissertation": 1.0 - 1e-6}


@dataclass(frozen=True)
class Scales:
    """The divisors of the published layouts: the largest values of some jobs, 0 if none is positive; times in s."""

    run: float = 0.0
    submit: float = 0.0
    procs: float = 0.0
    memory: float = 0.0
    user: float = 0.0
    group: float = 0.0
    executable: float = 0.0
    job_id: float = 0.0

    @staticmethod
    def of(jobs: Jobs) -> Scales:
        """Return the largest values of jobs."""
        return Scales(*(max(float(getattr(jobs, each.name).max(initial=0)), 0.0) for each in fields(Scales)))

    @staticmethod
    def published(maxima: Mapping[str, float]) -> Scales:
        """Return the originals' divisors: the maxima in a cleaning report, over all jobs as read."""
        keys = {"submit": "last_submit", "memory": "memory_requested"}
        return Scales(*(float(maxima[keys.get(each.name, each.name)]) for each in fields(Scales)))


@dataclass(frozen=True)
class Layout:
    """The numbers of an observation, in order.

    columns  names of the numbers of a row        cluster  numbers of the machine behind the rows
    """

    name: str
    columns: tuple[str, ...]
    cluster: int
    rows: int = ROWS

    @property
    def size(self) -> int:
        """Length of an observation."""
        return self.rows * len(self.columns) + self.cluster

    @property
    def code(self) -> int:
        """Number of the layout in compiled code."""
        return tuple(COLUMNS).index(self.name)

    @property
    def high(self) -> float:
        """Largest number of an observation; the least is -1."""
        return BOUND if self.name == "features" else 1.0

    @property
    def padding(self) -> np.ndarray:
        """An observation (size,) float32 without jobs and without a row for waiting; the machine's numbers are
        zeros.
        """
        empty = np.zeros(self.size, dtype=np.float32)
        rows = self.split(empty)[0]
        rows[:] = 1.0 if FAIRNESS in self.columns else PADDING[self.name]
        if FAIRNESS in self.columns:
            rows[:, [0, -1]] = 0.0
        return empty

    def split(self, observation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return views on (rows, machine) of observations (..., size): (..., rows, columns) and (..., cluster)."""
        border = self.rows * len(self.columns)
        rows = observation[..., :border].reshape(*observation.shape[:-1], self.rows, len(self.columns))
        return rows, observation[..., border:]

    def column(self, observation: np.ndarray, name: str) -> np.ndarray:
        """Return one number of each row (..., rows). Raises UserError for a name that is not in `columns`."""
        if name not in self.columns:
            what, remedy = f"there is no column '{name}'", did_you_mean(name, self.columns)
            raise UserError(what, where=f"layout {self.name}", remedy=remedy)
        return self.split(observation)[0][..., self.columns.index(name)]


def layout_of(settings: EnvironmentSettings, machine: Machine) -> Layout:
    """Return the layout of an environment. Raises UserError if it has no column for what is to be observed."""
    for mistake in layout_mistakes(settings, "environment"):
        raise mistake
    return Layout(settings.layout, _columns(settings), _cluster(settings, machine.nodes), _rows(settings))


def layout_mistakes(settings: EnvironmentSettings, where: str) -> Iterator[UserError]:
    """Yield what is to be observed and has no column in the layout; `where`: the key of the settings."""
    name = settings.layout
    for key, what, layouts in (
        ("oracle_runtime", "real run times have no column", ("features", "dissertation")),
        ("plan", "plans have no columns", ("features",)),
        ("fairness", "fairness has no column", ("rlscheduler",)),
    ):
        if getattr(settings, key) and name not in layouts:
            yield UserError(what, where=f"{where}.{key}", expected=f"false in the layout {name}")


def layout_seen(settings: EnvironmentSettings, size: int) -> Layout:
    """Return the layout of observations of `size` numbers; a policy's file has the settings but not the
    machine.

    Raises ValueError where these settings make no observation of that size.
    """
    name, columns, rows = settings.layout, _columns(settings), _rows(settings)
    cluster = size - rows * len(columns)
    if cluster != _cluster(settings, max(cluster, 1)):
        raise ValueError(f"the layout {name} of these settings has no {size} numbers")
    return Layout(name, columns, cluster, rows)


def _rows(settings: EnvironmentSettings) -> int:
    return settings.rows if settings.layout == "shortlist" else ROWS


def _cluster(settings: EnvironmentSettings, nodes: int) -> int:
    ends = 1 + 2 * settings.quantiles
    return {"features": ends, "rlscheduler": 0, "dissertation": nodes, "shortlist": ends + 1}[settings.layout]


def _columns(settings: EnvironmentSettings) -> tuple[str, ...]:
    columns = COLUMNS[settings.layout]
    if settings.fairness and settings.layout == "rlscheduler":
        return (*columns[:-1], FAIRNESS, columns[-1])
    more = (("log_run",) if settings.oracle_runtime else ()) + (NAMES[PLAN:] if settings.plan else ())
    return columns + (more if settings.layout == "features" else ())


def fixed_columns(layout: Layout, jobs: Jobs, machine: Machine, scales: Scales, *, oracle: bool) -> np.ndarray:
    """Return what does not change while jobs wait, (n, k) float64, in the order in which observe.py reads it."""
    if layout.name == "features":
        request = positive_request(jobs)
        share, log_request = jobs.procs / machine.processors, np.log(request)
        found = [
            log_request / 10.0,
            np.log(np.maximum(jobs.procs, 1)) / 5.0,  # fewer only where no window reads it
            share,
            share * log_request / 10.0,
            share * np.sqrt(request) / 100.0,
            *([np.log(np.maximum(jobs.run, UNKNOWN_REQUEST)) / 10.0] if oracle else []),
        ]
        return np.clip(np.stack(found, axis=1), -1.0, BOUND)
    if layout.name == "shortlist":
        share, log_procs = jobs.procs / machine.processors, np.log1p(jobs.procs) / np.log1p(machine.processors)
        return np.clip(np.stack([np.log1p(positive_request(jobs)) / LONGEST, log_procs, share], axis=1), 0.0, 1.0)
    top = CEILING[layout.name]
    request, procs = _part(jobs.requested, scales.run, top), _part(jobs.procs, scales.procs, top)
    names = ("memory", "user", "group") + (("executable",) if layout.name == "rlscheduler" else ())
    numbers = [_named(getattr(jobs, name), getattr(scales, name), top) for name in names]
    if layout.name == "rlscheduler":
        return np.stack([request, procs, *numbers], axis=1)
    run = _part(jobs.run, scales.run, top) if oracle else request
    return np.stack([_part(jobs.submit, scales.submit, top), request, run, procs, *numbers], axis=1)


def _part(values: np.ndarray, largest: float, top: float) -> np.ndarray:
    """Values over the largest, at most `top` (and at least -1: the space is bounded)."""
    return np.clip(values / largest if largest > 0 else np.zeros(len(values)), -1.0, top)


def _named(values: np.ndarray, largest: float, top: float) -> np.ndarray:
    """The same, but 1 where the trace does not say."""
    return np.where(values == -1, 1.0, _part(values, largest, top))
