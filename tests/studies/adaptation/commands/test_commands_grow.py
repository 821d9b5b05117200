"""`schedlab adaptation grow`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import torch

from schedlab.cli.main import main
from schedlab.config.plugins import load_module
from schedlab.studies.adaptation.grow import load_grown, relative_difference

MODEL = """
import torch
from torch import nn

def make():
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(),
                         nn.Linear(384, 8), nn.ReLU(), nn.Linear(8, 4))

def broken():
    raise KeyError("size")

def number():
    return 3

class Branching(nn.Linear):
    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else x

def branching():
    return nn.Sequential(Branching(4, 4), nn.Linear(4, 2))

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return self.layer(x), x

class Named(nn.Linear):
    def __init__(self):
        super().__init__(4, 2)
    def forward(self, x):
        return {"out": super().forward(x)}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").symlink_to(repository / "conf")
    (tmp_path / "net.py").write_text(f"{MODEL}# {tmp_path}\n")  # a file of its own for each test
    return tmp_path / "net.py"


def _grow(*words: str) -> int:
    return main(["adaptation", "grow", *words])


def _printed(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out)


def test_a_factory_grows_and_its_file_gives_the_grown_network_back(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _grow("net.py:make", "--deepen", "0", "5", "--widen", "0:1.5", "--out", "grown.pt") == 0
    found = _printed(capsys)
    assert found["largest_relative_difference"] < 1e-5
    assert found["input"] == [3, 32, 32]
    assert [next(iter(step.items())) for step in found["steps"]] == [("deepen", "0"), ("deepen", "5"), ("widen", "0")]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        original = load_module(model).make()
    grown = load_grown("grown.pt", load_module(model).make())
    assert grown.get_submodule("0").out_channels == 9
    assert relative_difference(original, grown, torch.randn(4, 3, 32, 32)) < 1e-5


@pytest.mark.usefixtures("model")
def test_equal_calls_write_equal_bytes() -> None:
    for name in ("a.pt", "b.pt"):
        assert _grow("net.py:make", "--widen", "5:2", "--out", name) == 0
    assert Path("a.pt").read_bytes() == Path("b.pt").read_bytes()


def test_weights_and_a_grown_file_grow_with_their_network(model: Path) -> None:
    torch.save({"state_dict": (network := load_module(model).make()).state_dict()}, "weights.pt")
    assert _grow("weights.pt", "--model", "net.py:make", "--widen", "0:2", "--out", "one.pt") == 0
    assert _grow("one.pt", "--model", "net.py:make", "--deepen", "5", "--out", "two.pt") == 0
    grown = load_grown("two.pt", load_module(model).make())
    assert relative_difference(network, grown, torch.randn(4, 3, 32, 32)) < 1e-5
    assert grown.get_submodule("0").out_channels == 12


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("name", ["tiny8", "batch_norm_convolution", "feed_forward_net2", "vgg11"])
def test_shipped_networks_grow_by_number(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _grow(name, "--widen", "0:1.5", "--deepen", "0", "--out", "grown.pt") == 0
    assert _printed(capsys)["largest_relative_difference"] < 1e-5


@pytest.mark.usefixtures("model")
def test_pictures_of_a_data_set_calibrate_and_noise_keeps_the_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--deepen", "0", "--widen", "1:2", "--noise", "0.5", "--data", "digits"]
    assert _grow("tiny8", *words, "--out", "grown.pt") == 0
    assert _printed(capsys)["largest_relative_difference"] < 1e-5


WRONG = {
    "no file": (["missing.py:make", "--deepen", "0"], "missing.py"),
    "no factory": (["net.py:mak", "--deepen", "0"], "make"),
    "no name": (["net.py", "--deepen", "0"], "net.py"),
    "raises": (["net.py:broken", "--deepen", "0"], "net.py:10"),
    "no module": (["net.py:number", "--deepen", "0"], "net.py"),
    "control flow": (["net.py:branching", "--deepen", "0"], "net.py:17"),
    "dict": (["net.py:Named", "--deepen", "0"], "dict"),
    "pair": (["net.py:Pair", "--deepen", "0"], "Pair"),
    "block": (["net.py:make", "--deepen", "11"], "0 (0)"),
    "name": (["resnet20", "--deepen", "blocks.0.conv7"], "blocks.0.conv"),
    "activation": (["net.py:make", "--widen", "2:1.5"], "ReLU"),
    "factor": (["net.py:make", "--widen", "0:0.5"], "--widen"),
    "no factor": (["net.py:make", "--widen", "0"], "--widen"),
    "shipped": (["vgg12", "--deepen", "0"], "vgg1"),
    "input": (["net.py:make", "--deepen", "0", "--input", "3x7"], "3"),
    "weights alone": (["weights.pt", "--deepen", "0"], "--model"),
    "no weights": (["weights.pt", "--model", "net.py:make", "--deepen", "0"], "weights.pt"),
    "nothing": (["net.py:make"], "--deepen"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_ends_with_one_sentence(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, named = WRONG[case]
    assert _grow(*words, "--out", "grown.pt") == 2
    text = capsys.readouterr().err
    assert named in text
    assert "Traceback" not in text
    assert not Path("grown.pt").exists()


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple:
        return Path.touch, (Path("ran"),)


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("kind", ["pickle", "torch", "module", "text"])
def test_a_file_with_code_is_refused_and_its_code_does_not_run(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path("evil.pt")
    if kind == "pickle":
        file.write_bytes(pickle.dumps(Evil()))
    elif kind == "text":
        file.write_text("weights")
    else:
        torch.save({"state_dict": Evil()} if kind == "torch" else torch.nn.Linear(2, 2), file)
    assert _grow("evil.pt", "--model", "net.py:make", "--deepen", "0", "--out", "grown.pt") == 2
    assert "evil.pt" in capsys.readouterr().err
    assert not Path("ran").exists()


def test_other_weights_are_refused_by_their_tensor(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({**load_module(model).make().state_dict(), "7.bias": torch.zeros(5)}, "weights.pt")
    assert _grow("weights.pt", "--model", "net.py:make", "--deepen", "0", "--out", "grown.pt") == 2
    assert "7.bias" in capsys.readouterr().err
