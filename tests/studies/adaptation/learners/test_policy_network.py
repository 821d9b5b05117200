from __future__ import annotations

import numpy as np
import torch
from small_tables import model

from schedlab.studies.adaptation.decisions import Decision, architectures
from schedlab.studies.adaptation.learners.encoders import read_vocabulary
from schedlab.studies.adaptation.learners.network_policy import greedy_sequences
from schedlab.studies.adaptation.learners.policy_network import Inputs, RecurrentEncoder, build_network, encoding_of
from schedlab.studies.adaptation.learners.settings import NetworkSettings
from schedlab.studies.adaptation.problem import deepening_actions
from schedlab.studies.adaptation.simulator.table import DecisionTree

PUBLISHED = NetworkSettings(encoder="vocab", head="fixed", time_code="sine", frequencies=8, code=16, linear=128)


def decisions(name: str, time_left: float = 100.0) -> list[Decision]:
    original = model(name, head_relu=True)
    actions = deepening_actions(original)
    tree = DecisionTree(len(actions) + 1, 3)
    return [
        Decision(a, time_left - 10 * len(p), 400.0, actions)
        for p, a in zip(tree.prefixes, architectures(tree, original, actions), strict=True)
    ]


def test_the_published_network_has_the_published_number_of_parameters() -> None:
    network = build_network(PUBLISHED, 4, encoding_of(PUBLISHED), seed=0)
    assert sum(parameter.numel() for parameter in network.parameters()) == 54_980
    assert network.encoder.embedding.shape == (len(read_vocabulary().layers) + 1, 16)


def test_reversing_by_index_equals_a_packed_bidirectional_lstm() -> None:
    inputs = Inputs(encoding_of(PUBLISHED)(decisions("convnet2") + decisions("convnet3")))
    torch.manual_seed(1)
    ours = RecurrentEncoder(read_vocabulary().embedding(16), 50, 16)
    both = torch.nn.LSTM(16, 50, bidirectional=True, batch_first=True)
    state = {f"{name}": value for name, value in ours.forwards.state_dict().items()}
    state |= {f"{name}_reverse": value for name, value in ours.backwards.state_dict().items()}
    both.load_state_dict(state)
    with torch.no_grad():
        codes, last = ours(inputs)
        for row, length in enumerate((inputs.last + 1).tolist()):
            words = ours.embedding[inputs.layers[row, :length]][None]
            expected, _ = ours.reader(both(words)[0])
            np.testing.assert_allclose(codes[row, :length], expected[0], atol=1e-6)
            np.testing.assert_allclose(last[row], expected[0, -1], atol=1e-6)


def test_a_state_has_the_same_scores_alone_and_in_a_batch() -> None:
    for settings in (PUBLISHED, NetworkSettings()):
        encoding = encoding_of(settings)
        network = build_network(settings, 4, encoding, seed=3)
        states = decisions("convnet2") + decisions("convnet3", 300.0)
        with torch.no_grad():
            together = network(Inputs(encoding(states)))
            for row in (0, 7, 20, 41):
                np.testing.assert_allclose(network(Inputs(encoding([states[row]])))[0], together[row], atol=1e-5)


def test_the_default_head_takes_models_with_any_number_of_blocks() -> None:
    settings = NetworkSettings()
    encoding = encoding_of(settings)
    network = build_network(settings, 4, encoding, seed=0)
    for name in ("tiny8", "convnet", "large_convnet", "feed_forward_net3"):
        states = decisions(name)
        assert network(Inputs(encoding(states))).shape == (len(states), len(states[0].actions) + 1)


def test_scores_depend_on_time_and_architecture_and_blocks_are_told_apart() -> None:
    settings = NetworkSettings()
    encoding = encoding_of(settings)
    network = build_network(settings, 4, encoding, seed=0)
    with torch.no_grad():
        early, late = (network(Inputs(encoding(decisions("convnet2", time)))) for time in (330.0, 70.0))
    assert (early - late).abs().min() > 0
    assert (
        len({tuple(row) for row in early.round(decimals=6).tolist()}) == 1 + 4 + 10
    )  # by depth; the order of insertions is not seen
    assert len(set(early[0].tolist())) == 4


def test_equal_seeds_give_equal_networks_and_leave_torch_as_it_was() -> None:
    before = torch.random.get_rng_state()
    one, same, other = (build_network(PUBLISHED, 4, encoding_of(PUBLISHED), seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_greedy_sequences_follow_the_best_action_of_each_state() -> None:
    tree = DecisionTree(3, 3)
    scores = np.random.default_rng(0).random((5, len(tree.prefixes), 3))
    for found, group in zip(greedy_sequences(tree, scores), scores, strict=True):
        prefix = ""
        for _ in range(3):
            prefix += str(group[tree.prefixes.index(prefix)].argmax())
        assert tree.sequences[found] == prefix
