"""Our values of the claims of the batch study on the dissertation's tests of rules: SCHEDLAB_DATA=DIR python
docs/generate/batch_claims.py [hpc2n] [hpc2n_backfill] [sdsc_sp2]

In reference mode the rules wait until 128 jobs do, as published; in default mode they are applied as meant. Means and
medians are over the jobs of all windows, each window counted as often as the scenario says.
"""

from __future__ import annotations

import sys
from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd
from claim_tables import FORMS, Values, joined, write_claims

from schedlab.config.composition import Composer
from schedlab.config.data_paths import CHECKOUT, find_data
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.studies.batch.legacy import WAITING_RULES
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.workloads.prepare import make_trace

TESTS = ("hpc2n", "hpc2n_backfill", "sdsc_sp2")
RULES = ("fcfs", "f1", "sjf", "smallest")
WITH_WAITS = "hpc2n"  # the one test whose waits were published


def of_test(test: str) -> Values:
    """The four rules on the windows of a test."""
    return joined(of_rule(test, rule, form) for rule, form in product(RULES, FORMS))


def of_rule(test: str, rule: str, form: str) -> Values:
    """The values of one rule on the windows of a test."""
    own = problem(test)
    maker = load_object(WAITING_RULES[f"{rule}_waiting"]) if FORMS[form] else RULE_MAKERS[rule]
    windows = [own.rollout(maker({}, own, 0), unit) for unit in own.units("test")]
    weights = [int(window.weight) for window in windows]
    times = [window.details["jobs"] for window, often in zip(windows, weights, strict=True) for _ in range(often)]
    jobs = pd.concat(times)
    found = {"test": np.average([window.scores["avg_bsld"] for window in windows], weights=weights)}
    found["median"] = jobs["bsld"].median()
    if test == WITH_WAITS:
        found |= {"wait-mean": jobs["wait"].mean(), "wait-median": jobs["wait"].median()}
    return {f"{kind}-{test.replace('_', '-')}-{rule}": {form: float(value)} for kind, value in found.items()}


@cache
def problem(test: str) -> BatchProblem:
    """Return the scenario of a test as at scale full, with its trace."""
    values = Composer(CHECKOUT / "conf", "full").compose("scenario/batch", f"published_test_{test}").values
    file = find_data(values["workload"]["file"])
    scenario = validate(BatchScenario, values | {"workload": values["workload"] | {"file": str(file)}})
    return BatchProblem(scenario, make_trace(scenario.workload)[0])


PARTS = {test: partial(of_test, test) for test in TESTS}


if __name__ == "__main__":
    sys.exit(write_claims("batch", PARTS))
