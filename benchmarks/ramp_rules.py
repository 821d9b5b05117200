"""What rules block in the published setting of the ramp study: with each of eight defects alone, by load, why, and by
quantum. One CSV.

    SCHEDLAB_DATA=DIR python benchmarks/ramp_rules.py [--out FILE.csv]

DIR holds the five PipeDream graphs (graphs/); the part `quantum` plays the traced ones that we ship. A line for each
part, setting, distribution of beta and rule: means over episodes of the blocking rate, and of the shares of the blocked
jobs that found too few free workers for any degree, had no free block, or exceeded their limit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from schedlab.config.data_paths import find_data
from schedlab.config.schema import merged
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.rules import rule_named
from schedlab.studies.ramp.scenario import BETAS, ON_SHIPPED, SHIPPED, RampScenario, published_scenario
from schedlab.studies.ramp.simulator.jobs import NO_PLACEMENT, REJECTED, TOO_SLOW
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode

SEEDS = 3
# docs/errata.md describes the others; their effects alone were not measured here.
DEFECTS = (
    "bandwidth_shared_twice",
    "sizes_from_memory",
    "free_inside_racks",
    "mutual_deps_count",
    "ticks_by_priority",
    "memo_by_degree",
    "running_jobs_blocked",
    "sinks_unjoined",
)
IN_MS = {
    "jobs": {"time_unit": "ms", "interarrival": {"kind": "fixed", "value": 1.0}},
    "management": {"quantum": 1e-5},
    "episodes": {"end": 1e3},
}
GAPS = (50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 2000, 3000, 6000, 12000)
QUANTA = {
    "0.01, kept": {},
    "0.01, rounded down": ON_SHIPPED,
    "0.00029, kept": {"management": {"quantum": 0.00029}},
}


def settings() -> Iterator[tuple[dict[str, str], RampScenario, tuple[str, ...], int]]:
    """Yield what a line is called, its scenario, its rules, and how many episodes are played."""
    both = ("para_max", "para_min")
    for unit, changes in (("s", {}), ("ms", IN_MS)):
        for defect in ("none", *DEFECTS, "all"):
            alone = {"legacy": {defect: True}} if defect in DEFECTS else {}
            scenario = published_scenario("A", defect == "all", **merged(changes, alone))
            yield {"part": f"defects, {unit}", "setting": defect, "beta": "A"}, scenario, both, SEEDS
    for gap in GAPS:
        scenario = published_scenario("A", compat=True, jobs={"interarrival": {"kind": "fixed", "value": float(gap)}})
        yield {"part": "loads", "setting": str(gap), "beta": "A"}, scenario, both, SEEDS if gap > 200 else 1
    for beta in BETAS:
        for mask, rules in (("degrees", (*both, "random")), ("blocks", ("para_min",))):
            scenario = published_scenario(beta, compat=True, management={"mask": mask})
            yield {"part": "masks", "setting": mask, "beta": beta}, scenario, rules, SEEDS
    for quantum, changes in QUANTA.items():
        scenario = published_scenario("A", compat=False, **changes)
        yield {"part": "quantum", "setting": quantum, "beta": "A"}, scenario, ("para_max", "fixed_8", "fixed_4"), 1


def play(simulation: Simulation, rule: str, episodes: int) -> dict[str, Any]:
    """Return the columns of a line that are measured."""
    found = []
    for seed in range(episodes):
        rate = run_episode(simulation, rule_named(rule), seed)["blocking_rate"]
        blocked = simulation.cluster.record.blocked
        forced = sum(one.cause == REJECTED and simulation.decided[one.job.index][1] == 0 for one in blocked)
        counts = {
            "too_few_workers": forced,
            "no_free_block": sum(one.cause == NO_PLACEMENT for one in blocked),
            "limit_exceeded": sum(one.cause == TOO_SLOW for one in blocked),
        }
        found.append({"blocking_rate": rate} | {name: count / max(len(blocked), 1) for name, count in counts.items()})
    return {"rule": rule, "episodes": episodes} | pd.DataFrame(found).mean().round(5).to_dict()


def main() -> None:
    """Play all settings and write the lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/results/ramp_rules.csv"))
    out = parser.parse_args().out
    published, traced, lines = read_graphs(find_data("graphs")), read_graphs(find_graphs(SHIPPED)), []
    for names, scenario, rules, episodes in settings():
        simulation = Simulation(scenario, traced if names["part"] == "quantum" else published)
        lines += [names | play(simulation, rule, episodes) for rule in rules]
        print(names, [line["blocking_rate"] for line in lines[-len(rules) :]], file=sys.stderr)
    pd.DataFrame(lines).to_csv(out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
