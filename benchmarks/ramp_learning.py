"""What do learned policies block in the published setting of the ramp study? One CSV from the policies of a run of the workflow.

    SCHEDLAB_DATA=DIR python benchmarks/ramp_learning.py results/full/ramp/policies [--betas A B C D] [--episodes 20] [--out FILE.csv]

Every policy that was learned on published_a to published_d plays the test episodes of the workflow on the compiled cluster, which accepts
what the exact one does (test_ramp_learning.py) in a tenth of the time; beside them stand fixed degrees (smaller ones where no block is
free) and `lp_bound`, the least that any policy could block. Rollouts draw here from a stream of their own.
A line for each: mean blocking rate over seeds and episodes with its interval (two-level bootstrap over seeds and episodes, as in summaries;
empty where there are too few), and the mean of each seed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

from schedlab.config.data_paths import find_data
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation.statistics import estimate, sample
from schedlab.studies.ramp.afterstate import collect
from schedlab.studies.ramp.afterstate_policy import FUTURES, Kept, load, play
from schedlab.studies.ramp.fast import draw_futures, episode_arrivals, fixed_table
from schedlab.studies.ramp.graph_files import read_graphs
from schedlab.studies.ramp.lp_bound import LpBound
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.published import published_scenario


def blocking(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of the CSV from scores of one metric (columns as evaluations have them)."""
    lines = []
    for (scenario, policy), rows in scores.groupby(["scenario", "policy"], sort=True):
        found = sample(rows)
        value = estimate(found, StatisticsSettings(), generator(0, "ramp learning", scenario, policy))
        lines.append(
            {
                "scenario": scenario,
                "policy": policy,
                "seeds": value.seeds,
                "episodes": value.units,
                "blocking_rate": value.value,
                "low": value.ci_low,
                "high": value.ci_high,
                "by_seed": " ".join(f"{mean:.4f}" for mean in found.values.mean(axis=1)),
            }
        )
    return pd.DataFrame(lines).sort_values(["scenario", "blocking_rate", "policy"], ignore_index=True)


def score(beta: str, folder: Path, episodes: int) -> pd.DataFrame:
    """Return the scores of all policies on the test episodes of one distribution of beta."""
    scenario = published_scenario(beta, compat=True, episodes={"test": episodes})
    problem = RampProblem(scenario, read_graphs(find_data("graphs")))
    tables, outlook = problem.fast
    units, stop, name = problem.units("test"), scenario.episodes.end, f"published_{beta.lower()}"
    arrivals = [episode_arrivals(problem.simulation, tables, unit.seed) for unit in units]
    arrived, lines = 1 + len(arrivals[0].times), []

    def add(policy: str, kind: str, seed: int, blocked: list[float]) -> None:
        head = {"scenario": name, "policy": policy, "kind": kind, "policy_seed": seed, "weight": 1.0}
        lines.extend({**head, "unit": unit.id, "block": unit.block, "value": value} for unit, value in zip(units, blocked, strict=True))

    def rate(accepted: float) -> float:
        return (arrived - 1 - accepted) / arrived

    for degree in tables.actions.tolist():
        kept = Kept("table", fixed_table(tables, degree))
        add(f"fixed-{degree}", "rule", 0, [rate(play(kept, tables, outlook, each, stop)) for each in arrivals])
    for path in sorted(folder.glob(f"*-published-{beta.lower()}/seed-*/policy.zip")):
        policy, seed = path.parent.parent.name.removesuffix(f"-published-{beta.lower()}"), int(path.parent.name.removeprefix("seed-"))
        kept = load(path, tables, outlook)
        random = generator(seed, "ramp learning", "rollouts", beta)
        if kept.form == "rollouts":
            rollouts = kept.rollouts(draw_futures(problem.simulation, tables, random, FUTURES), kept.jobs)
            found = [collect(tables, outlook, rollouts, each, stop, random, kept.samples)[1] for each in arrivals]
        else:
            found = [play(kept, tables, outlook, each, stop) for each in arrivals]
        add(policy, "learned", seed, [rate(accepted) for accepted in found])
    bound = LpBound(problem)
    add("lp_bound", "oracle", 0, [bound.scores(unit)["blocking_rate"] for unit in units])
    return pd.DataFrame(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--betas", nargs="+", default=list("ABCD"), choices=list("ABCD"))
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    made = blocking(pd.concat([score(beta, given.folder, given.episodes) for beta in given.betas]))
    made.to_csv(given.out or sys.stdout, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
