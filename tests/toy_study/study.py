"""The study `toy`: a policy names one number for a unit and pays the squared distance to the unit's hidden target."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedlab.config.contract import (
    Budget,
    Curve,
    LearnPaths,
    Metric,
    Outcome,
    Part,
    Policy,
    PolicySpec,
    Problem,
    Study,
    Unit,
)
from schedlab.config.files import write_json
from schedlab.config.schema import Settings, setting
from schedlab.config.seeds import generator
from schedlab.config.settings import ScenarioSettings

SPLITS = ("train", "validation", "test")


class ToyScenario(ScenarioSettings):
    """Where the hidden targets lie and how many there are."""

    centre: float = setting(doc="mean of the targets", unit="m")
    spread: float = setting(1.0, doc="standard deviation of the targets", unit="m", ge=0)
    units: int = setting(6, doc="units in each split", gt=0)


class ToyScale(Settings):
    """The toy has one size."""


class ConstantSettings(Settings):
    """Values of the rule `constant`."""

    guess: float = setting(0.0, doc="what it says", unit="m")


class HillClimbing(Settings):
    """Values of the learner `hill_climbing`."""

    start: float = setting(0.0, doc="first guess", unit="m")
    step_size: float = setting(0.5, doc="standard deviation of a trial step", unit="m", gt=0)


def draw_targets(values: Mapping[str, Any], path: Path) -> None:
    """Write the hidden targets of all splits as JSON; what the prepare rule of the toy calls."""
    targets = {}
    for split in SPLITS:
        rng = generator(values["seed"], "targets", split)
        targets[split] = rng.normal(values["centre"], values["spread"], values["units"]).tolist()
    write_json(path, targets)


@dataclass(frozen=True)
class ToyProblem:
    """One scenario with its targets loaded; two units share a block."""

    targets: Mapping[str, list[float]]

    def units(self, split: str) -> Sequence[Unit]:
        return [
            Unit(f"{split}-{i:02d}", "target", split, f"{split}-{i // 2}", seed=i)
            for i in range(len(self.targets[split]))
        ]

    def env(self, unit: Unit, seed: int) -> None:
        """There is nothing to step."""
        del unit, seed

    def target(self, unit: Unit) -> float:
        return self.targets[unit.split][unit.seed]

    def rollout(self, policy: Policy, unit: Unit) -> Outcome:
        policy.reset(unit)
        guess = float(policy.act(None, None))
        distance = abs(guess - self.target(unit))
        return Outcome(
            {"cost": distance**2, "near": float(distance < 1.0)}, details={"guesses": pd.DataFrame({"guess": [guess]})}
        )


@dataclass
class Constant:
    """Says the same number always."""

    guess: float

    def reset(self, unit: Unit) -> None:
        del unit

    def act(self, observation: Any, mask: Any) -> float:
        del observation, mask
        return self.guess


def make_constant(params: Mapping[str, Any], problem: Problem, seed: int) -> Policy:
    """Return the rule that says `guess` (0 where the scenario gives none)."""
    del problem, seed
    return Constant(params.get("guess", 0.0))


@dataclass
class Dice:
    """Says a random number, the same for the same unit and seed. Its budget counts the draws."""

    seed: int
    guess: float = 0.0
    budget: Budget = field(default_factory=Budget)

    def reset(self, unit: Unit) -> None:
        self.budget.decisions += 1
        self.guess = float(generator(self.seed, "dice", unit.id).normal())

    def act(self, observation: Any, mask: Any) -> float:
        del observation, mask
        return self.guess


def make_dice(params: Mapping[str, Any], problem: Problem, seed: int) -> Policy:
    """Return the rule that draws."""
    del params, problem
    return Dice(seed)


class HillClimber:
    """Keeps a guess, tries a step each time, and takes it where the mean cost of the training units falls."""

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        kept = paths.progress / "state.json"
        start = json.loads(paths.start.read_text())["guess"] if paths.start else spec.params["start"]
        state = json.loads(kept.read_text()) if kept.exists() else {"step": 0, "guess": start, "decisions": 0}
        last = 0
        for number, phase in enumerate(spec.train_on):
            settings = {**spec.params, **phase.params}
            chosen = [problems[name] for name in phase.scenarios]
            last += phase.steps
            while state["step"] < last:
                step = state["step"]
                trial = state["guess"] + float(generator(seed, "step", step).normal(0, settings["step_size"]))
                state["guess"] = min((state["guess"], trial), key=lambda guess: mean_cost(chosen, guess))
                state["decisions"] += 2 * sum(len(problem.units("train")) for problem in chosen)
                curve(
                    "cost",
                    mean_cost(chosen, state["guess"]),
                    step=step,
                    phase=number,
                    scenario="+".join(phase.scenarios),
                    decisions=state["decisions"],
                )
                state["step"] = step + 1
                write_json(kept, state)
        write_json(paths.checkpoint, {"guess": state["guess"]})
        return Budget(decisions=state["decisions"])

    def load(self, checkpoint: Path, problem: Problem) -> Policy:
        del problem
        return Constant(json.loads(checkpoint.read_text())["guess"])


def mean_cost(problems: Sequence[ToyProblem], guess: float) -> float:
    """Return the mean squared distance of a guess to all training targets."""
    return float(
        np.mean([(guess - problem.target(unit)) ** 2 for problem in problems for unit in problem.units("train")])
    )


def load_problem(values: Mapping[str, Any], inputs: Mapping[str, Path]) -> ToyProblem:
    """Return the problem of a frozen part and the targets that the prepare rule drew."""
    del values
    return ToyProblem(json.loads(Path(inputs["targets"]).read_text()))


def target_values(scenario: ToyScenario) -> dict[str, Any]:
    """Return what the targets depend on."""
    return {"centre": scenario.centre, "spread": scenario.spread, "units": scenario.units, "seed": scenario.seed}


STUDY = Study(
    name="toy",
    question="can a number be guessed?",
    results_version=1,
    scenario=ToyScenario,
    scale=ToyScale,
    metrics=(
        Metric("cost", "m²", "lower", headline=True, label="squared distance"),
        Metric("near", "-", "higher", label="share within a metre"),
    ),
    rules={"constant": "toy_study.study:make_constant", "dice": "toy_study.study:make_dice"},
    learners={"hill_climbing": "toy_study.study:HillClimber"},
    learner_settings={"hill_climbing": HillClimbing},
    rule_settings={"constant": ConstantSettings},
    figures={"costs": "toy_study.figures:draw_costs"},
    parts=lambda scenario: {"draw_targets": Part(target_values(scenario), made_by=f"{__name__}:draw_targets")},
    problem_part=lambda scenario: {"units": scenario.units},
    requires=lambda _: (),
    inputs=lambda _: {"targets": ("draw_targets", "targets.json")},
    problem=load_problem,
    details={"guesses": "what each policy said for each unit"},
)
