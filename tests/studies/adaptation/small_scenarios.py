"""Small scenarios and data sets for tests that simulate, and a trainer that trains nothing."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import yaml

from schedlab.config.schema import validate
from schedlab.studies.adaptation.data.datasets import DataSet
from schedlab.studies.adaptation.network.architecture import Architecture, architecture
from schedlab.studies.adaptation.scenario import AdaptationScenario
from schedlab.studies.adaptation.simulator.course import Course, Position, adaptation_course, adaptation_start
from schedlab.studies.adaptation.simulator.timing import Timing

CONF = Path(__file__).resolve().parents[3] / "conf"
PRICES = {  # s of an epoch, and more for each layer inserted behind a block: 10, and 5, 1.5 or 0.5
    "train": {"base": 8.5, "per_insertion": [4.25, 1.275, 0.425]},
    "evaluation": {"base": 1.5, "per_insertion": [0.75, 0.225, 0.075]},
}
PUBLISHED_GROWTH = {
    "bn_init": "default",
    "optimizer": "fresh_every_decision",
    "lr_on_growth": "restart",
    "noop": "reset",
}
BATCH_NORM_MODEL = {
    "name": "bn",
    "input": {"channels": 1, "height": 8, "width": 8},
    "blocks": [
        {"kind": "conv", "out": 4, "kernel": 3, "batch_norm": True},
        {"kind": "max_pool", "kernel": 2},
        {"kind": "flatten"},
        {"kind": "linear", "out": 6},
        {"kind": "linear", "out": 10, "deepen": False},
    ],
}


def part(path: str) -> dict:
    """The values of a configuration file."""
    return yaml.safe_load((CONF / path).read_text())


def scenario(**changes) -> AdaptationScenario:
    """A scenario like `early`, by the prices that the tests count with, with some keys changed."""
    values = {
        "name": "small",
        "seed": 42,
        "model": part("model/tiny8.yaml"),
        "data": part("data/digits.yaml"),
        "timing": {**part("gpu/priced.yaml"), "models": {"any": PRICES}},
        "adapt_at": 60.0,
    }
    return validate(AdaptationScenario, values | changes)


def short(**changes) -> AdaptationScenario:
    """Two decisions, three trunk epochs, at most four more."""
    return scenario(**({"budget": 70.0, "adapt_at": 30.0, "decisions": 2, "training": {"batch_size": 32}} | changes))


def pictures(train: int = 96, seed: int = 0) -> DataSet:
    """Random 8x8 pictures of ten classes, whose brightness tells of the class."""
    random = np.random.default_rng(seed)
    arrays = []
    for count in (train, 40, 30):
        labels = random.integers(0, 10, count)
        images = random.random((count, 1, 8, 8)) * 0.5 + labels[:, None, None, None] * 0.1
        arrays += [images.astype(np.float32), labels.astype(np.int64)]
    return DataSet("pictures", 10, *arrays)


def plan(settings: AdaptationScenario) -> tuple[Course, Position]:
    """The course of a scenario and its adaptation point."""
    start = architecture(settings.model)
    timing = Timing(settings.timing, 1200, 597)
    return adaptation_course(settings, start, timing), adaptation_start(settings, start, timing)


class ChainTrainer:
    """A trainer whose state is a digest of all that was done to it; counts its epochs by node."""

    def __init__(self) -> None:
        self.trained: Counter[str] = Counter()

    def initial(self) -> list[str]:
        return ["start"]

    def train(self, state, step, recall):
        self.trained[step.node.key] += 1
        others = [recall(node)[0] for node in (step.returns_to, step.teacher) if node]
        told = [
            state[0],
            *step.events,
            str(step.restart),
            str(step.parent.epoch),
            step.architecture.key,
            str(step.epochs_down),
            *others,
        ]
        state[0] = hashlib.sha256("|".join(told).encode()).hexdigest()  # in place, as a network is trained
        return state, {"train_loss": int(state[0][:8], 16) / 2**32}

    def evaluate(self, state):
        return {"test_loss": int(state[0][8:16], 16) / 2**32}

    def pack(self, state) -> bytes:
        return state[0].encode()

    def unpack(self, data: bytes, _architecture: Architecture):
        return [data.decode()]
