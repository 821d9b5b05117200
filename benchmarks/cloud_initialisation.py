"""Episodes that REINFORCE needs from each beginning: until its most probable actions bring 95 % of the cold start's
final gain over random actions, on scenarios as conf/ has them at a scale.

    PYTHONPATH=src python benchmarks/cloud_initialisation.py cifar10 imagenet squad movielens --seeds 0 1 --out
        table.csv
    PYTHONPATH=src python benchmarks/cloud_initialisation.py cifar10 imagenet movielens squad --straight --out table.csv

A row for each scenario, seed, beginning and preference; printed: means of the preferences, and how much less than the
cold start's. With
--straight nothing is learned: a row for each scenario, beginning and preference, with the regret of going straight to
what the beginning points at and staying there.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

from schedlab.config import experiment
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.runtime import freeze
from schedlab.stages.studies import find_study
from schedlab.studies.cloud.figures.ablations import episodes_until
from schedlab.studies.cloud.learners.initialisation import guides
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner
from schedlab.studies.cloud.prepare import objectives_of, scenario_of
from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.rules.oracle import objective_of_staying

MODES = ("cold", "similar", "historical", "baseline")
COLUMNS = ("scenario", "seed", "beginning", "preference", "episodes", "probed_intervals")
STRAIGHT = ("scenario", "beginning", "preference", "regret")
CURVE = "greedy objective "


def problem_of(loaded: experiment.Experiment, name: str) -> CloudProblem:
    """Return a scenario whose job's step times are pinned, with its oracle."""
    scenario = scenario_of(freeze.problem_part(loaded, "cloud", name))
    problem = CloudProblem(scenario, scenario.job.step.parameters(), {})
    problem.oracle = {preference: objectives_of(problem, preference) for preference in scenario.preferences}
    return problem


def points_of(
    problem: CloudProblem, name: str, mode: str, seed: int, episodes: int
) -> dict[str, list[tuple[float, float]]]:
    """Learn from a beginning; returns for each preference (episodes, objective of the most probable actions)."""
    params = {"initialisation": mode, "record_every": 1}
    spec = PolicySpec("learned", "learned", "reinforce", params, train_on=(Phase((name,), episodes),))
    found: dict[str, list[tuple[float, float]]] = {preference: [] for preference in problem.scenario.preferences}

    def curve(metric: str, value: float, episode: int, **place: object) -> None:
        del place
        if metric.startswith(CURVE):
            found[metric.removeprefix(CURVE)].append((episode, value))

    with tempfile.TemporaryDirectory() as folder:
        ReinforceLearner().learn(
            {name: problem}, spec, seed, LearnPaths(None, Path(folder) / "policy.zip", Path(folder)), curve
        )
    return found


def rows_of(problem: CloudProblem, name: str, seed: int, episodes: int) -> list[tuple]:
    """Return the rows of a scenario and seed; a count that the episodes did not reach is left empty."""
    found = {mode: points_of(problem, name, mode, seed, episodes) for mode in MODES}
    probed = {mode: guides(problem, mode).intervals for mode in MODES}
    rows = []
    for mode in MODES:
        for preference, points in found[mode].items():
            random, final = problem.oracle[preference]["random"], found["cold"][preference][-1][1]
            needed = episodes_until(points, random, final)
            rows.append((name, seed, mode, preference, "" if needed is None else f"{needed:g}", probed[mode]))
    return rows


def told(rows: list[tuple]) -> list[str]:
    """Return a line a beginning: the mean of preferences (reached ones), and the change against the cold start."""
    lines, cold = [], 0.0
    for mode in MODES:
        needed = [float(row[4]) for row in rows if row[2] == mode and row[4]]
        mean = float(np.mean(needed)) if needed else float("nan")
        cold = cold or mean
        never = sum(row[2] == mode for row in rows) - len(needed)
        lines.append(
            f"{rows[0][0]} seed {rows[0][1]} {mode}: {mean:,.0f} episodes, {100 * (mean / cold - 1):+.0f} %, {never} "
            "never"
        )
    return lines


def straight_regrets(problem: CloudProblem, mode: str) -> dict[str, float]:
    """Return for each preference the regret of going straight to what a beginning points at, and staying."""
    found = {}
    for preference, target in guides(problem, mode).targets.items():
        oracle = problem.oracle[preference]
        staying = objective_of_staying(problem.replay, weights_of(preference))[target]
        found[preference] = float((staying - oracle["dynamic"]) / (oracle["random"] - oracle["dynamic"]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="+", help="files of conf/scenario/cloud")
    parser.add_argument("--scale", default="small")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--episodes", type=int, default=4800, help="of each preference")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--straight", action="store_true")
    given = parser.parse_args()
    loaded = experiment.load("conf", given.scale, find_study)
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(STRAIGHT if given.straight else COLUMNS)
        for name in given.scenarios:
            problem = problem_of(loaded, name)
            if given.straight:
                for mode in MODES[1:]:
                    writer.writerows(
                        (name, mode, key, f"{regret:z.6f}") for key, regret in straight_regrets(problem, mode).items()
                    )
                continue
            for seed in given.seeds:
                rows = rows_of(problem, name, seed, given.episodes)
                writer.writerows(rows)
                file.flush()
                print(*told(rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
