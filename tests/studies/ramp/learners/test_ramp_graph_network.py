"""The graph policy's network: a round by hand, each graph embedded once, padded observations, learning from an
expert.
"""

import numpy as np
import pytest
import torch

from checkpoint_changes import changes
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.learning.stock.policy import build_policy, policy_parts
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.graphs.generator import generated_graphs
from schedlab.studies.ramp.graphs.settings import GeneratorSettings
from schedlab.studies.ramp.learners.graph_network import GraphEmbedding, GraphReader, Round, data
from schedlab.studies.ramp.learners.settings import GraphNetworkSettings, RampA2CSettings, RampMaskablePPOSettings
from schedlab.studies.ramp.learners.stock import RampStockLearner, SeenProblem
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import RampScenario

OPS = np.array([[0.5, 1.0, 0.2, 0.0, 0.3], [1.0, 0.0, 0.4, 1.0, 0.6], [0.1, 0.0, 0.9, 0.0, 1.0]])
DEPS = [(0, 1), (0, 2), (1, 2)]
EDGES = np.array([[0.3, 0.0], [1.0, 1.0], [0.7, 0.0]])
CLONED = {
    "clone_episodes": 2,
    "clone_passes": 4,
    "expert_episodes": 1,
    "expert": {"candidates": ["table"], "degrees": [4, 8], "tuning_episodes": 1, "validation_episodes": 1},
}
GRAPH = {
    "network": "graph",
    "net_arch": [32],
    "activation": "relu",
    "environment": {"observation": "graph_id", "scale": "absolute"},
}


def problem_of(first=0, count=4, end=60.0):
    values = {
        "name": "drawn",
        "seed": 0,
        "graphs": {"source": "generated"},
        "cluster": {"memory": 3.2e11},
        "jobs": {"time_unit": "ms", "interarrival": {"kind": "fixed", "value": 1.0}, "replication": 5},
        "management": {"quantum": 1e-5, "illegal_degrees": "round_down"},
        "episodes": {"end": end, "validation": 1, "test": 1},
    }
    return RampProblem(validate(RampScenario, values), generated_graphs(GeneratorSettings(first=first, count=count), 0))


@pytest.fixture(scope="module")
def problem():
    return problem_of()


def by_hand(layers, x):
    """Layer norm (where there is one), linear map, relu, in NumPy."""
    norm, linear = layers[0], layers[1]
    if isinstance(norm, torch.nn.LayerNorm):
        x = (x - x.mean()) / np.sqrt(x.var() + norm.eps) * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    return np.maximum(linear.weight.detach().numpy() @ x + linear.bias.detach().numpy(), 0)


@pytest.mark.parametrize("zero_sources", [False, True])
@pytest.mark.parametrize("norm", ["layer", "ops", "none"])
def test_a_round_is_the_mean_of_the_messages(norm, zero_sources):
    torch.manual_seed(0)
    one = Round(5, 7, GraphNetworkSettings(message=6, norm=norm, zero_sources=zero_sources)).double()
    found = one(torch.from_numpy(OPS), torch.tensor(DEPS).T, torch.from_numpy(EDGES)).detach().numpy()
    for op in range(3):
        messages = [by_hand(one.reduce, np.concatenate([by_hand(one.node, OPS[op]), np.zeros(3)]))]
        for (source, destination), edge in zip(DEPS, EDGES, strict=True):
            if destination == op:
                messages.append(
                    by_hand(one.reduce, np.concatenate([by_hand(one.node, OPS[source]), by_hand(one.edge, edge)]))
                )
        expected = np.mean(messages, axis=0) * (0 if zero_sources and op == 0 else 1)
        assert found[op] == pytest.approx(expected, abs=1e-12)
    assert (found[0] == 0).all() == zero_sources


def test_the_sizes_are_the_published_ones():
    embedding = GraphEmbedding(GraphNetworkSettings())
    shapes = [[tuple(part[1].weight.shape) for part in (one.node, one.edge, one.reduce)] for one in embedding.rounds]
    assert shapes == [[(16, 5), (16, 2), (64, 32)], [(16, 64), (16, 2), (16, 32)]]
    deep = GraphEmbedding(GraphNetworkSettings(depth=2, rounds=3))
    assert len(deep.rounds) == 3
    assert [type(part).__name__ for part in deep.rounds[1].node] == ["LayerNorm", "Linear", "ReLU", "Linear", "ReLU"]


