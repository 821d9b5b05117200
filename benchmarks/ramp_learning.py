"""What do learned policies block in the published setting of the ramp study? One CSV from the policies of a run of the
workflow.

    SCHEDLAB_DATA=DIR python benchmarks/ramp_learning.py results/full/ramp/policies [--exact] [--betas A B C D]
        [--episodes 40] [--first 0] [--seed 0] [--repaired] [--out FILE.csv]
    SCHEDLAB_DATA=DIR python benchmarks/ramp_learning.py --rules-only [the same options]

Every policy that was learned on published_a to published_d plays test episodes, from number `--first` on, drawn from
the root seed `--seed` (the 20 of the workflow come from 42, which no choice of a recipe has seen). It plays on the
compiled cluster, which blocks what the exact one does (test_ramp_compiled.py) in a tenth of the time, or with --exact
on the exact one; beside it stand fixed degrees (smaller ones where no block is free) and `lp_bound`, the least that any
policy could block. Without a folder these are alone. Compiled rollouts draw from a stream of their own. --rules-only:
the published baselines, on the exact cluster. --repaired: a cluster without the published defects, with which the
policies were learned. A line for each: mean blocking rate over seeds and episodes with its interval (two-level
bootstrap over seeds and episodes, as in summaries; empty where there are too few), and the mean of each seed; from the
exact cluster also the mean speed-up of completed jobs, and that of each seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from schedlab.config.contract import Policy, Unit
from schedlab.config.data_paths import find_data
from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation.statistics import estimate, sample
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.learners.afterstate.policy import (
    FUTURES,
    AfterstatePolicy,
    Candidate,
    learned_for,
    load,
    play,
)
from schedlab.studies.ramp.learners.afterstate.values import collect
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import published_scenario
from schedlab.studies.ramp.simulator.compiled import draw_futures, episode_arrivals, fixed_table
from schedlab.studies.ramp.simulator.lp_bound import LpBound

BASELINES = ("para_max", "para_min", "random")


def blocking(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of the CSV from scores of one metric (columns as evaluations have them)."""
    lines = []
    for (scenario, policy), rows in scores.groupby(["scenario", "policy"], sort=True):
        found = sample(rows.assign(trained_on=rows["kind"].map({"learned": scenario}).fillna("")))
        value = estimate(found, StatisticsSettings(), generator(0, "ramp learning", scenario, policy))
        line = {
            "scenario": scenario,
            "policy": policy,
            "seeds": value.seeds,
            "episodes": value.units,
            "blocking_rate": value.value,
            "low": value.ci_low,
            "high": value.ci_high,
            "by_seed": " ".join(f"{mean:.4f}" for mean in found.values.mean(axis=1)),
        }
        if "speedup" in rows:
            means = rows.groupby("policy_seed")["speedup"].mean().dropna()  # the bound has none
            line |= {"speedup": means.mean(), "speedup_by_seed": " ".join(f"{mean:.3f}" for mean in means)}
        lines.append(line)
    return pd.DataFrame(lines).sort_values(["scenario", "blocking_rate", "policy"], ignore_index=True)


def setting(
    beta: str, episodes: int, first: int = 0, root: int = 0, compat: bool = True
) -> tuple[RampProblem, Sequence[Unit]]:
    """Return the published problem of a distribution of beta, and its test episodes from a number on, drawn from a root
    seed.
    """
    scenario = published_scenario(beta, compat, episodes={"test": first + episodes}).model_copy(update={"seed": root})
    problem = RampProblem(scenario, read_graphs(find_data("graphs")))
    return problem, problem.units("test")[first:]


Scores = Sequence[
    dict[str, float]
]  # an episode each: its blocking rate (value) and, from the exact cluster, the jobs' mean speed-up


def lines(
    beta: str, policy: str, kind: str, seed: int, units: Sequence[Unit], scores: Scores
) -> list[dict[str, object]]:
    """Return the scores of a policy on episodes, as evaluations have them."""
    head = {"scenario": f"published_{beta.lower()}", "policy": policy, "kind": kind, "policy_seed": seed, "weight": 1.0}
    return [{**head, "unit": unit.id, "block": unit.block, **found} for unit, found in zip(units, scores, strict=True)]


