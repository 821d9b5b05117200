"""Durations predicted from graphs, and the policy that decides with them without knowing those of the test graphs."""

import dataclasses

import numpy as np
import pytest
from small_graphs import chain, random_graph

from schedlab.config.contract import Budget, LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.schema import merged, validate
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.learners.predicted.learner import PredictedLearner
from schedlab.studies.ramp.learners.predicted.model import LEAST_ERROR, all_terms, fit_durations, graph_terms
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.scenario import RampScenario

ACTIONS = np.array([1, 2, 4])
GRAPHS = read_graphs(find_graphs("resources/graphs/a100"))
SCENARIO = {
    "name": "any",
    "seed": 3,
    "graphs": {"source": "generated"},
    "cluster": {"memory": 3.2e11},
    "jobs": {"time_unit": "ms", "interarrival": {"kind": "fixed", "value": 1.0}},
    "management": {"quantum": 1e-5, "illegal_degrees": "round_down", "mask": "blocks"},
    "episodes": {"end": 40.0, "test": 4},
}
TINY = {"samples": 4, "horizon": 8, "degrees": [4, 8]}
WITHOUT_GNMT = [graph for graph in GRAPHS if graph.name != "gnmt"]


def problem_of(graphs=GRAPHS, **changes):
    return RampProblem(validate(RampScenario, merged(SCENARIO, changes)), graphs)


def learn(folder, problem, *phases, **params):
    spec = PolicySpec(
        "mine", "learned", "predicted_rollouts", TINY | params, train_on=phases or (Phase(("seen",), 32),)
    )
    paths = LearnPaths(None, folder / "policy.zip", folder)
    return paths.checkpoint, PredictedLearner().learn({"seen": problem}, spec, 5, paths, lambda *_, **__: None)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    return learn(tmp_path_factory.mktemp("predicted"), problem_of(), leave_out=["gnmt"])


def test_the_terms_of_a_chain_follow_from_its_bytes():
    """Each op sends 1e6 bytes: forward, to its mate, and back; messages between unequal ops are split among pairs."""
    graph = training_graph(chain(2.0, 3.0))
    assert graph_terms(graph, np.array([1, 1, 1, 1])) == (10.0, 0.0)
    assert graph_terms(graph, np.array([2, 2, 2, 2])) == (5.0, 3e6)
    assert graph_terms(graph, np.array([2, 1, 2, 1])) == (8.0, 1e6)


def test_parallel_messages_count_once():
    split = training_graph(chain(1.0, 1.0, 1.0))
    assert graph_terms(split, np.full(6, 2))[1] == 5e6
    edges = [(1, 2), (1, 3)]
    fork = training_graph(dataclasses.replace(chain(1.0, 1.0, 1.0), edges=edges))
    both = 2e6  # an op sends the outputs for both of its children in one collective
    assert graph_terms(fork, np.full(6, 2))[1] == both + 1e6 + both


def test_the_model_recovers_a_law_and_predicts_other_graphs():
    terms = all_terms([training_graph(random_graph(seed)) for seed in range(6)], ACTIONS, 0.5, None)
    rates = np.array([0.0, 3e-10, 5e-10])
    measured = terms[:, :, 0] + rates * terms[:, :, 1]
    measured[2, 1] = np.inf  # could not be placed
    model = fit_durations(ACTIONS, terms[:5], measured[:5])
    assert model.rates == pytest.approx(rates, rel=1e-9)
    assert model.errors == pytest.approx(LEAST_ERROR)
    assert model.predict(terms[5:]) == pytest.approx(measured[5:], rel=1e-9)


def test_errors_are_those_of_graphs_left_out():
    terms = np.array([[[1.0, 1.0]], [[1.0, 1.0]]])
    model = fit_durations(np.array([2]), terms, np.array([[2.0], [3.0]]))
    assert model.errors == pytest.approx([np.log(1.5)])
    assert 1 < model.rates[0] < 2
    none = fit_durations(np.array([2]), terms, np.array([[0.5], [0.5]]))
    assert none.rates == [0.0]  # never below 0


@pytest.mark.parametrize("left_out", [graph.name for graph in GRAPHS])
def test_durations_of_a_traced_graph_left_out_are_within_a_twentieth(left_out, tmp_path):
    problem = problem_of()
    policy = PredictedLearner().load(learn(tmp_path, problem, leave_out=[left_out])[0], problem)
    place = [graph.name for graph in GRAPHS].index(left_out)
    wrong = policy._predicted.durations[place] / problem.compiled[0].durations[place]
    assert np.abs(np.log(wrong)).max() < 0.05


def test_each_measured_duration_counts(learned):
    assert learned[1] == Budget(decisions=4 * 6)


def test_durations_of_test_graphs_do_not_affect_the_first_decision(learned):
    """A slower network makes every split job longer; the policy sees the same graph and the same free blocks."""
    found = []
    for bandwidth in (1.6e12, 1.6e11):
        problem = problem_of([graph for graph in GRAPHS if graph.name == "gnmt"], cluster={"node_bandwidth": bandwidth})
        policy, first, simulation = PredictedLearner().load(learned[0], problem), [], problem.simulation
        for unit in problem.units("test"):
            policy.reset(unit)
            simulation.reset(unit.seed)
            first.append(policy.decide(simulation, simulation.mask()))
        found.append((first, problem.compiled[0].durations[0, -1], policy._predicted.durations[0, -1]))
    (first, duration, predicted), (again, longer, same) = found
    assert first == again and max(first) > 0
    assert longer > 1.5 * duration and same == predicted


def test_a_fit_does_not_read_graphs_left_out(learned, tmp_path):
    alone, _ = learn(tmp_path, problem_of(WITHOUT_GNMT))
    policies = [PredictedLearner().load(path, problem_of()) for path in (alone, learned[0])]
    assert np.array_equal(*(policy._predicted.durations for policy in policies))


def test_episodes_repeat(learned):
    problem = problem_of()
    policy, unit = PredictedLearner().load(learned[0], problem), problem.units("test")[0]
    rates = [problem.rollout(policy, unit).scores["blocking_rate"] for _ in range(2)]
    assert rates[0] == rates[1] and 0 < rates[0] < 1


def test_watched_durations_replace_predictions(tmp_path):
    problem = problem_of()
    policy, unit = PredictedLearner().load(learn(tmp_path, problem, watch=True)[0], problem), problem.units("test")[0]
    problem.rollout(policy, unit)
    new, old = policy._tables.durations, policy._predicted.durations
    seen = new != old
    assert 0 < seen.sum() < seen.size
    assert new[seen] == pytest.approx(problem.compiled[0].durations[seen], rel=0.01)
    policy.reset(unit)
    assert np.array_equal(policy._tables.durations, old)


@pytest.mark.parametrize(
    ("phases", "params", "where"),
    [
        ((), {"leave_out": ["gnmtt"]}, "mine.yaml: learner.leave_out"),
        ((), {"leave_out": [graph.name for graph in GRAPHS[:4]]}, "mine.yaml: train_on"),
        ((Phase(("seen",), 1), Phase(("seen",), 1)), {}, "mine.yaml: train_on"),
    ],
)
def test_what_cannot_be_fitted_is_refused(tmp_path, phases, params, where):
    with pytest.raises(UserError) as error:
        learn(tmp_path, problem_of(), *phases, **params)
    assert error.value.where == where


def test_another_cluster_is_refused(learned):
    with pytest.raises(UserError) as error:
        PredictedLearner().load(learned[0], problem_of(cluster={"servers": 1}))
    assert error.value.where == str(learned[0])
