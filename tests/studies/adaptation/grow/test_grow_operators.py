"""Deepening and widening of networks of certain forms, and what they refuse."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.grow import deepen, layer_names, relative_difference, widen
from schedlab.studies.adaptation.grow.shipped import SHIPPED, resnet, vgg

PICTURES = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """A network whose forward pass is a given function of it and its input."""

    def __init__(self, forward, **modules: nn.Module) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)
        self.function = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def _head(features: int) -> dict[str, nn.Module]:
    return {"head": nn.Linear(features, 4)}


def _functional(net: nn.Module, x: Tensor) -> Tensor:
    x = F.dropout(F.max_pool2d(F.relu(net.conv(x)), 2), 0.5, net.training)
    return net.head(x.view(x.size(0), 6 * 7 * 7))


def _pooled(net: nn.Module, x: Tensor) -> Tensor:
    x = F.interpolate(net.conv(x).relu_(), scale_factor=2)
    return net.head(x.mean(dim=(2, 3)))


def _sliced(net: nn.Module, x: Tensor) -> Tensor:
    x = F.pad(torch.relu(net.conv(x)), (1, 1, 0, 0))[:, :, ::2, ::2]
    return net.head(torch.flatten(x.permute(0, 2, 3, 1).permute(0, 3, 1, 2), 1))


FORMS = {
    "functional": lambda: Net(_functional, conv=nn.Conv2d(3, 6, 3), **_head(6 * 49)),
    "pooled": lambda: Net(_pooled, conv=nn.Conv2d(3, 6, 3, 2), **_head(6)),
    "sliced": lambda: Net(_sliced, conv=nn.Conv2d(3, 6, (5, 1)), **_head(6 * 6 * 9)),
}


@pytest.mark.parametrize("form", FORMS)
def test_functions_and_methods_pass_channels_on(form: str) -> None:
    torch.manual_seed(0)
    network = FORMS[form]()
    for factor in (1.5, 2):
        assert relative_difference(network, widen(network, "conv", factor, PICTURES), PICTURES) < 1e-5
    assert relative_difference(network, deepen(network, "conv", PICTURES), PICTURES) < 1e-5


def test_a_functional_dropout_follows_the_mode_of_the_grown_network() -> None:
    grown = deepen(FORMS["functional"]().train(), "conv", PICTURES)
    assert not torch.equal(grown(PICTURES), grown(PICTURES))
    grown.eval()
    assert torch.equal(grown(PICTURES), grown(PICTURES))


@pytest.mark.parametrize("layer", [nn.Conv1d, nn.Conv2d, nn.Conv3d])
def test_convolutions_of_one_to_three_dimensions(layer: type[nn.Module]) -> None:
    dimensions = (nn.Conv1d, nn.Conv2d, nn.Conv3d).index(layer) + 1
    norm = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[dimensions - 1]
    network = nn.Sequential(layer(2, 4, 3, groups=2), norm(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    inputs = torch.randn(4, 2, *[6] * dimensions)
    network(inputs)
    network.eval()
    for grown in (deepen(network, "0", inputs), widen(network, "0", 1.5, inputs)):
        assert relative_difference(network, grown, inputs) < 1e-5


def test_the_layers_of_a_residual_stage_are_widened_alike() -> None:
    network = resnet("resnet20", width=4).eval()
    grown = widen(network, "blocks.0.conv2", 1.5, PICTURES)
    convolutions = layer_names(network, PICTURES)[:-1]
    wide = {name for name in convolutions if grown.get_submodule(name).out_channels == 6}
    assert wide == {"conv", *(f"blocks.{number}.conv2" for number in range(3))}
    assert relative_difference(network, grown, PICTURES) < 1e-5


def test_a_layer_is_inserted_behind_the_block_in_front_of_earlier_ones() -> None:
    network = vgg("vgg11", width=4).eval()
    inputs = torch.randn(4, 3, 32, 32)
    grown = deepen(deepen(network, "features.4", inputs), "features.4", inputs)
    names = layer_names(grown, inputs)
    place = names.index("features.4")
    assert names[place + 1 : place + 3] == ["features.4_insert2.conv", "features.4_insert1.conv"]
    assert isinstance(grown.get_submodule("features.4_insert2.batch_norm"), nn.BatchNorm2d)


def test_the_head_is_deepened_in_front_of_itself() -> None:
    network = resnet("resnet20", width=4).eval()
    grown = deepen(network, "classifier", PICTURES)
    assert grown.get_submodule("classifier_insert1.linear").weight.shape == (16, 16)


def test_the_given_network_stays_as_it_is() -> None:
    network = resnet("resnet20", width=4).train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    widen(network, "conv", 2, PICTURES)
    deepen(network, "conv", PICTURES)
    assert network.training
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())


@pytest.mark.parametrize("name", ["vgg11", "vgg19", "resnet20", "resnet56"])
def test_shipped_networks_classify_pictures_of_cifar(name: str) -> None:
    network = SHIPPED[name](name, width=4).eval()
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 10)


def _tied() -> nn.Module:
    network = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    network[2].weight = network[0].weight
    return network


def _twice() -> nn.Module:
    return Net(lambda net, x: net.head(net.inner(net.inner(x).relu()).relu()), inner=nn.Linear(6, 6), **_head(6))


def _branch(net: nn.Module, x: Tensor) -> Tensor:
    return net.head(x) if x.sum() > 0 else -net.head(x)


FLAT = torch.randn(4, 6)
REFUSED = {
    "head": (lambda: nn.Sequential(nn.Linear(6, 2)), "widen", "0 (Linear)"),
    "head without relu": (lambda: nn.Sequential(nn.Linear(6, 2)), "deepen", "0 (Linear)"),
    "tanh": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)), "deepen", "0 (Linear)"),
    "softmax": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Softmax(1), nn.Linear(5, 2)), "widen", "1 (Softmax)"),
    "tied": (_tied, "widen", "0 (Linear)"),
    "layer norm": (lambda: nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 2)), "widen", "1 (LayerNorm)"),
    "input": (
        lambda: Net(lambda n, x: n.head(x + getattr(n, "0")(x)), **{"0": nn.Linear(6, 6)}, **_head(6)),
        "widen",
        "x",
    ),
    "no layer": (lambda: nn.Sequential(nn.ReLU(), nn.Linear(6, 2)), "widen", "0"),
    "data": (lambda: Net(_branch, **_head(6)), "deepen", ""),
    "tuple": (lambda: Net(lambda net, x: (net.head(x), x), **_head(6)), "deepen", "Net"),
    "modes": (lambda: Net(lambda n, x: n.head(x).relu() if n.training else n.head(x), **_head(6)), "deepen", "Net"),
    "shapes": (lambda: nn.Sequential(nn.Linear(7, 2)), "widen", "Sequential"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_grown_is_refused_by_name(case: str) -> None:
    make, operation, where = REFUSED[case]
    with pytest.raises(UserError) as caught:
        deepen(make(), "0", FLAT) if operation == "deepen" else widen(make(), "0", 1.5, FLAT)
    assert caught.value.where.startswith(where) or where == ""
    assert "\n" not in str(caught.value)


def test_a_module_that_runs_twice_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        widen(_twice(), "inner", 2, FLAT)
    assert caught.value.where == "inner (Linear)"


def test_an_even_kernel_has_no_identity() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(900, 2))
    with pytest.raises(UserError) as caught:
        deepen(network, "0", PICTURES)
    assert caught.value.where == "0 (Conv2d)"
    assert relative_difference(network, widen(network, "0", 2, PICTURES), PICTURES) < 1e-5


def test_an_unknown_block_gets_the_nearest_name() -> None:
    with pytest.raises(UserError) as caught:
        widen(resnet("resnet20", width=4), "blocks.0.conv3", 2, PICTURES)
    assert "blocks.0.conv" in caught.value.remedy


@pytest.mark.parametrize("factor", [0.5, 1.0, -1.0, float("nan"), float("inf"), 1e9, 1.01])
def test_a_factor_that_adds_no_channel_is_refused(factor: float) -> None:
    with pytest.raises(UserError):
        widen(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)), "0", factor, FLAT)


def test_a_network_of_random_outputs_is_refused() -> None:
    network = Net(lambda net, x: net.head(F.dropout(net.inner(x).relu(), 0.5, True)), inner=nn.Linear(6, 6), **_head(6))
    with pytest.raises(UserError):
        deepen(network, "inner", FLAT)
