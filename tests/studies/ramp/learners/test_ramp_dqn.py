"""The paper's learner on the ramp study: it learns, repeats, keeps to masks or rejects, and its published constants
stand in conf/.
"""

from pathlib import Path

import numpy as np
import pytest

from checkpoint_changes import changes
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.readers import read_yaml
from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.learners.dqn import RampDQNLearner, RejectingPolicy
from schedlab.studies.ramp.learners.settings import RampDQNSettings
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import RampScenario

QUICK = {
    "learning_rate": 1e-3,
    "net_arch": [64],
    "actors": 2,
    "learning_starts": 100,
    "target_update_interval": 200,
    "exploration_steps": 1500,
    "gradient_steps": 4,
    "batch_size": 32,
    "gamma": 0.9,
}


@pytest.fixture(scope="module")
def problem():
    values = {
        "name": "learned",
        "seed": 3,
        "graphs": {"source": "generated"},
        "management": {"illegal_degrees": "round_down"},
        "jobs": {"beta": {"kind": "fixed", "value": 0.3}},  # degree 4 is the least that meets the limits
        "episodes": {"end": 1e5, "validation": 1, "test": 2},
    }
    return RampProblem(validate(RampScenario, values), read_graphs(find_graphs("resources/graphs/a100")))


def learned(problem, folder, steps, seed=0, **values):
    params = {**QUICK, "environment": {"mask": "blocks"}, **values}
    spec = PolicySpec("dqn", "learned", "prioritised_dqn", params, train_on=(Phase(("learned",), steps),))
    points, paths = [], LearnPaths(None, folder / "dqn.zip", folder / "progress")
    learner = RampDQNLearner()
    learner.learn(
        {"learned": problem}, spec, seed, paths, lambda metric, value, **place: points.append((metric, value, place))
    )
    return paths.checkpoint, points


def blocking(problem, policy):
    return sum(problem.rollout(policy, unit).scores["blocking_rate"] for unit in problem.units("test")) / len(
        problem.units("test")
    )


def test_it_blocks_fewer_jobs_than_chance_and_repeats(problem, tmp_path):
    checkpoint, points = learned(problem, tmp_path / "one", 1600, validate_every=800)
    again, _ = learned(problem, tmp_path / "two", 1600, validate_every=800, processes=2)
    assert checkpoint.read_bytes() == again.read_bytes()
    returns = [value for metric, value, place in points if metric == "return" and place.get("split") == "validation"]
    assert len(returns) == 2
    policy = RampDQNLearner().load(checkpoint, problem)
    assert blocking(problem, policy) < blocking(problem, RULE_MAKERS["random"]({}, problem, 0)) - 0.1


def test_invalid_actions_reject_the_job_as_published(problem, tmp_path):
    with pytest.raises(UserError, match="keep_to_masks"):
        learned(problem, tmp_path, 100, keep_to_masks=False, environment={"invalid": "raise"})
    values = {
        "keep_to_masks": False,
        "environment": {"invalid": "reject"},
        "learning_starts": 10**6,
        "initial_epsilon": 0.0,
    }
    checkpoint, _ = learned(problem, tmp_path, 300, **values)
    policy = RampDQNLearner().load(checkpoint, problem)
    assert 0 < blocking(problem, policy) <= 1  # of a network that learned nothing; an invalid action would be an error


def test_what_is_not_valid_becomes_a_rejection():
    class Stubborn:
        def act(self, *_):
            return 4

    policy, mask = RejectingPolicy(Stubborn()), np.array([1, 1, 1, 0, 1], dtype=bool)
    assert policy.act(None, mask) == 4
    mask[4] = False
    assert policy.act(None, mask) == 0


READS_GRAPHS = {
    "network": "graph",
    "environment": {"observation": "graph_id", "mask": "blocks"},
    "graph": {"rounds": 1, "message": 8},
}


def test_it_learns_through_the_graph_network_and_acts_on_graphs_that_it_never_saw(problem, tmp_path):
    checkpoint, _ = learned(problem, tmp_path / "one", 240, **READS_GRAPHS)
    again, _ = learned(problem, tmp_path / "two", 240, processes=2, **READS_GRAPHS)
    assert checkpoint.read_bytes() == again.read_bytes()
    drawn, _ = learned(problem, tmp_path / "drawn", 240, **READS_GRAPHS, learning_starts=10**6)
    assert min(changes(checkpoint, drawn).values()) > 1e-4
    fewer = RampProblem(problem.scenario, problem.graphs[:2])
    for other in (problem, fewer):
        policy = RampDQNLearner().load(checkpoint, other)
        network = policy._policy._policy.network
        assert network.reader.features_dim == 16 + 8
        assert [len(graph.x) for graph in network.reader._graphs] == [2 * len(graph.ids) for graph in other.graphs]
        assert 0 <= blocking(other, policy) < 1


def test_networks_read_what_they_are_shown(problem, tmp_path):
    with pytest.raises(UserError, match=r"environment\.observation"):
        learned(problem, tmp_path, 100, environment={"observation": "graph_id"})
    spec = PolicySpec(
        "dqn", "learned", "prioritised_dqn", {**QUICK, **READS_GRAPHS}, train_on=(Phase(("learned", "other"), 100),)
    )
    paths = LearnPaths(None, tmp_path / "dqn.zip", tmp_path / "progress")
    with pytest.raises(UserError, match="2 scenarios"):
        RampDQNLearner().learn({"learned": problem, "other": problem}, spec, 0, paths, None)


def test_the_published_constants():
    values = read_yaml(Path("conf/learner/ramp/apex_dqn.yaml"))
    assert values.pop("name") == "prioritised_dqn"
    settings = validate(RampDQNSettings, values)
    found = {
        "gamma": 0.999,
        "learning_rate": 4.121e-7,
        "n_steps": 3,
        "target_update_interval": 100_000,
        "buffer_size": 100_000,
        "alpha": 0.9,
        "beta": 0.1,
        "eps": 1e-6,
        "learning_starts": 10_000,
        "batch_size": 512,
        "actors": 32,
        "exploration_steps": 1_000_000,
        "final_epsilon": 0.05,
    }
    assert {name: getattr(settings, name) for name in found} == found
    assert settings.double and settings.dueling and not settings.keep_to_masks
    assert (settings.network, settings.environment.observation, settings.graph.zero_sources) == (
        "graph",
        "graph_id",
        True,
    )
