"""Our Adam takes the steps of torch's, and goes on from a stored memory as if it had not been stored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint


def network() -> torch.nn.Linear:
    torch.manual_seed(3)
    return torch.nn.Linear(3, 2)


def take(module: torch.nn.Linear, optimizer, first: int, last: int) -> None:
    for number in range(first, last):
        optimizer.zero_grad()
        (module(torch.ones(1, 3)) * (number + 1)).pow(2).sum().backward()
        optimizer.step()


def equal(one: torch.nn.Linear, other: torch.nn.Linear) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_it_takes_the_steps_of_torch() -> None:
    ours, theirs = network(), network()
    take(ours, Adam(ours.parameters(), 0.1), 0, 7)
    take(theirs, torch.optim.Adam(theirs.parameters(), 0.1, fused=True), 0, 7)
    assert equal(ours, theirs) and not equal(ours, network())


def test_it_goes_on_as_if_it_had_not_been_stored(tmp_path: Path) -> None:
    whole, halves = network(), network()
    take(whole, Adam(whole.parameters(), 0.1), 0, 5)
    first = Adam(halves.parameters(), 0.1)
    take(halves, first, 0, 2)
    write_checkpoint(tmp_path / "c.zip", {"kind": "k"}, first.arrays())
    second = Adam(halves.parameters(), 0.1)
    second.load(read_checkpoint(tmp_path / "c.zip", "k").arrays)
    take(halves, second, 2, 5)
    assert equal(whole, halves)


def test_a_parameter_without_gradient_is_refused() -> None:
    with pytest.raises(ValueError, match="no gradient"):
        Adam(network().parameters(), 0.1).step()


def test_it_does_not_import_the_compiler() -> None:
    code = "import sys, torch; from schedlab.learning.adam import Adam; Adam(torch.nn.Linear(2, 2).parameters(), 0.1)"
    done = subprocess.run([sys.executable, "-c", f"{code}; sys.exit('torch._dynamo' in sys.modules)"], timeout=120)
    assert done.returncode == 0


def test_torchs_own_without_its_compiler_takes_the_same_steps() -> None:
    program = """
import sys, torch
from schedlab.learning.adam import TorchAdam
kind = torch.optim.Adam if "torch" in sys.argv else TorchAdam
torch.manual_seed(0)
layer = torch.nn.Linear(5, 3)
optimizer = kind(layer.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    (layer(torch.ones(2, 5)) ** 4).sum().backward()
    optimizer.step()
optimizer.load_state_dict(optimizer.state_dict())
print(layer.weight.flatten().tolist(), "torch._dynamo" in sys.modules)
"""
    ours, theirs = (
        subprocess.run([sys.executable, "-c", program, who], capture_output=True, text=True, check=True).stdout.strip()
        for who in ("ours", "torch")
    )
    assert ours.endswith("False") and theirs.endswith("True")
    assert ours.removesuffix("False") == theirs.removesuffix("True")
