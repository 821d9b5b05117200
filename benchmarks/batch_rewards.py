"""The dissertation's rewards compared: what the workflow learned under each, seed by seed and with intervals, one CSV.

    learned=results/full/batch/policies
    snakemake --cores 1 --config scale=full --
        $learned/ppo-reward-{episodic,direct,sigmoid-100,sigmoid-50}/seed-{0..4}/policy.zip
    python benchmarks/batch_rewards.py results/full/batch [--out FILE.csv]

Validation: minus the mean bounded slowdown of the validation windows, whatever is rewarded, the best score of a seed
and its last; test: the mean bounded slowdown of the test windows under the best parameters. The rows `all` are means of
the seeds with 95 % intervals (validation: over seeds; test, and its ratios to f1 and to `episodic` on the same windows:
over seeds and windows) and their median. All windows of a policy are stepped side by side, which takes far less time
than the scenario `lublin_rewards` and scores the same.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from schedlab.config.plugins import load_object
from schedlab.config.runtime.parts import read_part
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import tables
from schedlab.evaluation.statistics import Sample, estimate, sample
from schedlab.studies.batch.figures.comparison import METRIC, comparisons
from schedlab.studies.batch.learners.stock import LearnedPolicy
from schedlab.studies.batch.metrics import measures
from schedlab.studies.batch.problem import BatchProblem, RulePolicy
from schedlab.studies.batch.simulator.stepper import Drawn, Stepper
from schedlab.studies.batch.study import STUDY, load_problem
from schedlab.studies.batch.windows import first_job

REWARDS = ("episodic", "direct", "sigmoid-100", "sigmoid-50")
RULE = "f1"


def problem_of(folder: Path) -> BatchProblem:
    """Return the scenario of the rewards at a scale, on the trace that was learned on."""
    values = read_part(folder / "lublin_rewards/config/evaluate-learned.yaml")["problem"]
    made = folder / "inputs" / f"make_trace-{values['upstream']['make_trace'][:12]}"
    return load_problem(values, {"trace": made / "trace.swf.gz", "report": made / "report.json"})


def tested(problem: BatchProblem, policy: LearnedPolicy) -> np.ndarray:
    """Return the mean bounded slowdown of each test window under a policy's likeliest choices."""
    units, network = problem.units("test"), policy.policy.policy
    starts = range(len(problem.jobs) - problem.scenario.windows.length + 1)
    stepper = Stepper(problem.task(starts, policy.environment), len(units))
    for place, unit in enumerate(units):
        stepper.open(place, Drawn(first_job(unit), problem.scenario.windows.length, np.random.default_rng(unit.seed)))
    while not stepper.ended.all():
        going, rows = ~stepper.ended, np.zeros(len(units), dtype=np.int64)
        masks = stepper.masks[going]
        with torch.no_grad():
            seen, _ = network.obs_to_tensor(stepper.observations[going])
            logits = network.get_distribution(seen, action_masks=masks).distribution.logits.double().numpy()
        rows[going] = np.where(masks.astype(bool), logits, -np.inf).argmax(axis=1)
        stepper.step(rows)
    return np.array([measures(stepper.schedule(place), problem.machine)[METRIC] for place in range(len(units))])


def rows_of(problem: BatchProblem, policy: str, seed: int, values: np.ndarray) -> pd.DataFrame:
    """Return one policy's scores as rows of the common table."""
    units = [unit.id for unit in problem.units("test")]
    head = {
        "scenario": "lublin",
        "policy": policy,
        "kind": "rule" if policy == RULE else "learned",
        "policy_seed": seed,
    }
    return pd.DataFrame(
        {**head, "split": "test", "metric": METRIC, "unit": units, "block": units, "value": values, "weight": 1.0}
    )


def by_seed(folder: Path, policy: str, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row a seed."""
    rows = []
    for seed, tested in scores[scores["policy"] == policy].groupby("policy_seed"):
        learned = folder / "policies" / policy / f"seed-{seed}"
        curve = tables.read(tables.CURVES, learned / "curve.parquet")
        told = curve[(curve["split"] == "validation") & (curve["metric"] == "return")].sort_values("step")["value"]
        cost = pd.read_csv(learned / "benchmarks/learn.tsv", sep="\t")["cpu_time"].iloc[0]
        row = {"seed": str(seed), "decisions": int(curve["step"].max()), "cpu_seconds": round(cost)}
        rows.append(
            row | {"validation_best": told.max(), "validation_last": told.iloc[-1], "test": tested["value"].mean()}
        )
    return pd.DataFrame(rows)


def of_all(policy: str, seeds: pd.DataFrame, scores: pd.DataFrame) -> dict[str, float | str]:
    """Return the row of all seeds."""
    row: dict[str, float | str] = {
        "seed": "all",
        "decisions": seeds["decisions"].max(),
        "cpu_seconds": seeds["cpu_seconds"].median(),
    }
    for measure in ("validation_best", "validation_last", "test"):
        values = seeds[[measure]].to_numpy(float)
        once = Sample(values, np.ones_like(values), np.zeros(1, int), tuple(range(len(values))), ("all",), True)
        found = sample(scores[scores["policy"] == policy]) if measure == "test" else once
        told = estimate(found, StatisticsSettings(), generator(0, "batch-rewards", policy, measure))
        row |= {measure: told.value, f"{measure}_low": told.ci_low, f"{measure}_high": told.ci_high}
        row[f"{measure}_median"] = float(np.median(values))
    others = {RULE: RULE, "episodic": "ppo-reward-episodic"}
    for name, other in others.items():
        if other != policy:
            against = next(comparisons(scores, policy, (other,)))
            row |= {f"to_{name}" + what: against[f"ratio{what}"] for what in ("", "_low", "_high")}
            row |= {f"{name}_mean": against["baseline_mean"], f"won_{name}": against["win_rate"]}
    return row


def main() -> None:
    """Write the rows of every reward."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="results/SCALE/batch")
    parser.add_argument("--out", default=sys.stdout, help="CSV (default: print)")
    arguments = parser.parse_args()
    problem = problem_of(arguments.folder)
    known = np.array([problem.rollout(RulePolicy(RULE), unit).scores[METRIC] for unit in problem.units("test")])
    scored = [rows_of(problem, RULE, 0, known)]
    for policy in (f"ppo-reward-{reward}" for reward in REWARDS):
        for seed in sorted(
            int(path.name.removeprefix("seed-")) for path in (arguments.folder / "policies" / policy).glob("seed-*")
        ):
            checkpoint = arguments.folder / "policies" / policy / f"seed-{seed}/policy.zip"
            learned = load_object(STUDY.learners["maskable_ppo"])().load(checkpoint, problem)
            scored.append(rows_of(problem, policy, seed, tested(problem, learned)))
            print(f"{policy}, seed {seed}: {scored[-1]['value'].mean():.1f}", file=sys.stderr, flush=True)
    scores = pd.concat(scored, ignore_index=True)
    rows = []
    for reward in REWARDS:
        policy = f"ppo-reward-{reward}"
        seeds = by_seed(arguments.folder, policy, scores)
        together = pd.concat([seeds, pd.DataFrame([of_all(policy, seeds, scores)])])
        rows.append(together.assign(reward=reward).set_index("reward"))
    pd.concat(rows).round(3).to_csv(arguments.out)


if __name__ == "__main__":
    main()
