"""The published baselines on the published graphs (other people's data): blocking rates and speed-ups of the stored result tables."""

import json
from statistics import mean

import pytest

from schedlab.cli.main import main
from schedlab.studies.ramp.graph_files import read_graphs
from schedlab.studies.ramp.published import published_scenario
from schedlab.studies.ramp.rules import RULES
from schedlab.studies.ramp.simulation import Simulation, run_episode

PUBLISHED = {  # mean of three seeds, specification section 15
    "para_max": {"A": 0.262, "B": 0.263, "C": 0.267, "D": 0.263},
    "para_min": {"A": 0.309, "B": 0.396, "C": 0.307, "D": 0.142},
    "random": {"A": 0.517, "B": 0.601, "C": 0.505, "D": 0.465},
}
JCT_AT_16 = {"alexnet": 2254.8, "vgg16": 2168.2, "resnet18": 2295.8, "squeezenet1_0": 2379.2, "gnmt": 308.4}


@pytest.fixture(scope="module")
def simulations(shared_data):
    graphs = read_graphs(shared_data / "graphs")
    return {beta: Simulation(published_scenario(beta, compat=True), graphs) for beta in "ABCD"}


@pytest.mark.parametrize("beta", "ABCD")
@pytest.mark.parametrize("rule", PUBLISHED)
def test_baselines_block_as_often_as_published(simulations, rule, beta):
    episodes = [run_episode(simulations[beta], RULES[rule], seed) for seed in range(3)]
    tolerance = 0.05 if (rule, beta) == ("para_min", "D") else 0.02
    assert mean(episode["blocking_rate"] for episode in episodes) == pytest.approx(PUBLISHED[rule][beta], abs=tolerance)
    if rule == "para_max":
        assert 15.6 <= mean(mean(episode["job_completion_time_speedup"]) for episode in episodes) <= 15.7


def test_single_jobs_take_the_published_time(simulations):
    """In an empty cluster, at 16 shards an op."""
    simulation = simulations["A"]
    found = {}
    for seed in range(60):
        simulation.reset(seed)
        job = simulation.waiting
        simulation.act(16)
        done = simulation.cluster.running or [record.running for record in simulation.cluster.record.completed]
        if done and done[0].job is job:
            found[job.graph.name] = done[0].duration
    assert found == pytest.approx(JCT_AT_16, abs=0.06)


def test_the_command_prints_an_episode(shared_data, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # any working directory
    assert main(["ramp", "episode", "--policy", "para_max", "--beta", "A", "--seed", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["num_jobs_arrived"] == 1001
    assert found["blocking_rate"] == pytest.approx(0.262, abs=0.03)  # default mode, one seed
    assert found["graphs"] == str(shared_data / "graphs")
