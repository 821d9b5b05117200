"""The order from history before it learns, on the whole logs on which its learned forms are tested:

    SCHEDLAB_DATA=DIR python docs/generate/batch_untrained_history.py

DIR holds the logs (traces/). Writes docs/results/batch_untrained_history.csv: for each log, the mean bounded slowdown
over the units of the recorded policies, each weighted by its jobs, as in the table of scores.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import pandas as pd
from table_parts import REPOSITORY

from schedlab.config.composition import Composer
from schedlab.config.data_paths import find_data
from schedlab.config.runtime import instructions
from schedlab.config.schema import validate
from schedlab.studies.batch.problem import BatchProblem, RulePolicy
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.history import START, HistoryPriority
from schedlab.workloads.prepare import make_trace

SCENARIOS = ("whole_hpc2n", "whole_kth_sp2", "whole_sdsc_sp2")
TABLE = REPOSITORY / "docs/results/batch_untrained_history.csv"


def untrained(scenario: str) -> float:
    """Return the mean bounded slowdown of the untrained order on the test units of a scenario at scale full."""
    values = Composer(REPOSITORY / "conf", "full").compose("scenario/batch", scenario).values
    values["workload"]["file"] = str(find_data(values["workload"]["file"]))
    settings = validate(BatchScenario, values)
    problem = BatchProblem(settings, make_trace(settings.workload)[0])
    policy = RulePolicy(HistoryPriority(START))
    units = [problem.rollout(policy, unit) for unit in problem.units("test")]
    return float(np.average([unit.scores["avg_bsld"] for unit in units], weights=[unit.weight for unit in units]))


if __name__ == "__main__":
    if instructions.pins().items() - os.environ.items():  # as in the workflow's jobs, before libraries are loaded
        instructions.begin_job()
        os.execv(sys.executable, [sys.executable, *sys.argv])
    rows = [{"scenario": scenario, "avg_bsld": untrained(scenario)} for scenario in SCENARIOS]
    pd.DataFrame(rows).to_csv(TABLE, index=False, float_format="%.10g")
