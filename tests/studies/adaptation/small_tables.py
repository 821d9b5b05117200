"""Problems and learning jobs that the tests of tables, policies and learners share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.contract import Budget, LearnPaths, Phase, PolicySpec
from schedlab.config.schema import validate
from schedlab.stages.learn import CurveRecorder
from schedlab.studies.adaptation.compat.published_table import import_published
from schedlab.studies.adaptation.network.architecture import Architecture, ModelSettings, architecture
from schedlab.studies.adaptation.problem import AdaptationProblem, ProblemSetup, deepening_actions

SCENARIOS = ("early", "early_middle", "middle", "middle_late", "late")
SUFFIX = {"convnet2": "2", "convnet3": "3_v2"}
MODELS = Path(__file__).parents[3] / "conf" / "model"


def model(name: str, head_relu: bool = False) -> Architecture:
    """A shipped model."""
    values = yaml.safe_load((MODELS / f"{name}.yaml").read_text())
    return architecture(validate(ModelSettings, {**values, "head_relu": head_relu}))


def published(csv: Path, name: str = "convnet2") -> dict[str, AdaptationProblem]:
    """The five published scenarios of a model."""
    original = model(name, head_relu=True)
    setup = ProblemSetup(400.0, deepening_actions(original), metric="test_accuracy")
    return {
        scenario: AdaptationProblem(
            scenario, import_published(csv, f"simulation_{scenario}{SUFFIX[name]}"), original, setup
        )
        for scenario in SCENARIOS
    }


@dataclass
class Learned:
    """What a learning job left behind."""

    checkpoint: Path
    curves: list[tuple] = field(default_factory=list)
    budget: Budget | None = None


def learn(
    learner: Any,
    problems: dict[str, AdaptationProblem],
    phases: tuple[Phase, ...],
    folder: Path,
    seed: int = 0,
    **more: Any,
) -> Learned:
    """Run a learning job in a folder; more: params, and start (the parent's checkpoint)."""
    learned = Learned(folder / "policy.zip")

    paths = LearnPaths(more.get("start"), learned.checkpoint, folder / "progress")
    paths.progress.mkdir(parents=True, exist_ok=True)
    spec = PolicySpec("p", "learned", "t", more.get("params", {}), (seed,), phases)
    with CurveRecorder(paths.progress / "curve.jsonl") as curve:
        learned.budget = learner.learn(problems, spec, seed, paths, curve)
    for point in curve.points():
        point["scenario"] = point.pop("train_scenario")
        learned.curves.append((point.pop("metric"), point.pop("value"), *sorted(point.items())))
    return learned


def ranks(learner: Any, checkpoint: Path, problems: dict[str, AdaptationProblem]) -> dict[str, float]:
    """Rank of a policy on the first test unit of each problem."""
    found = {}
    for name, problem in problems.items():
        found[name] = problem.rollout(learner.load(checkpoint, problem), problem.units("test")[0]).scores["rank"]
    return found
