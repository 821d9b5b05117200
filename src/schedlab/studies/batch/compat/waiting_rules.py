"""The baselines of the dissertation's tests as published: rules that wait until 128 jobs are waiting.

Its test took the row of the lowest score, and the row for waiting, behind the last of fewer than 128 jobs, scored below
every job's: so each rule waited, 60 s at a time. Because waiting where nothing runs or is to come ended the window, its
last 127 jobs never started and were left out of the means. Scores were those of the numbers in the rows, which F1 is
not meant for: requested times and processors hardly count beside submit times that way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from schedlab.config.contract import RuleMaker, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, validate
from schedlab.studies.batch.env.settings import ROWS, EnvironmentSettings
from schedlab.studies.batch.jobs import Schedule
from schedlab.studies.batch.rules import f1
from schedlab.studies.batch.simulator.stepper import Stepper

Rows = dict[str, np.ndarray]  # by name of the layout's columns, (128,) each


SCORES: dict[str, Callable[[Rows], np.ndarray]] = {
    "fcfs": lambda rows: rows["submit"],
    "sjf": lambda rows: rows["request"],
    "smallest": lambda rows: rows["procs"],
    "f1": lambda rows: f1(rows["request"], rows["procs"], rows["submit"]),
}


@dataclass(frozen=True)
class WaitingRule:
    """A rule of SCORES that starts jobs only while 128 jobs are waiting."""

    rule: str
    environment: ClassVar[EnvironmentSettings] = EnvironmentSettings(
        layout="dissertation", scales="whole", noop_ends=True
    )

    def reset(self, unit: Unit) -> None:
        """Nothing to do: nothing is stored from one window to the next."""

    def schedule_window(self, stepper: Stepper) -> Schedule:
        """Run an opened window; return the schedule of the jobs that started. Raises UserError if none did."""
        layout, found = stepper.layout, stepper.episodes.found
        while not stepper.ended[0]:
            row = int(found[0])
            if row == ROWS:
                rows, _ = layout.split(stepper.observations[0].astype(float))
                row = int(np.argmin(SCORES[self.rule](dict(zip(layout.columns, rows.T, strict=True)))))
            stepper.step(np.array([row]))
        schedule = stepper.schedule(0)
        if np.isnan(schedule.start).all():
            what = f"no job starts under {self.rule}_waiting: never do {ROWS} wait"
            raise UserError(
                what,
                where=f"window of {len(schedule.jobs)} jobs",
                expected="windows of thousands of jobs, as published",
            )
        return schedule.of_started()


def _maker(rule: str) -> RuleMaker:
    def make(params: Mapping[str, Any], problem: Any, seed: int) -> Any:
        del problem, seed
        validate(NoSettings, params)
        return WaitingRule(rule)

    return make


RULE_MAKERS = {rule: _maker(rule) for rule in SCORES}
