"""How much better than rules is a policy that was learned without a network? Held-out windows of real and drawn traces,
one CSV.

    python benchmarks/batch_search.py [--learner rollout] [--traces sdsc hpc2n lublin-1 lublin-2] [--others kth]
        [--backfill none]
        [--seeds 0 1 2] [--drawn-seed 2] [--policies FOLDER] [--against evolution [--their-generations 12]]
            [--every-rule] [--out FILE.csv]

The learners and the split (50 % training, 10 % validation, 40 % test, windows of 256 jobs) are those of the scenarios,
without the measures that nobody compares here. A name that begins with `lublin_` (or `lublin`) is that scenario of
conf/scenario/batch, at the scale full, with its own backfilling. Each policy is also tried on the test windows of the
other traces; `--every-rule` writes a row for each rule, not for the chosen ones alone, and `--part train` compares
where was learned. A policy that stands in the folder (`--policies`) is taken from there, with the CPU seconds that it
took (FILE.seconds beside it), so that seeds and traces can be learned in pieces; `--learn-only` tests nothing,
`--published none legacy` writes the means of the ten windows of RLScheduler's tables instead (slowdown, utilisation up
to the last start), without and with the published backfilling, which judge nothing; with `--seeds` and no number behind
it, of rules and planner alone. Needs the traces (SCHEDLAB_DATA).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedlab.config.contract import Budget, LearnPaths, Phase, PolicySpec, Split
from schedlab.config.experiment import scenario_records
from schedlab.config.files import content_hash
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.evaluation.statistics import Sample
from schedlab.learning.checkpoints import read_checkpoint
from schedlab.stages.studies import find_study
from schedlab.studies.batch.figures.comparison import compare_windows
from schedlab.studies.batch.learners.policy_files import load_priority
from schedlab.studies.batch.learners.search import Windows, best_rule, spread_windows
from schedlab.studies.batch.learners.search_settings import CORRECT_RULES
from schedlab.studies.batch.problem import BatchProblem, RulePolicy
from schedlab.studies.batch.scenario import BACKFILLS, BatchScenario
from schedlab.studies.batch.simulator.rollouts import RolloutPolicy
from schedlab.studies.batch.study import STUDY
from schedlab.studies.batch.windows import SPLITS
from schedlab.workloads.prepare import make_trace

REPOSITORY = Path(__file__).resolve().parents[1]
LENGTH, DRAWN_JOBS = 256, 80_000
FILES = {"sdsc": "SDSC-SP2-1998-4.2-cln", "hpc2n": "HPC2N-2002-2.2-cln", "kth": "KTH-SP2-1996-2.1"}
CONFIRMATION = {
    "atlas": "LLNL-Atlas-2006-2.1-cln",
    "nasa": "NASA-iPSC-1993-3.1-cln",
}  # looked at once, when the recipe was fixed
MODELS = {
    "lublin-1": {"types": "typeless", "load": 1.06, "umed": 5.5, "uhi": 8.0},
    "lublin-2": {"types": "typed", "load": 0.62, "uhi": 8.0},
}
SCENARIOS = (
    "lublin",
    *(f"lublin_{name}" for name in ("load_60", "load_70", "load_80", "load_95", "exact", "warm", "easy", "easy_area")),
)
BUSY = {
    "atlas-busy": "atlas",
    "nasa-busy": "nasa",
}  # the same jobs, arriving so fast that they ask for 90 % of the machine
TRACES = (*FILES, *CONFIRMATION, *BUSY, *MODELS, *SCENARIOS)

PUBLISHED = FILES | {"lublin-1": "lublin_256", "lublin-2": "lublin_256_new2"}
PUBLISHED_STARTS = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]
PUBLISHED_MEASURES = ("avg_bsld", "util_to_last_start")
AS_PUBLISHED = ("wfp3_legacy", "unicep_legacy")  # beside the rules as they are meant


def problem_of(name: str, backfill: str, drawn_seed: int = 2) -> BatchProblem:
    """Return the problem of a trace, or of a scenario, whose backfilling is its own."""
    if name in SCENARIOS:
        record = configured()[name]
        scenario = validate(BatchScenario, {"name": name, "seed": record["seed"], **record["problem"]})
        return BatchProblem(scenario, make_trace(scenario.workload)[0])
    if name in FILES:
        workload = {"source": "swf", "file": f"traces/{FILES[name]}.swf.gz", "cleaning": {"profile": "rlscheduler"}}
    elif name in (*CONFIRMATION, *BUSY):
        file = CONFIRMATION[BUSY.get(name, name)]
        workload = {
            "source": "swf",
            "file": f"traces/{file}.swf.gz",
            "cleaning": {"profile": "default"},
            "load": 0.9 if name in BUSY else None,
        }
    else:
        workload = {
            "source": "lublin",
            "seed": drawn_seed,
            "lublin": {"jobs": DRAWN_JOBS, "processors": 256, **MODELS[name]},
        }
    values = {
        "name": name,
        "seed": 1,
        "workload": {"name": name, **workload},
        "windows": {"length": LENGTH},
        "backfill": backfill,
    }
    scenario = validate(BatchScenario, values)
    return BatchProblem(scenario, make_trace(scenario.workload)[0])


@cache
def configured() -> dict[str, dict[str, Any]]:
    """Return the records of the study's scenarios at the scale full."""
    return scenario_records(REPOSITORY / "conf", "full", find_study)["batch"]


