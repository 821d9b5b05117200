"""A configuration folder for a study of two numbers, and that study's door."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schedlab.config import experiment
from schedlab.config.contract import Metric, Part, Requirement, Study
from schedlab.config.experiment import Experiment
from schedlab.config.schema import Settings, section, setting
from schedlab.config.settings import ScenarioSettings


class Slope(Settings):
    """A slope."""

    rate: float = setting(1.0, doc="rise of the line", unit="1/s", gt=0)


class LineScenario(ScenarioSettings):
    """A line."""

    slope: Slope = section(Slope, doc="how steep")
    size: int = setting(3, doc="points", unit="points", ge=1)
    data: str = setting("", doc="file that must be there")


class LineScale(Settings):
    """Sizes."""

    size: int = setting(3, doc="points")


class GuessSettings(Settings):
    """A learner's values."""

    rate: float = setting(0.1, doc="step", gt=0)


class LineFigure(Settings):
    """A drawing's values."""

    record: str = setting("", doc="file that the drawing reads")


def line_study() -> Study:
    """The door of the study `line`."""
    return Study(
        name="line",
        question="where does it go?",
        results_version=1,
        scenario=LineScenario,
        scale=LineScale,
        metrics=(Metric("error", "m", "lower", headline=True),),
        rules={"zero": "line.study:zero", "one": "line.study:one"},
        learners={"guess": "line.study:Guesser"},
        learner_settings={"guess": GuessSettings},
        figures={"line": "figures:line"},
        parts=lambda s: {
            "make_ground": Part({"rate": s.slope.rate}, shared=True),
            "make_points": Part({"size": s.size}, needs=("make_ground",), files=(s.data,) if s.data else ()),
        },
        problem_part=lambda s: {"size": s.size},
        requires=lambda s: [Requirement("points", Path(s.data), "the moon")] if s.data else [],
        inputs=lambda s: {"points": ("make_points", "points.parquet")},
        problem=lambda values, inputs: None,
        kinds={"one": "planner", "guess": "search"},
        figure_settings={"line": LineFigure},
        figure_files=lambda f: [f.record] if f.record else [],
    )


FILES = {
    "config.yaml": "defaults:\n  - scale: small\n  - _self_\nseed: 7\n",
    "scale/small.yaml": "name: small\n",
    "study/line.yaml": "name: line\nsizes:\n  small: {size: 5}\n  full: {size: 50}\n",
    "slope/steep.yaml": "rate: 2.5\n",
    "slope/flat.yaml": "rate: 0.5\n",
    "scenario/line/_base.yaml": (
        "defaults:\n  - /slope: flat\n  - _self_\nseed: ${seed}\nsize: ${scale.studies.line.size}\n"
        "rules: [zero, one]\npolicies: [guesser]\n"
        "reference: {slope: {rate: 9.0}}\n"
    ),
    "scenario/line/early.yaml": "defaults:\n  - _base\n  - _self_\nname: early\n",
    "scenario/line/late.yaml": "defaults:\n  - _base\n  - override /slope: steep\n  - _self_\nname: late\n",
    "learner/line/guess.yaml": "name: guess\nrate: 0.25\n",
    "policy/line/guesser.yaml": (
        "defaults:\n  - /learner/line@learner: guess\n  - _self_\nname: guesser\nseeds: [0, 1]\n"
        "train_on:\n  - {scenarios: [early], steps: 10}\n"
    ),
    "figure/theme.yaml": "dpi: 100\n",
    "figure/line/line.yaml": "name: line\nkind: line\ntitle: A line\ncaption: It rises.\n",
}


def write_line_conf(folder: Path) -> Path:
    """Make a valid configuration folder."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def load_line(conf: Path, cache: Path) -> Experiment:
    """Load a folder at scale small, with a cache."""
    door = line_study()
    return experiment.load(conf, "small", lambda settings: door, cache=cache)


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cache that loading the folder leaves."""
    place = tmp_path_factory.mktemp("line")
    load_line(write_line_conf(place / "conf"), place / "cache.json")
    return (place / "cache.json").read_text()


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A fresh, valid configuration folder."""
    return write_line_conf(tmp_path / "conf")


@pytest.fixture
def load(conf: Path, tmp_path: Path, records: str) -> Callable[[], Experiment]:
    """Loads the folder at scale small, with a cache beside it that knows its files as they were before any edit."""
    (tmp_path / "cache.json").write_text(records)
    return lambda: load_line(conf, tmp_path / "cache.json")
