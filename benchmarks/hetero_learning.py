"""What helps to learn the scenario `contended`: the configured recipe with one thing changed, scored on validation
workloads.

    python benchmarks/hetero_learning.py [VARIANT ...] [--root 7] [--out docs/results/hetero_learning.csv]

Sizes are those of the scale full, workloads those of another root seed than the reported ones, and nothing of the test
is looked at. First the 36 pairs, each played on every validation workload; then the variants, by default all of
VARIANTS. A line of the CSV for each pair and each seed of a variant, added as soon as it is there: episodes and CPU
seconds of learning (without the score, and without compiling, which a first short learning does), mean bounded slowdown
over the validation workloads, and `place`, 1 + the number of pairs with a lower mean.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schedlab.config import experiment
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.files import write_text
from schedlab.config.runtime import freeze
from schedlab.stages.policies import policy_spec, policy_stream
from schedlab.stages.studies import find_study
from schedlab.studies.hetero.env.settings import ALL_PAIRS
from schedlab.studies.hetero.learners.policy_gradient import PolicyGradientLearner
from schedlab.studies.hetero.prepare import generate_platform, scenario_of, trim_workload
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.rules import PairRule

REPOSITORY = Path(__file__).resolve().parents[1]
OUT = REPOSITORY / "docs/results/hetero_learning.csv"
STUDY, SCENARIO, POLICY = "hetero", "contended", "reinforce-contended"
METRIC = "mean_bounded_slowdown"
COLUMNS = ("variant", "root_seed", "seed", "episodes", "learning_cpu_s", "workloads", METRIC, "place")
WARM_UP = 32  # episodes, of one update


@dataclass(frozen=True)
class Variant:
    """What is other than configured: episodes (None: those of the scale), parameters of the learner, what is observed;
    and which seeds.
    """

    episodes: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    params: Mapping[str, Any] = field(default_factory=dict)
    observation: str = ""


VARIANTS = {
    "observation small, 240 episodes": Variant(240, params={"compiled": False}, observation="small"),
    "240 episodes": Variant(240),
    "2,000 episodes": Variant(2_000),
    "as configured": Variant(),
    "with a critic": Variant(params={"critic": True}),
    "half the hidden units": Variant(params={"hidden": 16}),
}


def main() -> None:
    """Write the lines of the pairs and of the variants named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="variants: " + "; ".join(VARIANTS))
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help="default: all")
    parser.add_argument("--root", type=int, default=7, help="root seed (default: 7)")
    parser.add_argument("--scale", default="full", help="sizes (default: full)")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    if unknown := [name for name in given.variants if name not in VARIANTS]:
        parser.error(f"no variant '{unknown[0]}'; there are: {'; '.join(VARIANTS)}")
    loaded = experiment.load(REPOSITORY / "conf", given.scale, find_study)
    spec = policy_spec(freeze.learn_part(loaded, STUDY, POLICY)["policy"])
    with tempfile.TemporaryDirectory() as folder, given.out.open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(COLUMNS)
        problem = problem_of(loaded, given.root, Path(folder))
        workloads, pairs = len(problem.units("validation")), {}
        for pair in ALL_PAIRS:
            pairs[pair] = validation(problem, PairRule(pair, policy_stream(given.root, "rule", STUDY, 0)))
        for pair, mean in sorted(pairs.items(), key=lambda one: one[1]):
            write([pair, given.root, 0, "", "", workloads, f"{mean:.5g}", place(mean, pairs)])
        file.flush()
        learn(problem, replace(spec, train_on=(Phase((SCENARIO,), WARM_UP, {}),)), given.root, 0, Path(folder))
        for name in given.variants or VARIANTS:
            variant = VARIANTS[name]
            changed = (
                problem_of(loaded, given.root, Path(folder), observation=variant.observation)
                if variant.observation
                else problem
            )
            steps = variant.episodes or spec.train_on[0].steps
            own = replace(spec, params={**spec.params, **variant.params}, train_on=(Phase((SCENARIO,), steps, {}),))
            for seed in variant.seeds:
                policy, seconds = learn(changed, own, given.root, seed, Path(folder))
                mean = validation(changed, policy)
                write([name, given.root, seed, steps, f"{seconds:.1f}", workloads, f"{mean:.5g}", place(mean, pairs)])
                file.flush()


def problem_of(loaded: experiment.Experiment, root: int, folder: Path, **decisions: Any) -> HeteroProblem:
    """Return the scenario under a root seed, platform and workloads made in the folder; decisions: values of it that
    are changed.
    """
    values = deepcopy(freeze.problem_part(loaded, STUDY, SCENARIO))
    values["seed"] = values["workload"]["seed"] = root
    values["decisions"] |= decisions
    part, platform, resources, workloads, report = (
        folder / name for name in ("part.yaml", "platform.xml", "resources.json", "workloads.zip", "report.json")
    )
    write_text(part, freeze.dump(values))
    generate_platform(part, platform, resources)
    trim_workload(part, resources, workloads, report)
    return HeteroProblem(scenario_of(values), platform, resources, workloads)


def learn(problem: HeteroProblem, spec: PolicySpec, root: int, seed: int, folder: Path) -> tuple[Any, float]:
    """Learn as the workflow does; return the policy and CPU seconds."""
    learner = PolicyGradientLearner()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        paths = LearnPaths(None, Path(place, "policy.zip"), Path(place))
        begin = time.process_time()
        learner.learn({SCENARIO: problem}, spec, policy_stream(root, "learn", STUDY, seed), paths, lambda **_: None)
        return learner.load(paths.checkpoint, problem), time.process_time() - begin


def validation(problem: HeteroProblem, policy: Any) -> float:
    """Return the mean of the metric over the validation workloads."""
    scores = [problem.rollout(policy, unit).scores[METRIC] for unit in problem.units("validation")]
    return sum(scores) / len(scores)


def place(mean: float, pairs: Mapping[str, float]) -> int:
    """Return 1 + the number of pairs with a lower mean."""
    return 1 + sum(other < mean for other in pairs.values())


if __name__ == "__main__":
    main()
