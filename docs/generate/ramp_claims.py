"""Our values of the claims of the ramp study, from the published graphs: SCHEDLAB_DATA=DIR python
docs/generate/ramp_claims.py [table] [alone] [beta] [episodes] [loads]

Blocking rates, throughputs and speed-ups are means of the seeds 0, 1 and 2 (every 50 and 100 s: seed 0).
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import product
from statistics import mean

from claim_tables import FORMS, Values, both, joined, write_claims

from schedlab.config.data_paths import find_data
from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.files import read_graph, read_graphs
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.rules import RULES
from schedlab.studies.ramp.scenario import BETAS, published_scenario
from schedlab.studies.ramp.simulator.distributions import DistributionSettings, of_scenario
from schedlab.studies.ramp.simulator.jobs import Job
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode

GRAPHS = ("alexnet", "gnmt", "resnet18", "squeezenet1_0", "vgg16")
SCORED = ("para_max", "para_min", "random")
LOADS = (50, 100, 6000, 12000)  # s between arrivals
SCORES = {"blocking": "blocking_rate", "throughput": "mean_demand_total_throughput"}


def table() -> Values:
    """The table of jobs: each graph in numbers."""
    return joined(_table(name, form) for name, form in product(GRAPHS, FORMS))


def _table(name: str, form: str) -> Values:
    graph = training_graph(read_graph(find_data(f"graphs/{name}.txt")), join_sinks=not FORMS[form])
    found = {
        "num-ops": graph.num_ops,
        "num-deps": len(graph.edges),
        "sequential-jct": 50 * graph.step_time,
        "max-cost": graph.cost.max(),
        "total-memory": graph.memory.sum(),
        "max-memory": graph.memory.max(),
        "depth": graph.depth.max(),
    }
    return {f"table-{_dashed(name)}-{key}": {form: value} for key, value in found.items()}


def alone() -> Values:
    """Completion time of each graph at degree 16 in an empty cluster, s."""
    return joined(_alone(form) for form in FORMS)


def _alone(form: str) -> Values:
    simulation, found = _simulation(form, "A"), {}
    simulation.reset(0)
    for graph in simulation.pool.graphs:
        plan = simulation.manager.plan(simulation.cluster, Job(0, 0, graph, 50, 1.0), 16)
        duration = 50 * simulation.cluster.times.timing(plan.split, plan.placement).lookahead.time
        found[f"alone-{_dashed(graph.name)}"] = {form: duration}
    return found


def beta() -> Values:
    """Moments of the distributions of beta, which no defect changes."""
    (values,), *others = (of_scenario(validate(DistributionSettings, BETAS[name]), 0, "beta") for name in "ABCD")
    count = len(values.values)
    found = [both("beta-a-values", count, count)]
    for name, (law,) in zip("bcd", others, strict=True):
        found += [both(f"beta-{name}-mean", law.mean, law.mean), both(f"beta-{name}-std", law.std, law.std)]
    return joined(found)


def episodes() -> Values:
    """Blocking rate and throughput of the rules, and the speed-up of maximum parallelisation."""
    return joined(of_rule(form, name, rule) for form, name, rule in product(FORMS, "ABCD", SCORED))


def of_rule(form: str, name: str, rule: str) -> Values:
    """The values of one rule in the setting of one beta."""
    scores = [run_episode(_simulation(form, name), RULES[rule], seed) for seed in range(3)]
    found = {kind: mean(episode[score] for episode in scores) for kind, score in SCORES.items()}
    if rule == "para_max":
        found["speedup"] = mean(mean(episode["job_completion_time_speedup"]) for episode in scores)
    return {f"{kind}-{_dashed(rule)}-{name.lower()}": {form: value} for kind, value in found.items()}


def loads() -> Values:
    """Blocking rate at fixed gaps between arrivals, beta A."""
    return joined(of_load(form, rule, gap) for form, rule, gap in product(FORMS, SCORED[:2], LOADS))


def of_load(form: str, rule: str, gap: int) -> Values:
    """The value of one rule at one gap."""
    seeds = range(3 if gap > 100 else 1)
    rate = mean(run_episode(_simulation(form, "A", gap), RULES[rule], seed)["blocking_rate"] for seed in seeds)
    return {f"load-{_dashed(rule)}-{gap}": {form: rate}}


@cache
def _simulation(form: str, name: str, gap: int | None = None) -> Simulation:
    """The published setting of a beta; gap: s between arrivals."""
    changes = {"jobs": {"interarrival": {"kind": "fixed", "value": float(gap)}}} if gap else {}
    return Simulation(published_scenario(name, FORMS[form], **changes), read_graphs(find_data("graphs")))


def _dashed(name: str) -> str:
    return name.replace("_", "-")


PARTS = {"table": table, "alone": alone, "beta": beta, "episodes": episodes, "loads": loads}


if __name__ == "__main__":
    sys.exit(write_claims("ramp", PARTS))
