"""Tables, specifications and readers that the tests of the study's figures share."""

from __future__ import annotations

import importlib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.text import Text
from small_scenarios import part, scenario

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.files import write_table
from schedlab.studies.adaptation.example import example_table
from schedlab.studies.adaptation.figures import data as figures_data
from schedlab.studies.adaptation.problem import AdaptationProblem, setup_of
from schedlab.studies.adaptation.rules import OraclePolicy, RandomPolicy, SequencePolicy
from schedlab.studies.adaptation.scenario import problem_values, scenario_of
from schedlab.studies.adaptation.simulator.table import DecisionTree
from schedlab.studies.adaptation.study import STUDY

KINDS = {
    "never": "rule",
    "random": "rule",
    "exhaustive": "oracle",
    "constant": "learned",
    "clever": "learned",
    "poor": "learned",
}
CHOICES = {"never": ["333"], "constant": ["033"], "clever": ["033", "303", "330"], "poor": ["111"]}
WIDEN = {"timing": part("gpu/flops.yaml"), "actions": ["deepen-0", "deepen-1", "widen-0"], "decisions": 2}
DOWN = {"decisions": 2, "changes": [{"time": 150.0, "change": "down"}]}


def two_moves(actions: int, seed: int) -> pd.DataFrame:
    """A made-up table of two decisions and three replicates."""
    stream = np.random.default_rng(seed)
    rows = []
    for replicate, sequence in product(range(3), DecisionTree(actions, 2).sequences):
        loss = 0.2 + 0.01 * int(sequence[0]) + 0.02 * int(sequence[1]) + 0.002 * stream.standard_normal()
        row = {
            "time_left_1": 180.0,
            "time_left_2": 170.0 - int(sequence[0]),
            "validation_loss": loss,
            "test_accuracy": 1 - loss,
        }
        rows.append(
            {
                "scenario": "two",
                "job": 0,
                "replicate": replicate,
                "sequence": sequence,
                "validation_accuracy": 1 - loss,
                **row,
            }
        )
    return pd.DataFrame(rows)


def problems(folder: Path) -> dict[str, tuple[AdaptationProblem, dict[str, Any], Path]]:
    """Four scenarios: problem, frozen part, file of the table."""
    made = {
        "early": (scenario(name="early", adapt_at=60.0), example_table(60.0)),
        "late": (scenario(name="late", adapt_at=190.0), example_table(190.0, noise=0.01)),
        "widen": (scenario(name="widen", adapt_at=60.0, **WIDEN), two_moves(4, 1)),
        "up_down": (scenario(name="up_down", adapt_at=60.0, **DOWN), two_moves(4, 2)),
    }
    found = {}
    for name, (settings, table) in made.items():
        write_table(folder / f"{name}.parquet", table.assign(scenario=name))
        values = {"name": name, "seed": 42, **problem_values(settings)}
        typed = scenario_of(values)
        start = figures_data.architecture(typed.model)
        found[name] = AdaptationProblem(name, table, start, setup_of(typed, start)), values, folder / f"{name}.parquet"
    return found