def played(problem: RampProblem, policy: Policy, units: Sequence[Unit]) -> Scores:
    """Return what a policy comes to on the exact cluster."""
    found = [problem.rollout(policy, unit).scores for unit in units]
    return [{"value": scores["blocking_rate"], "speedup": scores.get("speedup", float("nan"))} for scores in found]


def score(
    beta: str, problem: RampProblem, units: Sequence[Unit], folder: Path | None, exact: bool = False
) -> pd.DataFrame:
    """Return the scores of fixed degrees, of the policies of a folder and of the bound on test episodes of one
    distribution of beta.
    """
    (tables, outlook), stop = problem.compiled, problem.scenario.episodes.end
    arrivals = [episode_arrivals(problem.simulation, tables, unit.seed) for unit in units]

    def scores_of(kept: Candidate, seed: int) -> Scores:
        if exact:
            return played(problem, AfterstatePolicy(kept, tables, outlook, seed), units)
        if kept.form == "rollouts":
            random = generator(seed, "ramp learning", "rollouts", beta)
            rollouts = kept.rollouts(draw_futures(problem.simulation, tables, random, FUTURES), kept.jobs)
            accepted = [collect(tables, outlook, rollouts, each, stop, random, kept.samples)[1] for each in arrivals]
        else:
            accepted = [play(kept, tables, outlook, each, stop) for each in arrivals]
        return [
            {"value": (len(each.times) - count) / each.arrived} for each, count in zip(arrivals, accepted, strict=True)
        ]

    found = []
    for degree in tables.actions.tolist():
        found += lines(
            beta, f"fixed-{degree}", "rule", 0, units, scores_of(Candidate("table", fixed_table(tables, degree)), 0)
        )
    for path in sorted(folder.glob(f"*-published-{beta.lower()}/seed-*/policy.zip")) if folder else []:
        policy, seed = (
            path.parent.parent.name.removesuffix(f"-published-{beta.lower()}"),
            int(path.parent.name.removeprefix("seed-")),
        )
        scores = scores_of(load(path, tables, outlook, learned_for(problem.simulation)), seed)
        found += lines(beta, policy, "learned", seed, units, scores)
    bound = LpBound(problem)
    return pd.DataFrame(
        found
        + lines(
            beta, "lp_bound", "oracle", 0, units, [{"value": bound.scores(unit)["blocking_rate"]} for unit in units]
        )
    )


def score_rules(beta: str, problem: RampProblem, units: Sequence[Unit]) -> pd.DataFrame:
    """Return the scores of the published baselines, which decide on the exact cluster."""
    found = []
    for name in BASELINES:
        found += lines(beta, name, "rule", 0, units, played(problem, RULE_MAKERS[name]({}, problem, 0), units))
    return pd.DataFrame(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        help="policies of a run of the workflow; none: fixed degrees and the bound alone",
    )
    parser.add_argument("--betas", nargs="+", default=list("ABCD"), choices=list("ABCD"))
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="number of the first test episode")
    parser.add_argument(
        "--seed", type=int, default=0, help="root seed that test episodes are drawn from (the workflow's: 42)"
    )
    parser.add_argument("--exact", action="store_true", help="play on the exact cluster")
    parser.add_argument("--repaired", action="store_true", help="play without the published defects")
    parser.add_argument("--rules-only", action="store_true", help="the published baselines alone, on the exact cluster")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.folder and not given.folder.is_dir():
        raise SystemExit(
            str(UserError("no such folder", where=str(given.folder), expected="results/full/ramp/policies of a run"))
        )
    settings = {
        beta: setting(beta, given.episodes, given.first, given.seed, not given.repaired) for beta in given.betas
    }
    if given.rules_only:
        scores = [score_rules(beta, *played_on) for beta, played_on in settings.items()]
    else:
        scores = [score(beta, *played_on, given.folder, given.exact) for beta, played_on in settings.items()]
    blocking(pd.concat(scores)).to_csv(given.out or sys.stdout, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
