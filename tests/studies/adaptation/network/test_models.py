"""Networks: initial values by name, the same function as torch's own modules, copies that share nothing."""

from __future__ import annotations

import copy

import pytest
import torch
from small_models import NAMES, difference, images, small, used
from torch import nn

from schedlab.config.schema import validate
from schedlab.studies.adaptation.network.architecture import Architecture, Layer, ModelSettings, architecture
from schedlab.studies.adaptation.network.growth import deepen
from schedlab.studies.adaptation.network.models import Network, build, initial_tensors
from schedlab.studies.adaptation.scenario import GrowthSettings

MODULES = {
    "conv": lambda layer: nn.Conv2d(
        layer.inputs, layer.outputs, layer.kernel, layer.stride, layer.padding, bias=layer.bias
    ),
    "linear": lambda layer: nn.Linear(layer.inputs, layer.outputs, bias=layer.bias),
    "batch_norm": lambda layer: (nn.BatchNorm1d if layer.name.startswith("linear") else nn.BatchNorm2d)(layer.outputs),
    "relu": lambda _: nn.ReLU(),
    "tanh": lambda _: nn.Tanh(),
    "sigmoid": lambda _: nn.Sigmoid(),
    "max_pool": lambda layer: nn.MaxPool2d(layer.kernel, layer.stride),
    "avg_pool": lambda layer: nn.AvgPool2d(layer.kernel, layer.stride),
    "global_average_pool": lambda _: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    "flatten": lambda _: nn.Flatten(),
}


def torch_modules(network: Network) -> nn.Sequential:
    """The same layers as torch's modules, with the network's tensors."""
    modules = nn.Sequential()
    for layer in network.architecture.layers:
        module = MODULES[layer.kind](layer)
        state = network.state_dict()
        names = {name.removeprefix(layer.name + "."): name for name in (*layer.parameters, *layer.buffers)}
        module.load_state_dict({short: state[name].clone() for short, name in names.items()}, strict=False)
        modules.append(module)
    return modules


