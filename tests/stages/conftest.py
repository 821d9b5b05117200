"""A working directory with the toy study and frozen parts as the configuration would freeze them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from schedlab.config.schema import validate
from schedlab.stages import studies

HILL = {
    "name": "hill",
    "kind": "learned",
    "mode": "default",
    "target": "hill_climbing",
    "params": {"start": 0.0, "step_size": 0.5},
    "seeds": [0, 1, 2, 3, 4],
    "train_on": [
        {"scenarios": ["near"], "steps": 5, "params": {}},
        {"scenarios": ["near", "far"], "steps": 5, "params": {"step_size": 0.8}},
    ],
    "parent": None,
}
RULES = [
    {
        "name": "zero",
        "kind": "rule",
        "mode": "default",
        "trained_on": "",
        "target": "constant",
        "params": {},
        "seeds": [0],
    },
    {
        "name": "three",
        "kind": "rule",
        "mode": "default",
        "trained_on": "",
        "target": "constant",
        "params": {"guess": 3.0},
        "seeds": [0],
    },
    {
        "name": "dice",
        "kind": "rule",
        "mode": "default",
        "trained_on": "",
        "target": "dice",
        "params": {},
        "seeds": [0, 1, 2],
    },
]


class Toy:
    """The toy study in a working directory of its own; `part` writes frozen parts, `inputs` are prepared."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hill, self.rules = folder, HILL, RULES
        self.study = studies.load("toy")
        self.inputs = {scenario: self._prepare(scenario) for scenario in ("near", "far")}

    def _prepare(self, scenario: str) -> dict[str, Path]:
        values = yaml.load(Path(f"conf/scenario/toy/{scenario}.yaml").read_text(), Loader=yaml.CSafeLoader)
        part = self.study.parts(validate(self.study.scenario, values))["draw_targets"]
        path = self.folder / "inputs" / scenario / "targets.json"
        sys.modules["toy_study.study"].draw_targets(part.values, path)
        return {"targets": path}

    def part(self, name: str, **values: object) -> Path:
        path = self.folder / "parts" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump({"study": "toy", "results_version": 1, "seed": 11, **values}))
        return path

    def problem(self, scenario: str, mode: str = "default") -> dict[str, object]:
        return {"name": scenario, "mode": mode, "seed": 7, "units": 6}

    def learn_part(self, file: str = "learn", **changes: object) -> Path:
        return self.part(
            file, policy={**HILL, **changes}, problems={name: self.problem(name) for name in ("near", "far")}
        )

    def evaluate_part(self, scenario: str, policies: list, name: str = "evaluate", **changes: object) -> Path:
        return self.part(
            name, **{"scenario": scenario, "problem": self.problem(scenario), "policies": policies, **changes}
        )


def make_toy(folder: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Enter a working directory in which the toy is found through its own conf/study/toy.yaml."""
    shutil.copytree(repository / "tests" / "toy_study" / "conf", folder / "conf")
    (folder / "tests").symlink_to(repository / "tests")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Toy(folder)


@pytest.fixture
def toy(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """The toy in a fresh working directory."""
    return make_toy(tmp_path, repository, monkeypatch)


@pytest.fixture(scope="module")
def shared_toy(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Toy]:
    """The toy in a working directory that the tests of a module share."""
    with pytest.MonkeyPatch.context() as patch:
        yield make_toy(tmp_path_factory.mktemp("toy"), repository, patch)