def spec_of(learner: str, problem: BatchProblem, generations: int) -> PolicySpec:
    """Return what is learned on a problem."""
    params = {}
    if learner == "evolution":
        starts = ["linear", "planner"] if problem.scenario.backfill == "none" else ["linear"]
        params = {"population": 14, "windows": 24, "starts": starts}
    return PolicySpec(learner, "learned", learner, params, train_on=(Phase((problem.scenario.name,), generations),))


def configuration(spec: PolicySpec, problem: BatchProblem) -> str:
    """Return the hash of all values that a policy and its windows come from, and of the rules that it is learned and
    judged against.
    """
    settings = validate(STUDY.learner_settings[spec.target], spec.params).model_dump(mode="json")
    steps = [phase.steps for phase in spec.train_on]
    code = [STUDY.results_version, list(CORRECT_RULES)]
    return content_hash([spec.target, settings, steps, problem.scenario.model_dump(mode="json"), code])[:12]


def published_problem(name: str, backfill: str) -> BatchProblem:
    """Return the windows of RLScheduler's table, without backfilling or with the published one."""
    workload = {
        "name": name,
        "source": "swf",
        "file": f"traces/{PUBLISHED[name]}.swf.gz",
        "cleaning": {"profile": "rlscheduler"},
    }
    values = {
        "name": name,
        "seed": 1,
        "workload": workload,
        "windows": {"length": 1024, "starts": PUBLISHED_STARTS},
        "backfill": backfill,
    }
    scenario = validate(BatchScenario, values)
    return BatchProblem(scenario, make_trace(scenario.workload)[0])


def published_rows(
    name: str, backfill: str, made: dict[str, list[Path]], seeds: Sequence[int]
) -> list[dict[str, object]]:
    """Return what every rule, the planner and each learned policy come to on those windows: their mean measures."""
    problem = published_problem(name, backfill)
    policies: list[tuple[str, int | None, Any]] = [
        (rule, None, rule) for rule in (*CORRECT_RULES, *AS_PUBLISHED, "planner")
    ]
    policies += [
        (learner, seed, load_priority(path))
        for learner, paths in made.items()
        for seed, path in zip(seeds, paths, strict=True)
    ]
    rows = []
    for policy, seed, priority in policies:
        scores = [problem.rollout(RulePolicy(priority), unit).scores for unit in problem.units("test")]
        means = {measure: float(np.mean([score[measure] for score in scores])) for measure in PUBLISHED_MEASURES}
        rows.append({"backfill": backfill, "trace": name, "policy": policy, "seed": seed, **means})
        print(*rows[-1].values(), file=sys.stderr, flush=True)
    return rows


