"""The ledger's values of ours are what the study computes from the published graphs (other people's data)."""

from pathlib import Path
from statistics import mean

import pandas as pd
import pytest

from schedlab.config.schema import validate
from schedlab.evaluation.claims import read_claims
from schedlab.studies.ramp.graphs.files import read_graph, read_graphs
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.rules import RULES
from schedlab.studies.ramp.scenario import BETAS, published_scenario
from schedlab.studies.ramp.simulator.distributions import DistributionSettings, of_scenario
from schedlab.studies.ramp.simulator.jobs import Job
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode

LEDGER = {claim.id: claim for claim in read_claims(Path(__file__).parents[3] / "conf", "ramp")["ramp"].claims}
GRAPHS = ("alexnet", "gnmt", "resnet18", "squeezenet1_0", "vgg16")
FORMS = {"ours_reference": True, "ours_repaired": False}  # -> compat
QUICK = {("ours_reference", "D"), ("ours_repaired", "A")}  # of the settings in which episodes are run


def ids_of(kind):
    """Ids that begin alike."""
    found = [name for name in LEDGER if name.startswith(f"{kind}-")]
    assert found
    return found


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("form", FORMS)
def test_table_of_jobs(shared_data, name, form):
    graph = training_graph(read_graph(shared_data / f"graphs/{name}.txt"), join_sinks=not FORMS[form])
    found = {
        "num-ops": graph.num_ops,
        "num-deps": len(graph.edges),
        "sequential-jct": 50 * graph.step_time,
        "max-cost": graph.cost.max(),
        "total-memory": graph.memory.sum(),
        "max-memory": graph.memory.max(),
        "depth": graph.depth.max(),
    }
    prefix = f"table-{name.replace('_', '-')}-"
    assert {prefix + key for key in found} <= set(ids_of("table"))
    for key, value in found.items():
        assert getattr(LEDGER[prefix + key], form) == pytest.approx(value, rel=1e-5), key


@pytest.mark.parametrize("form", FORMS)
def test_jobs_alone(shared_data, form):
    simulation = Simulation(published_scenario("A", FORMS[form]), read_graphs(shared_data / "graphs"))
    simulation.reset(0)
    for graph in simulation.pool.graphs:
        plan = simulation.manager.plan(simulation.cluster, Job(0, 0, graph, 50, 1.0), 16)
        duration = 50 * simulation.cluster.times.timing(plan.split, plan.placement).lookahead.time
        assert getattr(LEDGER[f"alone-{graph.name.replace('_', '-')}"], form) == pytest.approx(duration, abs=0.006), (
            graph.name
        )


@pytest.mark.parametrize("beta", "ABCD")
def test_beta_distributions(beta):
    (found,) = of_scenario(validate(DistributionSettings, BETAS[beta]), 0, "beta")
    values = {"values": len(found.values), "mean": found.mean, "std": found.std}
    claimed = [name for name in ids_of("beta") if name.split("-")[1] == beta.lower()]
    assert claimed
    for name in claimed:
        for form in FORMS:  # no defect changes them
            assert getattr(LEDGER[name], form) == pytest.approx(values[name.split("-")[2]], abs=6e-5), (name, form)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((form, beta), id=f"{form} {beta}", marks=[pytest.mark.slow] if (form, beta) not in QUICK else [])
        for form in FORMS
        for beta in "ABCD"
    ],
)
def simulation(request, shared_data):
    """Form, distribution and simulation of the published setting."""
    form, beta = request.param
    return form, beta, Simulation(published_scenario(beta, FORMS[form]), read_graphs(shared_data / "graphs"))


@pytest.mark.parametrize("rule", ["para_max", "para_min", "random"])
def test_episodes(simulation, rule):
    form, beta, episode_of = simulation
    episodes = [run_episode(episode_of, RULES[rule], seed) for seed in range(3)]
    found = {"blocking": ("blocking_rate", 6e-5), "throughput": ("mean_demand_total_throughput", 6e3)}
    for kind, (statistic, rounding) in found.items():
        claimed = getattr(LEDGER[f"{kind}-{rule.replace('_', '-')}-{beta.lower()}"], form)
        assert claimed == pytest.approx(mean(episode[statistic] for episode in episodes), abs=rounding), kind
    if rule == "para_max":
        speedup = mean(mean(episode["job_completion_time_speedup"]) for episode in episodes)
        assert 15.6 <= speedup <= 15.7
        assert getattr(LEDGER[f"speedup-para-max-{beta.lower()}"], form) == pytest.approx(speedup, abs=6e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ids_of("load"))
@pytest.mark.parametrize("form", FORMS)
def test_loads(shared_data, name, form):
    rule, gap = "_".join(name.split("-")[1:3]), float(name.split("-")[3])
    jobs = {"interarrival": {"kind": "fixed", "value": gap}}
    simulation = Simulation(published_scenario("A", FORMS[form], jobs=jobs), read_graphs(shared_data / "graphs"))
    rate = mean(run_episode(simulation, RULES[rule], seed)["blocking_rate"] for seed in range(3 if gap > 100 else 1))
    assert getattr(LEDGER[name], form) == pytest.approx(rate, abs=6e-4)


def test_loads_are_those_of_the_recorded_table(repository):
    rows = pd.read_csv(repository / "docs/results/ramp_rules.csv").query("part == 'loads'")
    rates = rows.set_index(["rule", "setting"])["blocking_rate"]
    for name in ids_of("load"):
        first, second, seconds = name.split("-")[1:]
        assert LEDGER[name].ours_reference == pytest.approx(rates[f"{first}_{second}", seconds], abs=6e-4), name


@pytest.mark.parametrize("beta", "abcd")
@pytest.mark.parametrize(("name", "form"), [("exact", "ours_reference"), ("repaired", "ours_repaired")])
def test_speedups_of_learned_policies_are_those_of_the_recorded_table(repository, beta, name, form):
    rows = pd.read_csv(repository / f"docs/results/ramp_learning_{name}.csv").set_index(["scenario", "policy"])
    learned = rows.loc[(f"published_{beta}", "afterstate")]
    assert (learned["seeds"], learned["episodes"]) == (5, 20)
    assert getattr(LEDGER[f"speedup-pac-ml-{beta}"], form) == pytest.approx(learned["speedup"], abs=6e-4)
    if form == "ours_repaired":
        assert LEDGER[f"blocking-pac-ml-{beta}"].ours_repaired == pytest.approx(learned["blocking_rate"], abs=6e-5)


@pytest.mark.parametrize("beta", "abcd")
def test_learned_policies_are_those_of_the_recorded_table(repository, beta):
    rows = pd.read_csv(repository / "docs/results/ramp_learning.csv").set_index(["scenario", "policy"])["blocking_rate"]
    learned, para_max = (rows[f"published_{beta}", policy] for policy in ("afterstate", "fixed-16"))
    assert LEDGER[f"blocking-pac-ml-{beta}"].ours_reference == pytest.approx(learned, abs=6e-5)
    assert LEDGER[f"against-para-max-{beta}"].ours_reference == pytest.approx(learned / para_max - 1, abs=6e-4)


def test_the_most_that_learned_policies_gain_is_that_of_the_recorded_table(repository):
    rows = pd.read_csv(repository / "docs/results/ramp_learning.csv").pivot(
        index="scenario", columns="policy", values="blocking_rate"
    )
    gains = 100 * (1 - rows["afterstate"] / rows["fixed-16"])
    assert LEDGER["against-para-max-most"].ours_reference == pytest.approx(gains.max(), abs=0.06)
    assert gains.idxmax() == "published_d"  # as the note says
