"""A small recorded search for the values of the ramp study's DQN: random draws, successive halving on validation
episodes.

    python benchmarks/ramp_tuning.py [--graphs DIR] [--beta A] [--configurations 12] [--rungs 2] [--steps 4000] [--seed
        0]
        [--out configurations.csv] [--curves resources/measured/ramp_tuning.csv]

The published setting with its defects. Each rung learns its configurations anew, twice as long as the rung before,
and keeps the better
half. The space is the paper's as far as a short run can use it: learning rates and updates
of the target network that change nothing within the budget are left out, shorter horizons are added. The table has a
row for each configuration and for
rules, the curves (which the figure `tuning` reads) one for each validation of each run.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedlab.config.contract import LearnPaths, Phase, PolicySpec, Unit
from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.learners.dqn import RampDQNLearner
from schedlab.studies.ramp.learners.stock import SeenProblem
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import published_scenario

FIXED = {
    "actors": 4,
    "train_freq": 16,
    "gradient_steps": 16,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 1000,
}
SPACE: dict[str, list[Any]] = {
    "gamma": [0.9, 0.95, 0.99, 0.993, 0.997, 0.999],
    "n_steps": [1, 3, 5, 10],
    "target_update_interval": [300, 1000, 3000],
    "alpha": [0.1, 0.4, 0.6, 0.9],
    "beta": [0.1, 0.4, 0.6, 0.9],
    "width": [64, 128, 256],
    "final_epsilon": [0.01, 0.05, 0.1],
}
LEARNING_RATES = (1e-5, 1e-3)
RULES: dict[str, tuple[str, dict[str, int]]] = {"para_max": ("para_max", {}), "fixed_4": ("fixed", {"degree": 4})}


def draw(random: np.random.Generator) -> dict[str, Any]:
    """Return a configuration: each value drawn alike, the learning rate on a logarithmic scale."""
    drawn = {name: values[int(random.integers(len(values)))] for name, values in SPACE.items()}
    low, high = (math.log10(rate) for rate in LEARNING_RATES)
    return {"learning_rate": float(f"{10 ** random.uniform(low, high):.3g}"), **drawn}


def blocked_share(total: float, decisions: int) -> float:
    """Return the share of decisions that blocked a job, from their rewards of 1 and -1."""
    return (1 - total / decisions) / 2


def learn(problem: RampProblem, values: dict[str, Any], steps: int, points: int, seed: int) -> list[tuple[int, float]]:
    """Learn with a configuration; return (decisions, share of validation decisions that block) along the way."""
    arguments = {name: value for name, value in values.items() if name != "width"}
    width = values["width"]
    params = {**FIXED, **arguments, "net_arch": [width], "head_arch": [width // 2], "final_beta": 1.0}
    params |= {"exploration_steps": steps // 2, "validate_every": steps // points, "environment": {"mask": "blocks"}}
    spec = PolicySpec("dqn", "learned", "prioritised_dqn", params, train_on=(Phase(("tuned",), steps),))
    decisions = len(decided(problem, problem.units("validation")[0]))
    curve: list[tuple[int, float]] = []

    def record(metric: str, value: float, *, step: int, split: str = "train", **_: Any) -> None:
        if metric == "return" and split == "validation":
            curve.append((step, blocked_share(value, decisions)))

    with tempfile.TemporaryDirectory() as folder:
        paths = LearnPaths(None, Path(folder) / "dqn.zip", Path(folder) / "progress")
        RampDQNLearner().learn({"tuned": problem}, spec, seed, paths, record)
    return curve


@cache
def problem_of(graphs: str | None, beta: str, validation: int) -> RampProblem:
    """Return the published problem, in each process one that keeps the durations it has computed."""
    scenario = published_scenario(beta, compat=True, episodes={"validation": validation})
    return RampProblem(scenario, read_graphs(graphs or find_graphs("graphs")))


def timed(
    run: tuple[tuple[str | None, str, int], dict[str, Any], int, int, int],
) -> tuple[list[tuple[int, float]], float]:
    """Return what `learn` does on a problem, and its CPU time (s)."""
    began = time.process_time()
    return learn(problem_of(*run[0]), *run[1:]), time.process_time() - began


def decided(
    problem: RampProblem, unit: Unit, rule: str = "para_max", params: dict[str, int] | None = None
) -> list[float]:
    """Return the rewards of an episode under a rule."""
    env = SeenProblem(problem, EnvironmentSettings()).env(unit, 0)
    policy, rewards, over = RULE_MAKERS[rule](params or {}, problem, 0), [], False
    policy.reset(unit)
    env.reset(seed=unit.seed)
    while not over:
        _, reward, over, _, _ = env.step(policy.decide(env.simulation, env.action_masks().astype(np.int16)))
        rewards.append(reward)
    return rewards


def main() -> None:
    """Search and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", help="folder of graph files (default: PipeDream's in SCHEDLAB_DATA)")
    parser.add_argument("--beta", default="A", choices=("A", "B", "C", "D"))
    parser.add_argument("--configurations", type=int, default=12)
    parser.add_argument("--rungs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4000, help="decisions of the first rung")
    parser.add_argument("--validation", type=int, default=3, help="episodes that configurations are judged on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="runs side by side")
    parser.add_argument("--out", default=sys.stdout, help="CSV of configurations (default: print)")
    parser.add_argument("--curves", default=sys.stdout, help="CSV of validations (default: print)")
    arguments = parser.parse_args()
    about = arguments.graphs, arguments.beta, arguments.validation
    problem = problem_of(*about)
    rows: list[dict[str, Any]] = []
    for name, (rule, params) in RULES.items():
        episodes = [decided(problem, unit, rule, params) for unit in problem.units("validation")]
        rows.append(
            {
                "configuration": name,
                "blocked": float(np.mean([blocked_share(sum(each), len(each)) for each in episodes])),
            }
        )
    random = generator(arguments.seed, "ramp", "tuning")
    left = {f"{number:02d}": draw(random) for number in range(arguments.configurations)}
    pool = ProcessPoolExecutor(arguments.processes)
    for rung in range(arguments.rungs):
        scores, steps, points = {}, arguments.steps * 2**rung, 3 * 2**rung
        runs = [
            (about, values, steps, points, derive_seed(arguments.seed, "ramp", "tuning", name))
            for name, values in left.items()
        ]
        for (name, values), (curve, spent) in zip(left.items(), pool.map(timed, runs), strict=True):
            rows += [
                {"configuration": name, "rung": rung, "step": step, "blocked": share, **values} for step, share in curve
            ]
            scores[name] = min(share for _, share in curve)
            print(f"rung {rung}, {name}: {scores[name]:.4f}, {spent:.0f} CPU s, {values}", file=sys.stderr, flush=True)
        kept = sorted(left, key=lambda name: (scores[name], name))[: (len(left) + 1) // 2]
        left = {name: left[name] for name in kept}
        if (
            rung == arguments.rungs - 1 or arguments.out is not sys.stdout
        ):  # what is done is kept, though later rungs be interrupted
            table, curves = tables(pd.DataFrame(rows))
            table.to_csv(arguments.out, index=False, lineterminator="\n")
            curves.to_csv(arguments.curves, index=False, lineterminator="\n")


def tables(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return (a row a configuration or rule: its values and the least it blocked on each rung it reached; a row a
    validation).
    """
    rows = rows.round({"blocked": 4})
    ran = rows["rung"].notna()
    names = ["learning_rate", *SPACE]
    least = (
        rows[ran]
        .astype({"rung": int})
        .pivot_table(index="configuration", columns="rung", values="blocked", aggfunc="min")
    )
    least.columns = [f"blocked_rung_{rung}" for rung in least.columns]
    found = rows[ran].groupby("configuration")[names].first().join(least).reset_index()
    rules = rows.loc[~ran, ["configuration", "blocked"]].rename(columns={"blocked": least.columns[0]})
    whole = dict.fromkeys(("n_steps", "target_update_interval", "width"), "Int64")
    curves = rows.loc[:, ["configuration", "rung", "step", "blocked"]].astype({"rung": "Int64", "step": "Int64"})
    return pd.concat([rules, found])[[*found.columns]].astype(whole), curves


if __name__ == "__main__":
    main()
