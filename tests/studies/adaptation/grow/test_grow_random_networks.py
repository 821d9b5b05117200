"""Growth leaves the outputs of random networks as they are."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_networks import RandomNetworks, images
from torch import nn

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.grow import deepen, layer_names, relative_difference, widen

SEEDS = st.integers(0, 10**6)


def _inner(network: nn.Module) -> list[str]:
    """The layers whose channels are not the outputs of the network."""
    return layer_names(network, images(0))[:-1]


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.integers(2, 3), st.sampled_from([0.0, 0.5]))
def test_every_layer_of_a_random_network_can_be_widened_by_a_whole_factor(seed: int, factor: int, noise: float) -> None:
    network = RandomNetworks(seed).network().eval()
    for name in _inner(network):
        grown = widen(network, name, factor, images(seed), noise=noise, seed=seed)
        assert relative_difference(network, grown, images(seed + 1)) < 1e-5, name
        assert _channels(grown, name) == factor * _channels(network, name)


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.floats(1.1, 2.9))
def test_a_layer_is_widened_by_a_fraction_or_refused_by_name(seed: int, factor: float) -> None:
    network = RandomNetworks(seed, averaging_norms=False).network().eval()
    for name in layer_names(network, images(0)):
        try:
            grown = widen(network, name, factor, images(seed), seed=seed)
        except UserError as error:
            assert error.where
            continue
        assert relative_difference(network, grown, images(seed + 1)) < 1e-5, name


@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_a_layer_in_front_of_a_relu_is_deepened_and_no_other_changes_the_outputs(seed: int) -> None:
    network = RandomNetworks(seed).network().eval()
    for name in layer_names(network, images(0)):
        try:
            grown = deepen(network, name, images(seed))
        except UserError as error:
            assert error.where.startswith(name)
            assert not _relu_follows(network, name)
            continue
        assert relative_difference(network, grown, images(seed + 1)) < 1e-5, name
        assert len(layer_names(grown, images(0))) == len(layer_names(network, images(0))) + 1


@settings(max_examples=4, deadline=None)
@given(SEEDS)
def test_training_mode_is_preserved_without_an_inserted_batch_norm(seed: int) -> None:
    network = RandomNetworks(seed, dropout=False).network().train()
    for name in _inner(network):
        wide = widen(network, name, 2, images(seed))
        assert wide.training
        assert _training_difference(network, wide, seed) < 1e-5, name
        if _relu_follows(network, name):
            deep = deepen(network, name, images(seed), batch_norm=False)
            assert _training_difference(network, deep, seed) < 1e-6, name


@settings(max_examples=4, deadline=None)
@given(SEEDS, st.lists(st.integers(0, 99), min_size=3, max_size=3))
def test_a_network_grows_again_and_again(seed: int, choices: list[int]) -> None:
    network = grown = RandomNetworks(seed).network().eval()
    for choice in choices:
        names = layer_names(grown, images(0))
        try:
            name = names[choice % len(names)]
            grown = widen(grown, name, 2, images(seed)) if choice % 2 else deepen(grown, name, images(seed))
        except UserError:
            continue
    assert relative_difference(network, grown, images(seed + 1)) < 1e-5


def test_with_noise_the_copies_of_a_channel_get_different_gradients() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(400, 5))
    for noise, same in ((0.0, True), (0.2, False)):
        grown = widen(network, "0", 2, images(0), noise=noise, seed=3)
        grown(images(1)).square().sum().backward()
        gradient = grown.get_submodule("0").weight.grad
        assert torch.allclose(gradient[::2], gradient[1::2]) is same


def test_the_same_seed_gives_the_same_bits() -> None:
    network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))
    inputs = torch.randn(4, 6)
    states = [widen(network, "0", 1.4, inputs, noise=0.1, seed=seed).state_dict() for seed in (1, 1, 2)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not all(torch.equal(states[0][name], states[2][name]) for name in states[0])


def test_in_training_mode_an_inserted_batch_norm_is_nearer_the_nearer_its_calibration() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(800, 5))
    for seed in range(40):
        network(images(seed, 64))  # the statistics of its own batch norm
    near, far = (deepen(network, "0", images(50, 512) * scale) for scale in (1, 3))
    assert all(relative_difference(network, grown, images(8)) < 1e-5 for grown in (near, far))
    distances = [_training_difference(network, grown, 7) for grown in (near, far)]  # moves the running statistics
    assert 0 < distances[0] < 0.3 < distances[1]


def _training_difference(before: nn.Module, after: nn.Module, seed: int) -> float:
    with torch.no_grad():
        old, new = (model(images(seed + 1)) for model in (before, after))
    return float((old - new).abs().max() / old.abs().max())


def _channels(network: nn.Module, name: str) -> int:
    module = network.get_submodule(name)
    return module.out_features if isinstance(module, nn.Linear) else module.out_channels


def _relu_follows(network: nn.Module, name: str) -> bool:
    """Whether the layer stands in a sequence in which a ReLU is its activation."""
    path, _, number = name.rpartition(".")
    parent = network.get_submodule(path) if path else network
    if not isinstance(parent, nn.Sequential):
        return False
    behind = list(parent)[int(number) + 1 :]
    following = [module for module in behind if not isinstance(module, nn.Identity)]
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)
    if following and isinstance(following[0], norms):
        following = following[1:]
    return bool(following) and isinstance(following[0], nn.ReLU | nn.ReLU6)
