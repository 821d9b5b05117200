"""Growth keeps the function: deeper, wider, in every order; what it may change; the way back."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from small_models import NAMES, difference, images, small, used
from small_models import settings as model

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.network.growth import deepen, shrink, soft_target_loss, widen
from schedlab.studies.adaptation.network.models import Network, build
from schedlab.studies.adaptation.scenario import GrowthSettings

DEPTH = 3
RELATIVE = {"calibrated": 1e-6, "default": 1e-5}  # what one insertion may change


def every_order(network: Network, growth: GrowthSettings):
    """Yield (actions, grown network) for every order of up to three insertions (one where blocks are many)."""
    frontier = [((), network)]
    for _ in range(DEPTH if network.architecture.deepenable_blocks < 5 else 1):
        frontier = [
            ((*actions, block), deepen(grown, block, growth, images(network, 24, seed=5), seed=0))
            for actions, grown in frontier
            for block in range(network.architecture.deepenable_blocks)
        ]
        yield from frontier


@pytest.mark.parametrize("head_relu", [False, True])
@pytest.mark.parametrize("bn_init", ["calibrated", "default"])
@pytest.mark.parametrize("name", NAMES)
def test_evaluation_mode_is_preserved_in_every_order(name, bn_init, head_relu):
    network = used(name, head_relu)
    x = images(network)
    before = network(x).detach()
    assert before.abs().max() > 0.1 and before.std(0).max() > 0.02  # the features reach the logits
    for actions, grown in every_order(network, GrowthSettings(bn_init=bn_init)):
        tolerance = RELATIVE[bn_init] * (len(actions) if bn_init == "default" else 1)
        assert difference(before, grown(x)) <= tolerance, actions
        assert grown.architecture.insertions == tuple(
            actions.count(block) for block in range(network.architecture.deepenable_blocks)
        )


@pytest.mark.parametrize("name", ["tiny8", "convnet2", "convnet3", "feed_forward_net3"])
def test_training_mode_is_bit_equal_without_inserted_batch_norm(name):
    network = used(name).train()
    x = images(network)
    before = network(x).detach()
    for actions, grown in every_order(network, GrowthSettings(bn_init="none")):
        assert grown.training
        assert torch.equal(before, grown(x)), actions


def test_published_sizes_are_preserved():
    for name in ("convnet2", "convnet3"):
        network = build(architecture(model(name, head_relu=True)), 2)
        x = images(network, 8)
        network.train()(x), network.eval()
        before = network(x).detach()
        grown = network
        for block in (0, 1, 2):
            grown = deepen(grown, block, GrowthSettings(), x, seed=0)
        assert difference(before, grown(x)) < 1e-6


def test_inserted_batch_norm_changes_the_training_mode():
    network = used("convnet2").train()
    x = images(network)
    grown = deepen(network, 0, GrowthSettings(bn_init="default"), None, seed=0)
    assert difference(network(x), grown(x)) > 1e-3


def test_calibration_uses_the_first_512_images_of_the_present_network_and_touches_nothing_else():
    network = used("convnet2").train()
    many = images(network, 600)
    grown = deepen(network, 0, GrowthSettings(), many, seed=0)
    again = deepen(network, 0, GrowthSettings(), many[:512], seed=0)
    assert grown.training
    state, before = grown.state_dict(), network.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in before.items())
    assert all(torch.equal(state[name], tensor) for name, tensor in again.state_dict().items())
    features = network.eval()(many[:512], stop=3)
    norm = "block0.insert1.batch_norm."
    torch.testing.assert_close(state[norm + "running_mean"], features.mean((0, 2, 3)))
    torch.testing.assert_close(state[norm + "running_var"], features.var((0, 2, 3), correction=0), rtol=5e-6, atol=0)
    torch.testing.assert_close(state[norm + "weight"], (features.var((0, 2, 3), correction=0) + 1e-5).sqrt())
    with pytest.raises(ValueError, match="training images"):
        deepen(network, 0, GrowthSettings(), None, seed=0)


@pytest.mark.parametrize("bn_init", ["calibrated", "default", "none"])
def test_batch_norm_is_inserted_only_where_the_block_has_one(bn_init):
    growth = GrowthSettings(bn_init=bn_init)
    for name, blocks in (("tiny8", ()), ("convnet2", (0, 1))):
        network = used(name)
        for block in range(3):
            grown = deepen(network, block, growth, images(network), seed=0)
            inserted = {layer.kind for layer in grown.architecture.layers if layer.inserted}
            assert ("batch_norm" in inserted) == (block in blocks and bn_init != "none")


@pytest.mark.parametrize("head_relu", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_tensor_of_an_inserted_layer_has_a_gradient(name, head_relu):
    network = used(name, head_relu).train()
    x = images(network, 16)
    for block in range(network.architecture.deepenable_blocks):
        grown = deepen(network, block, GrowthSettings(), x, seed=0)
        F.cross_entropy(grown(x), torch.arange(16) % 10).backward()
        gradients = {key: tensor.grad for key, tensor in grown.named_parameters() if ".insert" in key}
        assert gradients and all(gradient.abs().max() > 0 for gradient in gradients.values())


def test_a_head_without_relu_gives_negative_logits_after_growth_too():
    network = used("convnet2")
    with torch.no_grad():
        network.state_dict()["head.linear.bias"].sub_(5)
    grown = deepen(network, 2, GrowthSettings(), None, seed=0)
    assert (grown(images(network)) < 0).all()
    assert torch.equal(grown(images(network)), network(images(network)))


def test_growth_leaves_the_network_before_it_alone():
    network = used("convnet2")
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    for grown in (
        deepen(network, 0, GrowthSettings(), images(network), 0),
        widen(network, 0, 2, 0)[0],
        shrink(network, network),
    ):
        for tensor in grown.state_dict().values():
            tensor.zero_()
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_symmetry_noise_is_relative_and_seeded():
    network = used("tiny8")

    def weight(noise, seed):
        return deepen(network, 0, GrowthSettings(symmetry_noise=noise), None, seed).state_dict()[
            "block0.insert1.conv.weight"
        ]

    exact, noisy = weight(0.0, 1), weight(0.1, 1)
    assert set(exact.unique().tolist()) == {0.0, 1.0} and exact.sum() == 8
    assert torch.equal(noisy, weight(0.1, 1)) and not torch.equal(noisy, weight(0.1, 2))
    assert torch.equal(noisy == 0, exact == 0)
    assert 0 < (noisy - exact).abs().max() < 0.5


def _widenable(network: Network) -> list[int]:
    blocks = []
    for block in range(network.architecture.deepenable_blocks):
        try:
            network.architecture.widening(block)
        except UserError:
            continue
        blocks.append(block)
    return blocks


@pytest.mark.parametrize("name", [name for name in NAMES if name != "feed_forward_net"])
def test_widening_is_exact_in_both_modes(name):
    network = used(name).to(torch.float64)
    x = images(network).double()
    assert _widenable(network)
    for block in _widenable(network):
        for factor in (1.5, 2, 3.2):
            wide, _ = widen(network, block, factor, seed=4)
            assert wide.architecture == network.architecture.widened(block, factor)
            for mode in (False, True):
                assert difference(network.train(mode)(x), wide.train(mode)(x)) < 1e-12


def test_widening_reaches_through_a_flatten():
    plain = small("convnet2").model_dump(exclude_unset=True)
    plain["blocks"] = [
        {"kind": "flatten"} if block["kind"] == "global_average_pool" else block for block in plain["blocks"]
    ]
    network = build(architecture(type(small("convnet2")).model_validate(plain)), 3).eval()
    x = images(network)
    for block in (0, 1):
        wide, _ = widen(network, block, 2.4, seed=1)
        assert difference(network(x), wide(x)) < 1e-6


def test_widening_and_deepening_mix_in_every_order():
    network = used("convnet2").to(torch.float64)
    x = images(network).double()
    growth = GrowthSettings()
    for first in (0, 1):
        for second in (0, 1, 2):
            one = deepen(widen(network, first, 1.6, 1)[0], second, growth, x, 1)
            other = widen(deepen(network, second, growth, x, 1), first, 1.6, 1)[0]
            assert difference(network(x), one(x)) < 1e-9
            assert difference(network(x), other(x)) < 1e-9


def test_widened_moments_are_those_of_the_widened_function():
    network = used("convnet2").to(torch.float64).train()
    x, targets = images(network, 32).double(), torch.arange(32) % 10
    wide, resized = widen(network, 0, 2.5, seed=2)
    for one in (network, wide):
        F.cross_entropy(one(x), targets).backward()
    gradients = {name: tensor.grad for name, tensor in wide.named_parameters()}
    for name, tensor in network.named_parameters():
        expected, squared = tensor.grad, tensor.grad**2
        if name in resized:
            expected, squared = resized[name].first_moment(expected), resized[name].second_moment(squared)
        torch.testing.assert_close(gradients[name], expected, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(gradients[name] ** 2, squared, rtol=1e-7, atol=1e-12)
    changed = {name for name, tensor in wide.state_dict().items() if tensor.shape != network.state_dict()[name].shape}
    assert changed == set(resized)


def test_copies_of_a_channel_stay_equal_without_noise_and_part_with_it():
    network = used("tiny8")
    x, targets = images(network, 32), torch.arange(32) % 10
    for noise, equal in ((0.0, True), (0.01, False)):
        wide, resized = widen(network, 0, 2, seed=3, noise=noise)
        optimizer = torch.optim.SGD(wide.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(wide.train()(x), targets).backward()
            optimizer.step()
        weight, index = wide.state_dict()["block0.conv.weight"], resized["block0.conv.weight"].index
        assert torch.allclose(weight[8:], weight[index[8:]], rtol=1e-6, atol=1e-7) == equal


def test_the_way_back_takes_the_first_layer_of_each_original_block():
    small_one = used("convnet2", seed=3)
    large = deepen(
        deepen(used("convnet2", seed=9), 0, GrowthSettings(), images(small_one), 0), 2, GrowthSettings(), None, 0
    )
    back = shrink(large, small_one)
    assert back.architecture == small_one.architecture
    taken = {
        f"{layer}.{name}" for layer in ("block0.conv", "block1.conv", "head.linear") for name in ("weight", "bias")
    }
    for name, tensor in back.state_dict().items():
        source = large if name in taken else small_one
        assert torch.equal(tensor, source.state_dict()[name]), name
    wide, _ = widen(large, 0, 2, 0)
    with pytest.raises(UserError, match=r"block0\.conv\.weight"):
        shrink(wide, small_one)


def test_soft_targets():
    generator = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(5, 10, generator=generator).requires_grad_() for _ in range(2))
    targets = torch.arange(5)
    hard = F.cross_entropy(student, targets)
    assert torch.equal(soft_target_loss(student, teacher, targets, 0.0), hard)
    by_hand = -((teacher / 2).softmax(1) * (student / 2).log_softmax(1)).sum(1).mean()
    loss = soft_target_loss(student, teacher, targets, 0.75)
    torch.testing.assert_close(loss, 0.75 * 4 * by_hand + 0.25 * hard)
    loss.backward()
    assert student.grad.abs().max() > 0 and teacher.grad is None
    same = teacher.detach().clone().requires_grad_()
    soft_target_loss(same, teacher, targets, 1.0).backward()
    assert same.grad.abs().max() < 1e-6  # a student that equals its teacher has nothing to learn from it
