"""What the objectives of the hetero study favour, and what the variation of the queue shows: tables of a page.

    python docs/generate/hetero_choices.py [--objectives FILE.csv] [--sensitivities FILE.csv]

300 jobs on Gaia. First table: for each objective the pair (of all 36, each played throughout) with the largest
time-weighted sum of rewards, and what users and operators get from it. Second table: for each queue sensitivity the
percentage of decisions at which the variation of the queue is 0.5 (as long as before), at an end (0 or 1), and how many
values it takes.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import pandas as pd

from schedlab.platforms.settings import PlatformSettings
from schedlab.studies.hetero.env.objectives import OBJECTIVES
from schedlab.studies.hetero.env.settings import ALL_PAIRS, DecisionSettings
from schedlab.studies.hetero.simulator.episode import Cluster, Episode, Jobs, make_cluster, make_jobs
from schedlab.workloads.estimates import EstimateSettings
from schedlab.workloads.lublin import LublinSettings
from schedlab.workloads.prepare import make_batsim
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.to_batsim import BatsimSettings

JOBS, LOAD, PAIR = 300, 1.2, "shortest-high_gflops"
SENSITIVITIES = (0.01, 0.05, 0.2, 1.0, 5.0)
HOUR, GIGA = 3600.0, 1e9


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objectives", default=sys.stdout, metavar="FILE.csv")
    parser.add_argument("--sensitivities", default=sys.stdout, metavar="FILE.csv")
    given = parser.parse_args()
    cluster, jobs = inputs()
    rows: list[dict[str, Any]] = []
    for objective in OBJECTIVES:
        played = {pair: play(cluster, jobs, pair, objective) for pair in ALL_PAIRS}
        best = max(played, key=lambda pair: played[pair][0])
        scores = played[best][1]
        rows.append(
            {
                "objective": objective,
                "best_pair": best,
                "mean_slowdown": round(scores["mean_slowdown"], 1),
                "mean_waiting_time_h": round(scores["mean_waiting_time"] / HOUR, 1),
                "makespan_h": round(scores["makespan"] / HOUR),
                "energy_gj": round(scores["consumed_joules"] / GIGA, 2),
            }
        )
    pd.DataFrame(rows).to_csv(given.objectives, index=False, lineterminator="\n")
    rows = []
    for sensitivity in SENSITIVITIES:
        seen = variations(cluster, jobs, sensitivity)
        at_half, at_ends = (100 * sum(value in wanted for value in seen) / len(seen) for wanted in ((0.5,), (0.0, 1.0)))
        shares = {"percent_at_half": round(at_half, 1), "percent_at_ends": round(at_ends, 1)}
        rows.append({"queue_sensitivity": sensitivity, **shares, "values": len(set(seen))})
    pd.DataFrame(rows).to_csv(given.sensitivities, index=False, lineterminator="\n")


def inputs() -> tuple[Cluster, Jobs]:
    """Return the cluster Gaia and jobs of the model of Lublin and Feitelson that are drawn for it."""
    cluster = make_cluster(PlatformSettings(name="gaia", file="gaia"))
    model = LublinSettings(
        jobs=JOBS, processors=cluster.hierarchy.cores, load=LOAD, estimates=EstimateSettings(model="menu")
    )
    batsim = BatsimSettings(runtime="trace", missing_memory=(500, 1000, 2000, 4000))
    settings = WorkloadSettings(name="choices", source="lublin", seed=1, lublin=model, batsim=batsim)
    workload, _ = make_batsim(settings, cluster.hierarchy)
    return cluster, make_jobs(workload)


def play(cluster: Cluster, jobs: Jobs, pair: str, objective: str) -> tuple[float, dict[str, float]]:
    """Return the time-weighted sum of rewards of a pair and Batsim's totals."""
    episode = Episode(
        cluster, jobs, DecisionSettings(selection=(pair,), void=False, objective=objective, time_weighted=True), 0
    )
    while episode.advance():
        episode.decide(0)
    return sum(episode.history.rewards), episode.scores()


def variations(cluster: Cluster, jobs: Jobs, sensitivity: float) -> list[float]:
    """Return the variation of the queue at each decision."""
    settings = DecisionSettings(selection=(PAIR,), void=False, observation="minimal", queue_sensitivity=sensitivity)
    episode, seen = Episode(cluster, jobs, settings, 0), []
    while episode.advance():
        seen.append(float(episode.observe()[-1]))
        episode.decide(0)
    return seen


if __name__ == "__main__":
    main()