def learned(problem: BatchProblem, spec: PolicySpec, seed: int, folder: Path) -> Path:
    """Return the file of what the learner keeps, made where the folder does not have it; prints its CPU seconds."""
    path = folder / f"{problem.scenario.name}-{problem.scenario.backfill}-{configuration(spec, problem)}-{seed}.zip"
    if not path.exists():
        paths = LearnPaths(None, path, folder / f"{path.stem}-progress")
        paths.progress.mkdir(parents=True, exist_ok=True)
        began = time.process_time()
        load_object(STUDY.learners[spec.target])().learn(
            {problem.scenario.name: problem}, spec, seed, paths, lambda *_, **__: None
        )
        seconds_of(path).write_text(f"{time.process_time() - began:.0f}\n")
        print(
            f"{path.name}: {seconds_of(path).read_text().strip()} CPU s, keeps {describe(path)}",
            file=sys.stderr,
            flush=True,
        )
    return path


def seconds_of(path: Path) -> Path:
    """Return the file that tells the CPU seconds a policy took."""
    return path.with_suffix(".seconds")


def median_seconds(paths: list[Path]) -> float | None:
    """Return the median CPU seconds of policies, where all are told."""
    told = [seconds_of(path) for path in paths]
    return float(np.median([float(each.read_text()) for each in told])) if all(each.exists() for each in told) else None


def describe(path: Path) -> str:
    """Return what a file holds, in a word or two."""
    policy = load_priority(path)
    if isinstance(policy, RolloutPolicy):
        kind = (
            f"rollouts of {len(policy.bases)} bases, horizon {policy.arrivals.gap.shape[1]}"
            if policy.samples
            else "a base alone"
        )
    else:
        kind = policy if isinstance(policy, str) else "a linear priority"
    ratios = read_checkpoint(path).meta["about"]["log_ratios"]
    values = list(ratios.values()) if isinstance(ratios, dict) else ratios
    return f"{kind} ({', '.join(f'{np.exp(value):.3f}' for value in values)})"


def as_sample(values: Sequence[np.ndarray] | np.ndarray, *, seeded: bool) -> Sample:
    """Return windows' mean bounded slowdowns of each seed as a sample of the statistics."""
    table = np.array(values)
    units = tuple(f"{number:06d}" for number in range(table.shape[1]))
    return Sample(table, np.ones_like(table), np.arange(table.shape[1]), tuple(range(len(table))), units, seeded)


