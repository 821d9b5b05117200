"""What learning on simulation tables costs: CPU seconds of `exact` on several scenarios jointly, milliseconds an
episode of REINFORCE.

    python benchmarks/adaptation_learners.py [--table simulations.csv] [--seeds 6] [--episodes 2000]

Without a published table, `exact` learns on three scenarios of an invented one. Starting Python and reading tables is
not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
import yaml

from schedlab.config.contract import Learner, LearnPaths, Phase, PolicySpec
from schedlab.config.schema import validate
from schedlab.studies.adaptation.compat.published_table import import_published
from schedlab.studies.adaptation.example import example_problem
from schedlab.studies.adaptation.learners.exact import ExactLearner
from schedlab.studies.adaptation.learners.reinforce import ReinforceLearner
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture
from schedlab.studies.adaptation.problem import AdaptationProblem, ProblemSetup, deepening_actions

CONF = Path(__file__).resolve().parent.parent / "conf"
SCENARIOS = ("early", "early_middle", "middle", "middle_late", "late")


def problems_of(table: Path | None) -> dict[str, AdaptationProblem]:
    """Return the five published ConvNet2 scenarios of a table, or three invented ones."""
    if table is None:
        return {f"at-{start:g}": example_problem(start) for start in (60.0, 120.0, 190.0)}
    model = yaml.safe_load((CONF / "model/convnet2.yaml").read_text())
    original = architecture(validate(ModelSettings, {**model, "head_relu": True}))
    setup = ProblemSetup(400.0, deepening_actions(original), metric="test_accuracy")
    return {
        name: AdaptationProblem(name, import_published(table, f"simulation_{name}2"), original, setup)
        for name in SCENARIOS
    }


def cpu_seconds(learner: Learner, problems: dict[str, AdaptationProblem], form: str, steps: int, seed: int) -> float:
    """Learn on all the problems; return the CPU seconds of it."""
    params = yaml.safe_load((CONF / f"learner/adaptation/{form}.yaml").read_text())
    params.pop("name")
    if "returns" in params and any(problem.view.reward.min() < 0 for problem in problems.values()):
        params["returns"] = "plain"  # the published form of returns is defined for accuracies alone
    spec = PolicySpec(form, "learned", form, params, (seed,), (Phase(tuple(problems), steps),))
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        paths = LearnPaths(None, Path(folder, "policy.zip"), Path(folder, "progress"))
        learner.learn(problems, spec, seed, paths, lambda *_, **__: None)
        return time.process_time() - began


def main() -> None:
    """Print a line for each learner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, help="the published simulations (simulations.csv)")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument(
        "--episodes",
        type=int,
        default=2000,
        help="of REINFORCE as published; the repaired form takes ten times as many",
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    problems = problems_of(given.table)
    one = dict([next(iter(problems.items()))])
    cpu_seconds(ExactLearner(), one, "exact", 1, 0)  # torch loads the rest of itself here
    rounds = range(given.seeds)
    exact = [cpu_seconds(ExactLearner(), problems, "exact", 300, seed) for seed in rounds]
    print(f"exact, {len(problems)} scenarios jointly: {spread(exact)} CPU s a seed")
    for form, episodes in (("reinforce_published", given.episodes), ("reinforce", 10 * given.episodes)):
        times = [1e3 * cpu_seconds(ReinforceLearner(), one, form, episodes, seed) / episodes for seed in rounds]
        print(f"{form}, one scenario: {spread(times)} CPU ms an episode")


def spread(values: list[float]) -> str:
    """Return smallest, largest and median."""
    return f"{min(values):.3f} to {max(values):.3f}, median {statistics.median(values):.3f}"


if __name__ == "__main__":
    main()
