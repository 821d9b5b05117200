"""Errors of predicted durations on graphs that the model of durations was not fitted on.

    SCHEDLAB_DATA=DIR python docs/generate/ramp_predicted.py

DIR holds the five PipeDream graphs (graphs/). Writes docs/results/predicted_durations.csv: for each graph and degree,
predicted over true duration on an empty cluster.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from table_parts import REPOSITORY

from schedlab.config.composition import Composer
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.prepare import make_graphs
from schedlab.studies.ramp.learners.predicted.learner import PredictedLearner
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.study import PROBLEM

PUBLISHED = ("alexnet", "gnmt", "resnet18", "squeezenet1_0", "vgg16")
SETS = {  # scenario -> policy
    "graphs_unseen": "predicted-graphs",
    "graphs_traced": "predicted-graphs",
    "graphs_profiles": "predicted-graphs",
    **{f"graphs_only_{name}": f"predicted-without-{name.replace('_', '-')}" for name in PUBLISHED},
}
DURATIONS = REPOSITORY / "docs/results/predicted_durations.csv"


@cache
def problem(name: str) -> RampProblem:
    """Return the problem of a shipped scenario at scale full."""
    values = Composer(REPOSITORY / "conf", "full").compose("scenario/ramp", name).values
    scenario = validate(
        RampScenario, {key: values[key] for key in (*PROBLEM, "name", "seed", "graphs") if key in values}
    )
    return RampProblem(scenario, make_graphs(scenario.graphs))


def learned(name: str, seed: int, here: RampProblem, **params: Any) -> Any:
    """Return a shipped policy learned with a seed, for the graphs of a problem."""
    values = Composer(REPOSITORY / "conf", "full").compose("policy/ramp", name).values
    phase = values["train_on"][0]
    given = {key: value for key, value in values["learner"].items() if key != "name"} | params
    spec = PolicySpec(name, "learned", "", given, train_on=(Phase(tuple(phase["scenarios"]), phase["steps"]),))
    with tempfile.TemporaryDirectory() as folder:
        paths = LearnPaths(None, Path(folder) / "policy.zip", Path(folder))
        problems = {each: problem(each) for each in phase["scenarios"]}
        PredictedLearner().learn(problems, spec, seed, paths, lambda *_, **__: None)
        return PredictedLearner().load(paths.checkpoint, here)


def durations() -> pd.DataFrame:
    """Return predicted over true duration, a row for each graph of each scenario."""
    rows = []
    for name, policy in SETS.items():
        here = problem(name)
        ratios = learned(policy, 0, here)._predicted.durations / here.compiled[0].durations
        for graph, found in zip(here.graphs, ratios, strict=True):
            named = dict(zip((f"degree_{degree}" for degree in here.compiled[0].actions), found, strict=True))
            rows.append({"scenario": name, "policy": policy, "graph": graph.name, **named})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    durations().to_csv(DURATIONS, index=False, float_format="%.5g")