@cache
def rules_of(
    problem: BatchProblem, part: Split = "test"
) -> tuple[Windows, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return (windows of a part, rule -> its values there, the planner's among them, rule -> its values on validation
    windows).
    """
    test = spread_windows([problem], part, LENGTH, 1000, Budget())
    validation = spread_windows([problem], "validation", 64, 200, Budget())
    return (
        test,
        {rule: test.bsld(rule) for rule in (*CORRECT_RULES, "planner")},
        {rule: validation.bsld(rule) for rule in CORRECT_RULES},
    )


@cache
def tested(problem: BatchProblem, path: Path, part: Split = "test") -> np.ndarray:
    """Return the values of a policy's file on the windows of a part."""
    return rules_of(problem, part)[0].bsld(load_priority(path))


def rows_of(
    problem: BatchProblem,
    head: dict[str, object],
    made: dict[str, list[Path]],
    *,
    every_rule: bool = False,
    part: Split = "test",
) -> list[dict[str, object]]:
    """Compare each learner's policies (one file a seed) with rules and the planner on windows of a part, and the first
    with the others.
    """
    _, on_test, on_validation = rules_of(problem, part)
    baselines = {
        "chosen by mean": best_rule(CORRECT_RULES, on_validation, "mean"),
        "chosen by log": best_rule(CORRECT_RULES, on_validation, "log"),
        "hindsight": best_rule(CORRECT_RULES, on_test, "mean"),
        "planner": "planner",
    }
    table = np.array(list(on_test.values()))
    differing = {f"{unit:06d}" for unit in np.flatnonzero(table.max(axis=0) > table.min(axis=0) * (1 + 1e-12))}
    samples = {
        learner: as_sample([tested(problem, path, part) for path in paths], seeded=True)
        for learner, paths in made.items()
    }
    first, rows = next(iter(made)), []
    for learner, ours in samples.items():
        own = {
            "learner": learner,
            "configuration": made[learner][0].stem.split("-")[-2],
            "by_seed": " ".join(f"{value:.4g}" for value in ours.values.mean(axis=1)),
            "cpu_seconds": median_seconds(made[learner]),
        }
        roles = [*baselines.items(), *(("rule", rule) for rule in CORRECT_RULES if every_rule)]
        against = [(role, rule, as_sample([on_test[rule]], seeded=False)) for role, rule in roles]
        against += [
            (other, f"{len(made[other])} seeds", theirs)
            for other, theirs in samples.items()
            if learner == first != other
        ]
        for role, rule, theirs in against:
            rng = generator(0, "batch-search", learner, *head.values(), role)
            rows.append({**own, **head, "against": role, "rule": rule, **compare_windows(ours, theirs, differing, rng)})
    return rows


def main() -> None:
    """Learn on each trace, compare on each, and write the rows as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learner", default="rollout", choices=("rollout", "evolution"))
    parser.add_argument("--traces", nargs="+", default=["sdsc", "hpc2n", "lublin-1", "lublin-2"], choices=TRACES)
    parser.add_argument("--others", nargs="*", default=[], choices=TRACES, help="traces that are only tested on")
    parser.add_argument("--backfill", default="none", choices=BACKFILLS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--drawn-seed", type=int, default=2, help="seed of the drawn traces")
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument(
        "--policies", type=Path, default=Path("build/policies"), help="folder of learned policies (build/policies)"
    )
    parser.add_argument(
        "--against", choices=("evolution",), help="compare with the policies of this learner, too, of the same seeds"
    )
    parser.add_argument("--their-generations", type=int, default=12, help="budget of the other learner's searches")
    parser.add_argument("--every-rule", action="store_true", help="compare with each rule")
    parser.add_argument("--part", default="test", choices=SPLITS, help="compare on the windows of this part (test)")
    parser.add_argument("--learn-only", action="store_true", help="test nothing")
    parser.add_argument(
        "--published",
        nargs="+",
        default=[],
        choices=("none", "legacy", "easy"),
        help="means on the windows of the published table instead",
    )
    parser.add_argument("--out", default=sys.stdout, help="CSV (default: print)")
    arguments = parser.parse_args()
    if not (arguments.seeds or arguments.published):
        parser.error("--seeds: without any, only --published has something to write")
    budgets = {arguments.learner: arguments.generations}
    if arguments.against:
        budgets.setdefault(arguments.against, arguments.their_generations)
    problems = {
        name: problem_of(name, arguments.backfill, arguments.drawn_seed)
        for name in (*arguments.traces, *arguments.others)
    }
    rows = []
    for origin in arguments.traces:
        made: dict[str, list[Path]] = {}
        for learner, generations in budgets.items():
            spec = spec_of(learner, problems[origin], generations)
            made[learner] = [learned(problems[origin], spec, seed, arguments.policies) for seed in arguments.seeds]
        for backfill in arguments.published:
            rows += published_rows(origin, backfill, made, arguments.seeds)
        if arguments.learn_only or arguments.published:
            continue
        for name, problem in problems.items():
            head = {"backfill": problem.scenario.backfill, "trace": name, "learned_on": origin}
            rows += rows_of(problem, head, made, every_rule=arguments.every_rule, part=arguments.part)
    if rows:
        table = pd.DataFrame(rows)
        table = table.round(8).astype({"seed": "Int64"}) if arguments.published else table.round(4)
        table.to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
