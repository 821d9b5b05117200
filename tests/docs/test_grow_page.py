"""The page on growing a network: its program and its command, run as they stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from page_parts import blocks

from schedlab.cli.main import main


def test_the_program_of_the_page_grows_a_network(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks((repository / "docs/guide/grow_a_network.md").read_text(), "python")
    exec(compile(program, "grow_a_network.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out.split() == ["12", "12", "True"]


def test_the_command_of_the_page_writes_the_grown_network(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    layers = "conv1=Conv2d(3, 8, 3), relu1=ReLU(), conv2=Conv2d(8, 8, 3), relu2=ReLU(), pool=AdaptiveAvgPool2d(1), "
    text = "from collections import OrderedDict\nfrom torch.nn import *\n\ndef make():\n"
    Path("model.py").write_text(
        f"{text}    return Sequential(OrderedDict({layers}flat=Flatten(), head=Linear(8, 10)))\n"
    )
    words = blocks((repository / "docs/guide/grow_a_network.md").read_text(), "")[0].split()
    assert words[0] == "schedlab" and main(words[1:]) == 0
    assert json.loads(capsys.readouterr().out)["largest_relative_difference"] < 1e-5
    assert Path("grown.pt").stat().st_size > 1000