def test_the_published_norm_hides_sizes_of_deps_and_others_show_them():
    for norm, seen in (("layer", False), ("ops", True), ("none", True)):
        torch.manual_seed(1)
        one = Round(5, 7, GraphNetworkSettings(norm=norm)).double()
        small, large = (one.edge(torch.tensor([[size, 0.0]], dtype=torch.float64)) for size in (0.2, 0.9))
        assert (not torch.allclose(small, large, atol=1e-2)) == seen


def policy_of(problem, observation, **graph):
    settings = RampMaskablePPOSettings(
        network="graph",
        net_arch=(32,),
        environment=EnvironmentSettings(observation=observation),
        graph=GraphNetworkSettings(**graph),
    )
    env = SeenProblem(problem, settings.environment).env(problem.units("test")[0], 0)
    spaces = env.observation_space, env.action_space
    learner = RampStockLearner("maskable_ppo")
    return build_policy(policy_parts("maskable_ppo", learner.make_policy, settings, spaces), spaces), env


def observed(env, count):
    observation, _ = env.reset(seed=0)
    rows, masks = [observation], [env.action_masks()]
    for _ in range(count - 1):
        rows.append(env.step(int(np.flatnonzero(env.action_masks())[-1]))[0])
        masks.append(env.action_masks())
    return {key: np.stack([row[key] for row in rows]) for key in rows[0]}, np.stack(masks)


def test_numbers_and_padded_graphs_give_the_same_logits(problem):
    numbered, padded = (policy_of(problem, observation) for observation in ("graph_id", "published"))
    padded[0].load_state_dict(numbered[0].state_dict())
    logits = []
    for policy, env in (numbered, padded):
        rows, masks = observed(env, 12)
        with torch.enable_grad():  # the way of learning, where nothing is kept
            tensors, _ = policy.obs_to_tensor(rows)
            logits.append(policy.get_distribution(tensors, action_masks=masks).distribution.logits.detach().numpy())
    assert len({row.tobytes() for row in logits[0]}) > 6
    assert logits[0] == pytest.approx(logits[1], abs=1e-5)


def test_each_distinct_graph_is_embedded_once(problem, monkeypatch):
    policy, env = policy_of(problem, "graph_id")
    embedded, forward = [], GraphEmbedding.forward
    monkeypatch.setattr(
        GraphEmbedding, "forward", lambda self, graphs: (embedded.append(len(graphs)), forward(self, graphs))[1]
    )
    rows, masks = observed(env, 40)
    tensors, _ = policy.obs_to_tensor(rows)
    distinct = len(np.unique(rows["graph"]))
    assert distinct == 4
    actions = torch.tensor(masks.argmax(axis=1))
    policy.evaluate_actions(tensors, actions, action_masks=masks)
    policy.evaluate_actions(tensors, actions, action_masks=masks)
    assert embedded == [distinct, distinct]  # parameters are learned, so that each minibatch computes them anew
    with torch.no_grad():
        first = policy.get_distribution(tensors).distribution.logits
        again = policy.get_distribution(tensors).distribution.logits
        assert embedded == [distinct] * 2 + [1] * distinct
        assert (first == again).all()
        for parameter in policy.features_extractor.embedding.parameters():
            parameter += 0.1
        assert (policy.get_distribution(tensors).distribution.logits != first).any()
    assert embedded == [distinct] * 2 + [1] * 2 * distinct


def test_graphs_follow_the_parameters_to_another_device(problem):
    """`meta` stands for a GPU: it computes nothing, but refuses what mixes devices as a GPU does."""
    policy, env = policy_of(problem, "graph_id", zero_sources=True)
    reader = policy.features_extractor
    with torch.no_grad():
        known = reader._embedded([0, 1])
        reader.to("meta")
        found = reader._embedded([1, 2])
    assert (known.device.type, found.device.type, found.shape) == ("cpu", "meta", known.shape)
    graphs = [data(graph) for graph in env.graphs]
    assert [graph.x.device.type for graph in graphs] == ["cpu"] * 4
    assert reader.embedding(graphs).device.type == "meta"  # the way of learning


def learned(problem, folder, algorithm="maskable_ppo", **params):
    params = {
        "n_steps": 32,
        **({"batch_size": 32, "n_epochs": 1} if algorithm == "maskable_ppo" else {}),
        "validate_every": 32,
    } | params
    spec = PolicySpec("graphs", "drawn", algorithm, params, train_on=(Phase(("drawn",), 64),))
    paths = LearnPaths(None, folder / "policy.zip", folder / "progress")
    RampStockLearner(algorithm).learn({"drawn": problem}, spec, 0, paths, lambda *_, **__: None)
    return paths.checkpoint


