"""What the tests of the stock learners share: a little drawn problem, a reward, short values of PPO, a learning job."""

from __future__ import annotations

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.study import STUDY
from schedlab.workloads.prepare import make_trace

WORKLOAD = {"name": "drawn", "source": "lublin", "lublin": {"jobs": 400, "processors": 32, "load": 1.2}}
REWARD = {"reward": "improvement", "measure": "log_bsld"}
PPO = {"environments": 2, "n_steps": 64, "batch_size": 64, "n_epochs": 2, "environment": REWARD}


def problem_of(**values) -> BatchProblem:
    given = {"name": "drawn", "seed": 1, "workload": WORKLOAD, "windows": {"length": 32}, **values}
    made = validate(BatchScenario, given)
    return BatchProblem(made, make_trace(made.workload)[0])


def learn(name, problem, folder, *phases, start=None, **params):
    """(learner, checkpoint, curve points) of a learning job."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = LearnPaths(checkpoint=folder / "policy.zip", progress=folder / "progress", start=start)
    points = []
    spec = PolicySpec("toy", "learned", name, params, train_on=phases or (Phase(("drawn",), 128),))
    learner = load_object(STUDY.learners[name])()
    learner.learn(
        {"drawn": problem}, spec, 0, paths, lambda metric, value, **place: points.append((metric, value, place))
    )
    return learner, paths.checkpoint, points