def rolled(found: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Scores and details of all policies on the test replicates of the two scenarios that have learned policies."""
    scores, details = [], {"decisions": [], "sequences": []}
    for name in ("early", "late"):
        problem = found[name][0]
        policies = {
            (policy, seed): SequencePolicy(choice)
            for policy, choices in CHOICES.items()
            for seed, choice in enumerate(choices)
        }
        policies |= {("random", 0): RandomPolicy(), ("exhaustive", 0): OraclePolicy(problem)}
        for (policy, seed), acting in policies.items():
            for unit in problem.units("test"):
                outcome = problem.rollout(acting, unit)
                key = {"scenario": name, "policy": policy, "policy_seed": seed, "split": "test", "unit": unit.id}
                common = {
                    **key,
                    "kind": KINDS[policy],
                    "mode": "default",
                    "block": unit.block,
                    "weight": outcome.weight,
                }
                scores += [{**common, "metric": metric, "value": value} for metric, value in outcome.scores.items()]
                for table, rows in outcome.details.items():
                    details[table].append(rows.assign(**key))
    return pd.DataFrame(scores), {name: pd.concat(frames, ignore_index=True) for name, frames in details.items()}


def summarised(scores: pd.DataFrame, half: float = np.nan) -> pd.DataFrame:
    """A summary with the range of the seeds; half: half the width of an interval, NaN for none."""
    groups = scores.groupby(["scenario", "policy", "kind", "mode", "split", "metric"])["value"]
    rows = groups.agg(value="mean", range_low="min", range_high="max", seeds="size").reset_index()
    return rows.assign(ci_low=rows["value"] - half, ci_high=rows["value"] + half, units=1, blocks=1)


def compared(scores: pd.DataFrame, baseline: str = "constant", half: float = np.nan) -> pd.DataFrame:
    """Paired differences to a policy of one seed."""
    keys = ["scenario", "metric"]
    base = scores[scores["policy"] == baseline][[*keys, "value"]].rename(columns={"value": "base"})
    paired = scores[scores["policy"] != baseline].merge(base, on=keys)
    rows = summarised(paired.assign(value=paired["value"] - paired["base"]), half).rename(
        columns={"value": "difference"}
    )
    return rows.assign(baseline=baseline, role="baseline")


def curves() -> pd.DataFrame:
    """Learning curves of two seeds and two policies on the late scenario; a point is the mean of ten episodes."""
    stream = np.random.default_rng(3)
    rows = []
    for (policy, start), seed, step in product((("clever", -0.30), ("poor", -0.25)), (0, 1), range(10, 210, 10)):
        values = {
            "reward": start + 0.0002 * step + 0.01 * stream.random(),
            "objective": stream.standard_normal(),
            "probability_best": 0.9,
        }
        values["accuracy"] = 1 + values["reward"]
        common = {
            "policy": policy,
            "policy_seed": seed,
            "phase": 0,
            "train_scenario": "late",
            "step": step,
            "episode": step,
        }
        rows += [
            {**common, "update": step, "split": "train", "metric": metric, "value": value}
            for metric, value in values.items()
        ]
    return pd.DataFrame(rows)


def study_tables(folder: Path) -> StudyTables:
    """All that figures are drawn from, of four scenarios; the tables of two of them are made up."""
    found = problems(folder)
    scores, details = rolled(found)
    return StudyTables(
        scores=scores,
        curves=curves(),
        summary=summarised(scores),
        comparisons=compared(scores),
        details=details,
        inputs={name: {"table": path} for name, (_, _, path) in found.items()},
        scenarios={name: values for name, (_, values, _) in found.items()},
        policies={},
    )


def repeated(tables: StudyTables, name: str, count: int) -> StudyTables:
    """The tables with copies of a scenario, each of which begins a little later."""
    copies = {f"{name}_{number:02}": tables.scenarios[name]["adapt_at"] + number + 1 for number in range(count)}

    def more(table: pd.DataFrame) -> pd.DataFrame:
        return pd.concat(
            [table, *[table[table["scenario"] == name].assign(scenario=copy) for copy in copies]], ignore_index=True
        )

    return replace(
        tables,
        scores=more(tables.scores),
        summary=more(tables.summary),
        comparisons=more(tables.comparisons),
        details={key: more(table) for key, table in tables.details.items()},
        inputs=tables.inputs | dict.fromkeys(copies, tables.inputs[name]),
        scenarios=tables.scenarios
        | {copy: {**tables.scenarios[name], "name": copy, "adapt_at": at} for copy, at in copies.items()},
    )


EVERY_SCENARIO = (
    "versus",
    "regret",
    "final",
    "sequences",
    "ranking",
    "reliability",
    "decisions",
    "trunk",
)  # kinds that may name none
TWO_SCORES = ["validation_log_loss", "test_accuracy"]
SPECS = {
    "versus": FigureSpec("f", "versus", "t", "Shown.", scenarios=("early", "late"), params={"baseline": "constant"}),
    "regret": FigureSpec("f", "regret", "t", "Shown.", scenarios=("early", "late")),
    "final": FigureSpec(
        "f",
        "final",
        "t",
        "Shown.",
        scenarios=("early", "late"),
        params={"metrics": ["validation_log_loss", "test_accuracy"]},
    ),
    "sequences": FigureSpec(
        "f", "sequences", "t", "Shown.", scenarios=("early", "late"), policies=("clever", "constant")
    ),
    "ranking": FigureSpec("f", "ranking", "t", "Shown.", scenarios=("early", "late")),
    "reliability": FigureSpec("f", "reliability", "t", "Shown.", scenarios=("early", "late")),
    "learning": FigureSpec(
        "f", "learning", "t", "Shown.", policies=("clever",), params={"metrics": ["reward", "objective"], "window": 50}
    ),
    "transfer": FigureSpec(
        "f",
        "learning",
        "t",
        "Shown.",
        scenarios=("late",),
        policies=("clever", "poor"),
        params={
            "metrics": ["reward"],
            "groups": [{"scenario": "late", "policies": ["clever", "poor"], "jumpstart": ["clever", "poor"]}],
            "window": 50,
        },
    ),
    "decisions": FigureSpec(
        "f", "decisions", "t", "Shown.", scenarios=("early", "late"), policies=("clever", "constant")
    ),
    "trunk": FigureSpec("f", "trunk", "t", "Shown.", scenarios=("early", "late")),
    "moves": FigureSpec("f", "moves", "t", "Shown.", params={"stay": "early", "down": "up_down"}),
}


def draw(tables: StudyTables, spec: FigureSpec) -> Drawing:
    module, _, name = STUDY.figures[spec.kind].partition(":")
    return getattr(importlib.import_module(module), name)(tables, spec)


def shown(tables: StudyTables, *names: str) -> list[figures_data.Shown]:
    return figures_data.scenarios_of(tables, SPECS["regret"], names)


def markers(axes: Axes) -> np.ndarray:
    """Positions of all single marks: (marks, 2)."""
    single = [line for line in axes.get_lines() if line.get_linestyle() == "None" and len(line.get_xdata()) == 1]
    return np.array([[float(line.get_xdata()[0]), float(line.get_ydata()[0])] for line in single])


def texts(drawing: Drawing) -> list[Text]:
    return [text for text in drawing.figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def legend_labels(drawing: Drawing) -> list[str]:
    return [text.get_text() for legend in drawing.figure.legends for text in legend.get_texts()]