def test_a_learned_graph_policy_acts_on_graphs_that_it_never_saw(problem, tmp_path):
    checkpoint = learned(problem, tmp_path / "a", **GRAPH, **CLONED)
    assert checkpoint.read_bytes() == learned(problem_of(), tmp_path / "b", **GRAPH, **CLONED).read_bytes()
    copied = learned(problem, tmp_path / "c", **GRAPH, **CLONED, learning_rate=1e-9)  # what PPO began with
    assert min(changes(checkpoint, copied).values()) > 1e-4
    for other in (problem, problem_of(first=100, count=3)):
        policy = RampStockLearner("maskable_ppo").load(checkpoint, other)
        outcome = other.rollout(policy, other.units("test")[0])
        assert 0 <= outcome.scores["blocking_rate"] < 1
        assert policy._policy.policy.features_extractor.__class__ is GraphReader
        assert len(policy._policy.policy.features_extractor._graphs) == len(other.graphs)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
@pytest.mark.parametrize("observation", ["graph_id", "published"])
def test_a_graph_policy_learns_on_a_gpu_and_acts_on_the_processor(problem, observation, tmp_path, monkeypatch):
    devices, forward = set(), GraphEmbedding.forward

    def seen(self, graphs):
        found = forward(self, graphs)
        devices.add(found.device.type)
        return found

    monkeypatch.setattr(GraphEmbedding, "forward", seen)
    read = {"environment": {"observation": observation, "scale": "absolute"}}
    checkpoint = learned(problem, tmp_path, **(GRAPH | read), **CLONED, device="cuda")
    assert "cuda" in devices
    devices.clear()
    policy, unit = RampStockLearner("maskable_ppo").load(checkpoint, problem), problem.units("test")[0]
    assert 0 <= problem.rollout(policy, unit).scores["blocking_rate"] < 1
    assert devices == {"cpu"}


def test_cloning_brings_a_policy_near_its_expert(problem, tmp_path):
    """The expert's table knows how long jobs take; shown that too, a policy repeats it, while one of the seed is far
    away.
    """
    shown = {"environment": {"observation": "durations", "scale": "absolute"}, "learning_rate": 1e-9}
    cloned = learned(problem, tmp_path / "a", **shown, **(CLONED | {"clone_episodes": 20, "clone_passes": 60}))
    drawn = learned(problem, tmp_path / "b", **shown)
    unit, learner = problem.units("test")[0], RampStockLearner("maskable_ppo")
    rates = [problem.rollout(learner.load(path, problem), unit).scores["blocking_rate"] for path in (cloned, drawn)]
    worst = problem.rollout(RULE_MAKERS["sequential"]({}, problem, 0), unit).scores["blocking_rate"]
    assert rates[0] < rates[1] - 0.1
    assert rates[0] < worst


def test_a2c_learns_through_the_same_glue(problem, tmp_path):
    seen = {"environment": {"observation": "vector", "scale": "absolute", "invalid": "reject", "mask": "blocks"}}
    checkpoint = learned(problem, tmp_path, "a2c", **seen)
    drawn = learned(problem, tmp_path / "drawn", "a2c", **seen, learning_rate=1e-9)
    assert min(changes(checkpoint, drawn).values()) > 1e-4
    policy = RampStockLearner("a2c").load(checkpoint, problem)
    assert 0 <= problem.rollout(policy, problem.units("test")[0]).scores["blocking_rate"] < 1
    with pytest.raises(ValueError, match=r"environment\.invalid"):
        RampA2CSettings(environment={"invalid": "raise"})


def test_networks_read_what_they_are_shown():
    with pytest.raises(ValueError, match=r"environment\.observation"):
        RampMaskablePPOSettings(environment=EnvironmentSettings(observation="graph_id"))
    with pytest.raises(ValueError, match=r"environment\.observation"):
        RampMaskablePPOSettings(network="graph")
    with pytest.raises(ValueError, match="message"):
        GraphNetworkSettings(message=33)


def test_graphs_are_those_of_one_scenario(problem, tmp_path):
    spec = PolicySpec("graphs", "drawn", "maskable_ppo", GRAPH, train_on=(Phase(("drawn", "other"), 64),))
    paths = LearnPaths(None, tmp_path / "p.zip", tmp_path)
    with pytest.raises(UserError, match="2 scenarios"):
        RampStockLearner("maskable_ppo").learn({"drawn": problem, "other": problem}, spec, 0, paths, None)


def test_features_of_a_graph_are_those_of_the_environment(problem):
    _, env = policy_of(problem, "graph_id")
    graph = env.graphs[0]
    found = data(graph)
    assert found.x.shape == graph.nodes.shape
    assert found.edge_index.max() < len(graph.nodes)
    assert (found.edge_attr.numpy() == graph.edges).all()
