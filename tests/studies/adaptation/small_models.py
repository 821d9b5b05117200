"""The model files as typed settings, and small copies of them for tests that train or compare."""

from __future__ import annotations

from pathlib import Path

import torch
import yaml

from schedlab.config.schema import validate
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture
from schedlab.studies.adaptation.network.models import Network, build

torch.set_num_threads(1)

FOLDER = Path(__file__).resolve().parents[3] / "conf" / "model"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def settings(name: str, **changes) -> ModelSettings:
    """The settings of a model file with some keys changed."""
    return validate(ModelSettings, {**yaml.safe_load((FOLDER / f"{name}.yaml").read_text()), **changes})


def small(name: str, head_relu: bool = False) -> ModelSettings:
    """The same blocks with at most five channels, on 14x14 images (tiny8: as it is)."""
    plain = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    if name != "tiny8":
        plain["input"] = {"channels": 3, "height": 14, "width": 14}
        for block in plain["blocks"][:-1]:
            if "out" in block:
                block["out"] = min(block["out"], 5)
    return validate(ModelSettings, {**plain, "head_relu": head_relu})


def images(network: Network, count: int = 6, seed: int = 1) -> torch.Tensor:
    """Signed images that fit a network."""
    return torch.randn(count, *network.architecture.input, generator=torch.Generator().manual_seed(seed))


def used(name: str, head_relu: bool = False, seed: int = 3) -> Network:
    """A small network with images' statistics in its batch norms, and logits of both signs that differ."""
    network = build(architecture(small(name, head_relu)), seed).train()
    linear = [tensor for key, tensor in network.state_dict().items() if "linear" in key]
    for tensor in linear:
        tensor.mul_(2)
    with torch.no_grad():
        for step in range(25):
            network(images(network, 16, seed=step))
    return network.eval()


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Largest difference, relative to the largest value."""
    return float(((one - other).abs().max() / one.abs().max()).detach())