@pytest.mark.parametrize("head_relu", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_same_outputs_gradients_and_running_statistics_as_torch_modules(name, head_relu):
    network = used(name, head_relu)
    modules = torch_modules(network)
    x = images(network)
    for mode in (True, False):
        network.train(mode), modules.train(mode)
        one, other = network(x), modules(x)
        assert one.shape == (6, 10) and difference(one, other) < 1e-6
        network.zero_grad(), modules.zero_grad()
        one.square().sum().backward(), other.square().sum().backward()
    ours, theirs = dict(network.named_parameters()), list(modules.parameters())
    order = [name for layer in network.architecture.layers for name in layer.parameters]
    for own, reference in zip(order, theirs, strict=True):
        torch.testing.assert_close(ours[own].grad, reference.grad, rtol=1e-4, atol=1e-5)
    assert sum(tensor.numel() for tensor in ours.values()) == network.architecture.parameters


def test_a_users_model_with_every_other_kind_of_block():
    blocks = [
        {"kind": "conv", "out": 6, "kernel": 4, "stride": 2, "padding": 2, "activation": "tanh", "deepen": False},
        {"kind": "max_pool", "kernel": 3, "stride": 1},
        {
            "kind": "conv",
            "out": 4,
            "kernel": 1,
            "bias": False,
            "batch_norm": True,
            "activation": "sigmoid",
            "deepen": False,
        },
        {"kind": "flatten"},
        {"kind": "linear", "out": 7, "batch_norm": True, "deepen": False},
        {"kind": "linear", "out": 3},
    ]
    image = {"channels": 2, "height": 10, "width": 7}
    network = build(architecture(validate(ModelSettings, {"name": "mine", "input": image, "blocks": blocks})), 1)
    modules, x = torch_modules(network), images(network)
    for mode in (True, False):
        one, other = network.train(mode)(x), modules.train(mode)(x)
        assert one.shape == (6, 3) and difference(one, other) < 1e-6
    shapes = [module_input.shape[1:] for module_input in (network(x, stop=stop) for stop in range(1, len(modules) + 1))]
    assert tuple(tuple(shape) for shape in shapes) == network.architecture.shapes
    assert network.architecture.parameters == sum(tensor.numel() for tensor in modules.parameters())
    x16 = images(network, 16)
    grown = deepen(network, 0, GrowthSettings(), x16, 0)  # behind the linear block's ReLU, in front of the head
    assert [layer.name for layer in grown.architecture.layers][-4:] == [
        "linear4.relu",
        "block0.insert1.linear",
        "block0.insert1.relu",
        "head.linear",
    ]
    assert torch.equal(network(x), grown(x))


def test_initial_values_depend_on_seed_and_name_alone():
    base = architecture(small("convnet2"))
    torch.manual_seed(1)
    one = build(base, 7).state_dict()
    torch.manual_seed(2)
    grown = build(base.deepened(0), 7).state_dict()
    assert all(torch.equal(grown[name], tensor) for name, tensor in one.items())
    assert not torch.equal(one["block0.conv.weight"], build(base, 8).state_dict()["block0.conv.weight"])
    assert not torch.equal(one["block0.conv.bias"], one["block1.conv.bias"])


def test_building_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    build(architecture(small("convnet2")), 7)
    assert torch.equal(before, torch.get_rng_state())


def test_initial_values_have_torchs_default_bounds():
    network = build(architecture(small("large_convnet")), 5)
    layer = network.architecture.layers[3]
    weight = network.state_dict()[f"{layer.name}.weight"]
    bound = (layer.inputs * 9) ** -0.5
    assert 0.9 * bound < weight.abs().max() <= bound
    assert abs(weight.std() / (bound / 3**0.5) - 1) < 0.15


def test_a_deep_copy_shares_no_tensor_and_runs_on_its_own():
    network = used("convnet2")
    twin, x = copy.deepcopy(network), images(network)
    before = network(x)
    with torch.no_grad():
        twin.state_dict()["head.linear.weight"].zero_()
    assert torch.equal(network(x), before)
    assert torch.equal(twin(x), twin.state_dict()["head.linear.bias"].expand(6, -1))


def test_loaded_and_converted_states_reach_the_forward_pass():
    network, other = used("convnet2"), used("convnet2", seed=4)
    x = images(network)
    for assign in (False, True):
        twin = build(network.architecture, 0).eval()
        twin.load_state_dict(other.state_dict(), assign=assign)
        assert torch.equal(twin(x), other(x))
    double = copy.deepcopy(network).to(torch.float64)
    assert double(x.double()).dtype == torch.float64
    assert difference(network(x), double(x.double()).float()) < 1e-5


def test_stop_returns_the_output_of_the_first_layers():
    network = used("tiny8")
    x = images(network)
    assert torch.equal(network(x, stop=0), x)
    assert network(x, stop=3).shape == (6, 8, 3, 3)
    assert torch.equal(network(x, stop=len(network.architecture.layers)), network(x))


def test_tensors_that_do_not_fit_are_refused():
    network = used("tiny8")
    state = network.state_dict()
    with pytest.raises(ValueError, match=r"block0\.conv\.bias"):
        Network(network.architecture, {name: tensor for name, tensor in state.items() if name != "block0.conv.bias"})
    with pytest.raises(ValueError, match=r"shape \(7,\), expected \(8,\)"):
        Network(network.architecture, {**state, "block0.conv.bias": torch.zeros(7)})


@pytest.mark.parametrize(
    ("side", "kernel", "padding", "stride"),
    [(3, 3, 0, 1), (1, 3, 1, 1), (1, 5, 2, 1), (4, 3, 0, 2), (2, 5, 2, 3), (1, 1, 0, 1)],
)
def test_a_convolution_with_one_output_position_is_the_convolution(side, kernel, padding, stride):
    layer = Layer("conv", "block0.conv", 3, 4, kernel, stride, padding)
    network = Network(Architecture("one", (3, side, side), (layer,)), initial_tensors(layer, 1))
    x = torch.randn(5, 3, side, side, generator=torch.Generator().manual_seed(2), requires_grad=True)
    weight, bias = network.parameters()
    found, wanted = network(x), torch.conv2d(x, weight, bias, stride, padding)
    assert found.shape == wanted.shape == (5, 4, 1, 1)
    torch.testing.assert_close(found, wanted)
    slope = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    gradients = [torch.autograd.grad((output * slope).sum(), (x, weight, bias)) for output in (found, wanted)]
    torch.testing.assert_close(*gradients)
