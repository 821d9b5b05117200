"""How much better than rules is a linear priority that was searched for? Held-out windows of real and drawn traces, one CSV.

    python benchmarks/batch_search.py [--traces sdsc hpc2n lublin-1 lublin-2] [--others kth] [--backfill none] [--seeds 3] [--out FILE.csv]

The learner and the split (50 % training, 10 % validation, 40 % test, windows of 256 jobs) are those of the scenarios, without the
measures that nobody compares here. Each policy is also tried on the test windows of the other traces. Needs the traces (SCHEDLAB_DATA).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.evaluation.statistics import Sample
from schedlab.studies.batch.learned import load_priority
from schedlab.studies.batch.learner_search import EvolutionLearner
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.search_settings import CORRECT_RULES
from schedlab.studies.batch.search_windows import Windows, best_rule, spread_windows
from schedlab.studies.batch.settings import BatchScenario
from schedlab.studies.batch.window_comparison import compare_windows
from schedlab.workloads.prepare import make_trace

LENGTH, DRAWN_JOBS, DRAWN_SEED = 256, 80_000, 2
FILES = {"sdsc": "SDSC-SP2-1998-4.2-cln", "hpc2n": "HPC2N-2002-2.2-cln", "kth": "KTH-SP2-1996-2.1"}
MODELS = {
    "lublin-1": {"types": "typeless", "load": 1.06, "umed": 5.5, "uhi": 8.0},
    "lublin-2": {"types": "typed", "load": 0.62, "uhi": 8.0},
}


def problem_of(name: str, backfill: str) -> BatchProblem:
    """Return the problem of a trace."""
    if name in FILES:
        workload = {"source": "swf", "file": f"traces/{FILES[name]}.swf.gz", "cleaning": {"profile": "rlscheduler"}}
    else:
        workload = {"source": "lublin", "seed": DRAWN_SEED, "lublin": {"jobs": DRAWN_JOBS, "processors": 256, **MODELS[name]}}
    values = {"name": name, "seed": 1, "workload": {"name": name, **workload}, "windows": {"length": LENGTH}, "backfill": backfill}
    scenario = validate(BatchScenario, values)
    return BatchProblem(scenario, make_trace(scenario.workload)[0])


def learned(problem: BatchProblem, seed: int, generations: int) -> tuple[object, float]:
    """Return (what the learner keeps, its CPU seconds)."""
    starts = ["linear", "planner"] if problem.scenario.backfill == "none" else ["linear"]
    params = {"population": 14, "windows": 24, "starts": starts}
    name = problem.scenario.name
    spec = PolicySpec("evolution", "learned", "evolution", params, train_on=(Phase((name,), generations),))
    with tempfile.TemporaryDirectory() as folder:
        paths = LearnPaths(None, Path(folder, "policy.zip"), Path(folder, "progress"))
        paths.progress.mkdir()
        began = time.process_time()
        EvolutionLearner().learn({name: problem}, spec, seed, paths, lambda *_, **__: None)
        return load_priority(paths.checkpoint), time.process_time() - began


def as_sample(values: list[np.ndarray], *, seeded: bool) -> Sample:
    """Return windows' mean bounded slowdowns of each seed as a sample of the statistics."""
    table = np.array(values)
    units = tuple(f"{number:06d}" for number in range(table.shape[1]))
    return Sample(table, np.ones_like(table), np.arange(table.shape[1]), tuple(range(len(table))), units, seeded)


@cache
def rules_of(problem: BatchProblem) -> tuple[Windows, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return (test windows, rule -> its values there, the planner's among them, rule -> its values on validation windows)."""
    test, validation = spread_windows([problem], "test", LENGTH, 1000), spread_windows([problem], "validation", 64, 200)
    return test, {rule: test.bsld(rule) for rule in (*CORRECT_RULES, "planner")}, {rule: validation.bsld(rule) for rule in CORRECT_RULES}


def rows_of(name: str, origin: str, problem: BatchProblem, policies: list[object]) -> list[dict[str, object]]:
    """Compare policies learned on `origin` (one a seed) with rules and the planner on the test windows of a trace."""
    test, on_test, on_validation = rules_of(problem)
    baselines = {
        "chosen by mean": best_rule(CORRECT_RULES, on_validation, "mean"),
        "chosen by log": best_rule(CORRECT_RULES, on_validation, "log"),
        "hindsight": best_rule(CORRECT_RULES, on_test, "mean"),
        "planner": "planner",
    }
    table = np.array(list(on_test.values()))
    differing = {f"{unit:06d}" for unit in np.flatnonzero(table.max(axis=0) > table.min(axis=0) * (1 + 1e-12))}
    ours = as_sample([test.bsld(policy) for policy in policies], seeded=True)
    head = {"backfill": problem.scenario.backfill, "trace": name, "learned_on": origin}
    rows = []
    for role, rule in baselines.items():
        theirs = as_sample([on_test[rule]], seeded=False)
        found = compare_windows(ours, theirs, differing, generator(0, "batch-search", name, origin, role))
        rows.append({**head, "against": role, "rule": rule, **found})
    return rows


def main() -> None:
    """Learn on each trace, compare on each, and write the rows as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", nargs="+", default=["sdsc", "hpc2n", "lublin-1", "lublin-2"], choices=[*FILES, *MODELS])
    parser.add_argument("--others", nargs="*", default=[], choices=[*FILES, *MODELS], help="traces that are only tested on")
    parser.add_argument("--backfill", default="none", choices=("none", "legacy", "easy", "conservative"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument("--out", default=sys.stdout, help="CSV (default: print)")
    arguments = parser.parse_args()
    problems = {name: problem_of(name, arguments.backfill) for name in (*arguments.traces, *arguments.others)}
    rows = []
    for origin in arguments.traces:
        made = [learned(problems[origin], seed, arguments.generations) for seed in range(arguments.seeds)]
        print(f"{origin}: {', '.join(f'{seconds:.0f}' for _, seconds in made)} CPU s", file=sys.stderr)
        for name, problem in problems.items():
            rows += rows_of(name, origin, problem, [policy for policy, _ in made])
    pd.DataFrame(rows).round(4).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
