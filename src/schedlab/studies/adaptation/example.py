"""A small made-up scenario with the true shape of the problem: for trying the environment out, and for tests."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.studies.adaptation.env import AdaptationEnv
from schedlab.studies.adaptation.network.architecture import Architecture, ModelSettings, architecture
from schedlab.studies.adaptation.problem import AdaptationProblem, ProblemSetup, deepening_actions
from schedlab.studies.adaptation.simulator.table import DecisionTree

if TYPE_CHECKING:
    import pandas as pd

BUDGET = 240.0  # s
_BASE, _PRICES = 10.0, (5.0, 1.5, 0.5)  # seconds of an epoch, and of an insertion behind each block
_GAINS = (0.05, 0.03, 0.01)  # log loss (nat) that an insertion saves once it is trained
_BLOCKS = (
    {"kind": "conv", "out": 8, "kernel": 3},
    {"kind": "avg_pool", "kernel": 2},
    {"kind": "conv", "out": 8, "kernel": 3},
    {"kind": "global_average_pool"},
    {"kind": "insertion_point"},
    {"kind": "linear", "out": 10, "deepen": False},
)


@lru_cache
def example_architecture() -> Architecture:
    """Return two convolutions of eight channels with a linear head, on 8x8 images."""
    values = {"name": "example", "input": {"channels": 1, "height": 8, "width": 8}, "blocks": list(_BLOCKS)}
    return architecture(validate(ModelSettings, values))


def example_table(
    start: float, replicates: int = 3, noise: float = 0.004, seed: int = 1, jobs: int = 1
) -> pd.DataFrame:
    """Return an invented table: growth makes each epoch longer, and pays if enough epochs are left.

    start  time at which growth becomes possible, s
    noise  standard deviation of one log loss, nat
    """
    import pandas as pd

    tree = DecisionTree(len(_PRICES) + 1, 3)
    stream = generator(seed, "example", f"{start:g}")
    rows = []
    for job in range(jobs):
        for replicate in range(replicates):
            for sequence in tree.sequences:
                row = _run(sequence, BUDGET - start)
                row["validation_loss"] += noise * stream.standard_normal()
                row["test_loss"] = row["validation_loss"] + noise * stream.standard_normal()
                for split in ("validation", "test"):
                    row[f"{split}_accuracy"] = float(np.exp(-row[f"{split}_loss"] / 2.5))
                rows.append(
                    {"scenario": f"example-{start:g}", "job": job, "replicate": replicate, "sequence": sequence, **row}
                )
    return pd.DataFrame(rows)


def _run(sequence: str, left: float) -> dict[str, float]:
    row: dict[str, float] = {}
    second, epochs, insertions = _BASE, 0, []
    charged = 0.0
    while True:
        if epochs < len(sequence):
            row[f"time_left_{epochs + 1}"] = left - charged
            block = int(sequence[epochs])
            if block < len(_PRICES):
                second += _PRICES[block]
                insertions.append((block, epochs))
        if charged + second > left:
            break
        charged, epochs = charged + second, epochs + 1
    for decision in range(epochs + 1, len(sequence)):
        row[f"time_left_{decision + 1}"] = left - charged
    loss = 0.2 + 0.1 * np.exp(-epochs / 12)
    for number, (block, since) in enumerate(insertions):
        loss -= _GAINS[block] * 0.7**number * (1 - 2 * np.exp(-(epochs - since) / 3))
    return row | {
        "epochs": epochs,
        "parameters": 754 + 584 * len(insertions),
        "seconds_charged": charged,
        "validation_loss": float(loss),
    }


def example_problem(start: float = 90.0, replicates: int = 3, noise: float = 0.004, seed: int = 1) -> AdaptationProblem:
    """Return the made-up scenario whose growth becomes possible at `start` seconds of 240."""
    original = example_architecture()
    setup = ProblemSetup(BUDGET, deepening_actions(original), seed=seed)
    return AdaptationProblem(f"example-{start:g}", example_table(start, replicates, noise, seed), original, setup)


def make(
    problem: AdaptationProblem | None = None, seed: int | None = None, render_mode: str | None = None
) -> AdaptationEnv:
    """Return the environment over all training units of a problem; without one, over a made-up example."""
    problem = problem or example_problem()
    return AdaptationEnv(problem, problem.rows("train"), seed, render_mode)
