"""The scenarios of generated graphs: every job can be placed at every cap, and durations do not follow from
sequential times.
"""

import numpy as np
import pytest

import shipped_conf
from schedlab.config import experiment
from schedlab.config.schema import merged, validate
from schedlab.stages.studies import find_study
from schedlab.studies.ramp.graphs.prepare import make_graphs
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.simulator.cluster import JobPlan
from schedlab.studies.ramp.simulator.compiled import compiled_tables
from schedlab.studies.ramp.simulator.simulation import Simulation
from schedlab.studies.ramp.study import PROBLEM

LEGAL = (1, 2, 4, 6, 8, 16)


@pytest.fixture(scope="module")
def loaded():
    return experiment.load(shipped_conf.CONF, "full", find_study, made=shipped_conf.COMPOSED)


def scenario_of(name, **management):
    values = shipped_conf.values("scenario/ramp", name)
    values = {key: value for key, value in values.items() if key in (*PROBLEM, "name", "seed", "graphs")}
    return validate(RampScenario, merged(values, {"management": management}))


def failures(scenario, graphs):
    """Graphs and caps at which a job cannot be placed on an empty cluster."""
    simulation = Simulation(scenario, graphs)
    simulation.reset(0)
    cluster, found = simulation.cluster, []
    waiting = simulation.waiting
    for graph in simulation.pool.graphs:
        job = type(waiting)(0, 0, graph, waiting.steps, 1.0)
        found += [
            (graph.name, cap) for cap in LEGAL if not isinstance(simulation.manager.plan(cluster, job, cap), JobPlan)
        ]
    return found


def test_every_job_can_be_placed_at_every_cap():
    for name, count in (("graphs_unseen", 32), ("graphs_seen", 12), ("graphs_traced", 5)):
        scenario = scenario_of(name)
        graphs = make_graphs(scenario.graphs)
        assert len(graphs) >= count
        assert failures(scenario, graphs[:count]) == []


def test_degrees_that_are_kept_could_not_all_be_placed():
    """The trap: without rounding down, short ops get 10, 12 or 14 shards, for which there is no block."""
    scenario = scenario_of("graphs_unseen", illegal_degrees="keep")
    assert {cap for _, cap in failures(scenario, make_graphs(scenario.graphs)[:12])} == {16}


def test_durations_hang_from_graphs_and_test_graphs_are_others():
    seen, unseen = (scenario_of(name) for name in ("graphs_seen", "graphs_unseen"))
    assert not {graph.name for graph in make_graphs(seen.graphs)} & {graph.name for graph in make_graphs(unseen.graphs)}
    tables = compiled_tables(Simulation(unseen, make_graphs(unseen.graphs)))
    speedups = tables.sequential / tables.durations[:, -1]
    assert np.quantile(speedups, 0.9) > 2 * np.quantile(speedups, 0.1)
    assert abs(np.corrcoef(np.log(tables.sequential), speedups)[0, 1]) < 0.7
