"""Tests of the study's figures: what they show are the tables' values, in words and units that a reader knows."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.axes import Axes
from matplotlib.text import Text
from small_scenarios import CONF, part, scenario

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.files import write_table
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.figures.helpers import running_mean
from schedlab.figures.save import save
from schedlab.studies.adaptation import figures_data, figures_tables
from schedlab.studies.adaptation.example import example_table
from schedlab.studies.adaptation.prepare import problem_values, scenario_of
from schedlab.studies.adaptation.problem import AdaptationProblem, setup_of
from schedlab.studies.adaptation.reliability import reliability
from schedlab.studies.adaptation.rules import OraclePolicy, RandomPolicy, SequencePolicy
from schedlab.studies.adaptation.study import STUDY
from schedlab.studies.adaptation.table import DecisionTree

KINDS = {"never": "rule", "random": "rule", "exhaustive": "oracle", "constant": "learned", "clever": "learned", "poor": "learned"}
CHOICES = {"never": ["333"], "constant": ["033"], "clever": ["033", "303", "330"], "poor": ["111"]}
WIDEN = {"timing": part("gpu/flops.yaml"), "actions": ["deepen-0", "deepen-1", "widen-0"], "decisions": 2}
DOWN = {"decisions": 2, "changes": [{"time": 150.0, "change": "down"}]}


@pytest.fixture(autouse=True)
def themed() -> Iterator[None]:
    with theme.applied(ThemeSettings()):
        yield


def two_moves(actions: int, seed: int) -> pd.DataFrame:
    """A made-up table of two decisions and three replicates."""
    stream = np.random.default_rng(seed)
    rows = []
    for replicate, sequence in product(range(3), DecisionTree(actions, 2).sequences):
        loss = 0.2 + 0.01 * int(sequence[0]) + 0.02 * int(sequence[1]) + 0.002 * stream.standard_normal()
        row = {"time_left_1": 180.0, "time_left_2": 170.0 - int(sequence[0]), "validation_loss": loss, "test_accuracy": 1 - loss}
        rows.append({"scenario": "two", "job": 0, "replicate": replicate, "sequence": sequence, "validation_accuracy": 1 - loss, **row})
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
        policies = {(policy, seed): SequencePolicy(choice) for policy, choices in CHOICES.items() for seed, choice in enumerate(choices)}
        policies |= {("random", 0): RandomPolicy(), ("exhaustive", 0): OraclePolicy(problem)}
        for (policy, seed), acting in policies.items():
            for unit in problem.units("test"):
                outcome = problem.rollout(acting, unit)
                key = {"scenario": name, "policy": policy, "policy_seed": seed, "split": "test", "unit": unit.id}
                common = {**key, "kind": KINDS[policy], "mode": "default", "block": unit.block, "weight": outcome.weight}
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
    rows = summarised(paired.assign(value=paired["value"] - paired["base"]), half).rename(columns={"value": "difference"})
    return rows.assign(baseline=baseline, role="baseline")


def curves() -> pd.DataFrame:
    """Learning curves of two seeds and two policies on the late scenario; a point is the mean of ten episodes."""
    stream = np.random.default_rng(3)
    rows = []
    for (policy, start), seed, step in product((("clever", -0.30), ("poor", -0.25)), (0, 1), range(10, 210, 10)):
        values = {"reward": start + 0.0002 * step + 0.01 * stream.random(), "objective": stream.standard_normal(), "probability_best": 0.9}
        values["accuracy"] = 1 + values["reward"]
        common = {"policy": policy, "policy_seed": seed, "phase": 0, "train_scenario": "late", "step": step, "episode": step}
        rows += [{**common, "update": step, "split": "train", "metric": metric, "value": value} for metric, value in values.items()]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> StudyTables:
    folder = tmp_path_factory.mktemp("figures")
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


TWO_SCORES = ["validation_log_loss", "test_accuracy"]
SPECS = {
    "versus": FigureSpec("f", "versus", "t", "Shown.", scenarios=("early", "late"), params={"baseline": "constant"}),
    "regret": FigureSpec("f", "regret", "t", "Shown.", scenarios=("early", "late")),
    "final": FigureSpec(
        "f", "final", "t", "Shown.", scenarios=("early", "late"), params={"metrics": ["validation_log_loss", "test_accuracy"]}
    ),
    "sequences": FigureSpec("f", "sequences", "t", "Shown.", scenarios=("early", "late"), policies=("clever", "constant")),
    "ranking": FigureSpec("f", "ranking", "t", "Shown.", scenarios=("early", "late")),
    "reliability": FigureSpec("f", "reliability", "t", "Shown.", scenarios=("early", "late")),
    "learning": FigureSpec("f", "learning", "t", "Shown.", policies=("clever",), params={"metrics": ["reward", "objective"], "window": 50}),
    "transfer": FigureSpec(
        "f",
        "transfer",
        "t",
        "Shown.",
        scenarios=("late",),
        policies=("clever", "poor"),
        params={"groups": [{"scenario": "late", "policies": ["clever", "poor"], "jumpstart": ["clever", "poor"]}], "window": 50},
    ),
    "decisions": FigureSpec("f", "decisions", "t", "Shown.", scenarios=("early", "late"), policies=("clever", "constant")),
    "trunk": FigureSpec("f", "trunk", "t", "Shown.", scenarios=("early", "late")),
    "moves": FigureSpec("f", "moves", "t", "Shown.", params={"kept": "early", "down": "up_down"}),
}


def draw(tables: StudyTables, spec: FigureSpec) -> Drawing:
    module, _, name = STUDY.figures[spec.kind].partition(":")
    return getattr(importlib.import_module(module), name)(tables, spec)


def shown(tables: StudyTables, *names: str) -> list[figures_data.Shown]:
    return figures_data.shown(tables, SPECS["regret"], names)


def markers(axes: Axes) -> np.ndarray:
    """Positions of all single marks: (marks, 2)."""
    single = [line for line in axes.get_lines() if line.get_linestyle() == "None" and len(line.get_xdata()) == 1]
    return np.array([[float(line.get_xdata()[0]), float(line.get_ydata()[0])] for line in single])


def texts(drawing: Drawing) -> list[Text]:
    return [text for text in drawing.figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def legend_labels(drawing: Drawing) -> list[str]:
    return [text.get_text() for legend in drawing.figure.legends for text in legend.get_texts()]


def test_every_kind_is_tried() -> None:
    assert set(SPECS) == set(STUDY.figures)


@pytest.mark.parametrize("path", sorted((CONF / "figure" / "adaptation").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_figures_can_be_drawn_and_say_what_they_show(path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    assert values["name"] == path.stem
    assert values["kind"] in STUDY.figures
    assert len(values["caption"]) > 60
    for policy in [*values.get("policies", ()), *values.get("params", {}).get("jumpstart", ())]:
        assert policy in CONF_POLICIES | CONF_RULES, policy
    for name in values.get("scenarios", ()):
        assert (CONF / "scenario" / "adaptation" / f"{name}.yaml").exists(), name


CONF_POLICIES = {path.stem for path in (CONF / "policy" / "adaptation").glob("*.yaml")}
CONF_RULES = {"never", "random", "exhaustive", "always-0", "always-1", "always-2", "constant-011", "constant-100"}


@pytest.fixture(scope="module", params=SPECS)
def drawn(request: pytest.FixtureRequest, tables: StudyTables, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Drawing, Path]:
    """A kind, its drawing and the file that it was saved as (without ending)."""
    path = tmp_path_factory.mktemp("drawn") / request.param
    with theme.applied(ThemeSettings()):
        drawing = draw(tables, SPECS[request.param])
        save(drawing, path)
    return request.param, drawing, path


def test_nothing_is_cut_off_or_lies_on_the_legend(drawn: tuple[str, Drawing, Path]) -> None:
    figure = drawn[1].figure
    figure.draw_without_rendering()
    places = {axes.get_title() or axes.get_ylabel(): axes.get_tightbbox() for axes in figure.axes}
    legends = [legend.get_window_extent() for legend in figure.legends]
    for name, box in [*places.items(), *[("legend", box) for box in legends]]:
        assert box.x0 >= -1, name
        assert box.y0 >= -1, name
        assert box.x1 <= figure.bbox.x1 + 1, name
        assert box.y1 <= figure.bbox.y1 + 1, name
    for legend, (name, box) in product(legends, places.items()):
        assert not legend.overlaps(box), name


def test_axes_have_labels_with_units(drawn: tuple[str, Drawing, Path]) -> None:
    _, drawing, _ = drawn
    said = " ".join([*[text.get_text() for text in texts(drawing)]])
    assert "(nat)" in said or "(s)" in said, said
    assert "reward" not in said.replace("what is rewarded", ""), "rewards are called what they are"
    assert drawing.caption.startswith("Shown. ")


def test_the_same_tables_give_the_same_bytes(drawn: tuple[str, Drawing, Path], tables: StudyTables, tmp_path: Path) -> None:
    kind, _, first = drawn
    save(draw(tables, SPECS[kind]), tmp_path / kind)
    for ending in ("svg", "pdf", "png", "txt"):
        assert (tmp_path / f"{kind}.{ending}").read_bytes() == first.with_name(f"{kind}.{ending}").read_bytes(), ending


def test_drawing_needs_no_torch() -> None:
    modules = {target.partition(":")[0] for target in STUDY.figures.values()}
    code = f"import sys, {', '.join(sorted(modules))}; assert 'torch' not in sys.modules and 'gymnasium' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def differences(tables: StudyTables) -> pd.Series:
    rows = tables.scores[tables.scores["metric"] == "regret"]
    losses = rows.pivot_table(index=["policy", "policy_seed"], columns="scenario", values="value")
    return (losses - losses.loc[("constant", 0)]).mean(axis=1)


def test_the_headline_shows_mean_differences_learned_first(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["versus"])
    left = drawing.figure.axes[0]
    order = [label.get_text() for label in left.get_yticklabels()]
    assert sorted(order) == ["clever", "never", "poor", "random"]
    assert [KINDS[name] for name in order] == ["learned", "learned", "rule", "rule"]
    expected = differences(tables).groupby(level="policy").mean()
    assert markers(left)[:, 0] == pytest.approx([expected[name] for name in order])
    ranges = [line.get_xdata() for line in left.get_lines() if line.get_marker() == "|" and len(line.get_xdata()) == 2]
    seeds = differences(tables).loc["clever"]
    assert ranges == [pytest.approx([seeds.min(), seeds.max()])]
    early = drawing.figure.axes[1]
    rows = tables.comparisons[(tables.comparisons["scenario"] == "early") & (tables.comparisons["metric"] == "regret")].set_index("policy")
    assert markers(early)[:, 0] == pytest.approx([rows.loc[name, "difference"] for name in order])


def test_the_headline_says_when_nothing_learned_wins(tables: StudyTables) -> None:
    worse = tables.scores.assign(value=tables.scores["value"].where(tables.scores["policy"] != "constant", 0.0))
    told = draw(replace(tables, scores=worse, comparisons=compared(worse)), SPECS["versus"]).caption
    losses = worse[worse["metric"] == "regret"].groupby(["policy", "scenario"])["value"].mean().unstack().mean(axis=1)
    closest = losses[["clever", "poor"]].idxmin()
    assert f"No learned policy loses less than constant on average; the closest is {closest} (+{losses[closest]:.3f} nat)" in told
    assert "below five no interval is given" in told


@pytest.mark.parametrize(("gain", "expected"), [(0.004, "none by more than twice"), (0.9, "; clever by more than twice the noise")])
def test_the_headline_holds_a_win_against_the_noise(tables: StudyTables, gain: float, expected: str) -> None:
    shifted = tables.scores.copy()
    reference = shifted[(shifted["policy"] == "constant") & (shifted["metric"] == "regret")].set_index("scenario")["value"]
    for policy, change in (("clever", -gain), ("poor", -0.0001)):  # what is not seen in the third digit counts for nothing
        mine = (shifted["policy"] == policy) & (shifted["metric"] == "regret")
        shifted.loc[mine, "value"] = shifted.loc[mine, "scenario"].map(reference) + change
    told = draw(replace(tables, scores=shifted, comparisons=compared(shifted)), SPECS["versus"]).caption
    assert f"On average clever (\N{MINUS SIGN}{gain:.3f} nat) loses less than constant; 1 of 2 learned policies do not" in told
    assert expected in told


@pytest.mark.parametrize("half", [np.nan, 0.003])
def test_regrets_have_intervals_only_where_the_tables_give_them(tables: StudyTables, half: float) -> None:
    drawing = draw(replace(tables, summary=summarised(tables.scores, half)), SPECS["regret"])
    axes = drawing.figure.axes[1]
    order = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    rows = tables.summary[(tables.summary["scenario"] == "late") & (tables.summary["metric"] == "regret")].set_index("policy")
    assert "exhaustive" not in order
    assert markers(axes)[:, 0] == pytest.approx([rows.loc[name, "value"] for name in order])
    bars = [line for line in axes.get_lines() if line.get_linewidth() == 2.2]
    assert len(bars) == (0 if np.isnan(half) else len(order))
    labels = legend_labels(drawing)
    assert any("interval (bootstrap" in label for label in labels) == (not np.isnan(half))
    assert any("too few for an interval" in label for label in labels) == bool(np.isnan(half))
    assert ("below five no interval" in drawing.caption) == bool(np.isnan(half))


def test_final_results_are_those_of_the_summary(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["final"])
    for axes, metric in zip(drawing.figure.axes, TWO_SCORES, strict=True):
        rows = tables.summary[tables.summary["metric"] == metric]
        assert sorted(markers(axes)[:, 1]) == pytest.approx(sorted(rows["value"]))
        dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--" and line.get_xdata() == [0, 1]]
        assert [line.get_ydata()[0] for line in dashed] == pytest.approx([rows[rows["policy"] == "never"]["value"].mean()])
    assert [label.get_text() for label in drawing.figure.axes[1].get_xticklabels()] == ["early\n60 s", "late\n190 s"]
    assert {"never", "random", "clever", "exhaustive", "mean of never"} <= set(legend_labels(drawing))
    assert [axes.get_ylabel() for axes in drawing.figure.axes] == ["validation log loss (nat)", "test accuracy (fraction)"]


def test_the_heat_map_holds_every_regret_and_marks_the_best_and_the_chosen(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["sequences"])
    panels = drawing.figure.axes[:4]
    scenarios = shown(tables, "early", "late")
    cells = np.concatenate([np.asarray(axes.collections[0].get_array()).reshape(16, 2) for axes in panels])
    expected = np.stack([found.mean("validation_loss") - found.mean("validation_loss").min() for found in scenarios], axis=1)
    assert cells == pytest.approx(expected)
    marks = {
        (line.get_marker(), 16 * first + int(line.get_ydata()[0]), int(line.get_xdata()[0]))
        for first, axes in enumerate(panels)
        for line in axes.get_lines()
        if line.get_label() == "_mark"
    }
    stars = {("*", int(expected[:, column].argmin()), column) for column in (0, 1)}
    index = scenarios[0].problem.tree.index
    clever = {("o", index(sequence), column) for sequence in CHOICES["clever"] for column in (0, 1)}
    assert marks == stars | clever | {("s", index("033"), column) for column in (0, 1)}
    assert "Digits: 0 deepen 0, 1 deepen 1, 2 deepen 2, 3 nothing." in drawing.caption


def test_the_ranking_names_best_worst_and_the_rank_of_nothing(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["ranking"])
    early, late = shown(tables, "early", "late")
    losses, later = early.mean("validation_loss"), late.mean("validation_loss")
    order = sorted(range(64), key=lambda position: losses[position])
    rank = 1 + order.index(63)
    ends = {found.sequences[end(found.mean())] for found, end in product((early, late), (np.argmin, np.argmax))}
    said = {text.get_text() for text in drawing.figure.axes[0].texts}
    assert said == (ends - {"333"}) | {f"#{rank}", f"#{1 + (later < later[63]).sum()}"}
    dots = np.asarray(drawing.figure.axes[0].collections[0].get_offsets())[:, 1]
    assert dots == pytest.approx(losses)
    ends = f"{losses.min():.3f} ({early.sequences[order[0]]}) / {losses.mean():.3f} / {losses.max():.3f} ({early.sequences[order[-1]]})"
    assert f"early {ends} / {losses[63]:.3f} (rank {rank})" in drawing.caption


def test_reliability_lines_follow_the_analysis_of_variance(tables: StudyTables) -> None:
    axes = draw(tables, SPECS["reliability"]).figure.axes[0]
    (late,) = shown(tables, "late")
    parts = reliability(late.values("validation_loss"))
    line = next(line for line in axes.get_lines() if line.get_label() == "late, 190 s")
    expected = [parts.sd_sequence**2 / (parts.sd_sequence**2 + parts.sd_residual**2 / count) for count in (1, 2, 3)]
    assert line.get_ydata() == pytest.approx(expected)
    assert list(line.get_xdata()) == [1, 2, 3]


def test_choosing_on_few_replicates_by_hand() -> None:
    losses = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 5.0], [4.0, 3.0, 2.0]])
    found = figures_tables.selection_regret(losses, Metric("loss", "nat", "lower"))
    assert found == [[1.0, 2.0, 1.0, 1.0, 2.0, 4.0], [2.0, 1.0, 1.0]]


def test_learning_shows_the_loss_with_its_running_mean(tables: StudyTables) -> None:
    figure = draw(tables, SPECS["learning"]).figure
    top, bottom = figure.axes
    points = tables.curves[(tables.curves["policy"] == "clever") & (tables.curves["metric"] == "reward")]
    dots, first, second = top.get_lines()[:3]
    assert dots.get_ydata() == pytest.approx(-points["value"].to_numpy())
    for line, (_, seed) in zip((first, second), points.groupby("policy_seed"), strict=True):
        assert line.get_ydata() == pytest.approx(running_mean(-seed["value"].to_numpy(), 5)), "50 episodes are five points"
    (late,) = shown(tables, "late")
    learned_on = late.values()[list(late.problem.rows("train"))].mean(0)
    heights = {round(float(line.get_ydata()[0]), 9) for line in top.get_lines()[3:]}
    assert heights == {round(float(learned_on.min()), 9), round(float(learned_on[late.nothing]), 9)}
    assert (top.get_ylabel(), bottom.get_ylabel(), bottom.get_xlabel()) == (
        "validation log loss (nat)",
        "policy-gradient objective",
        "episode",
    )


def test_transfer_has_an_arrow_from_scratch_to_transfer(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["transfer"])
    axes = drawing.figure.axes[0]
    starts = tables.curves[(tables.curves["step"] == 10) & (tables.curves["metric"] == "reward")].groupby("policy")["value"].mean()
    arrow = next(text for text in axes.texts if text.get_text() == "")
    assert (arrow.xyann[1], arrow.xy[1]) == pytest.approx((-starts["clever"], -starts["poor"]))
    gain = starts["poor"] - starts["clever"]
    assert f"poor starts {gain:.3f} nat better than clever" in drawing.caption
    assert legend_labels(drawing) == ["clever", "poor"]
    line = next(line for line in axes.get_lines() if len(line.get_xdata()) == 20)
    reward = tables.curves[(tables.curves["policy"] == "clever") & (tables.curves["metric"] == "reward")]
    seeds = np.stack([running_mean(-seed["value"].to_numpy(), 5) for _, seed in reward.groupby("policy_seed")])
    assert line.get_ydata() == pytest.approx(seeds.mean(0))


def test_a_policy_that_the_figure_does_not_name_is_told(tables: StudyTables) -> None:
    groups = [{"scenario": "late", "policies": ["clever", "por"]}]
    with pytest.raises(UserError, match="'por' is not among the figure's policies"):
        draw(tables, replace(SPECS["transfer"], params={"groups": groups}))
    with pytest.raises(UserError, match="unknown key 'policy'"):
        draw(tables, replace(SPECS["transfer"], params={"groups": [{"policy": "clever"}]}))
    with pytest.raises(UserError, match="unknown curve 'loss'"):
        draw(tables, replace(SPECS["transfer"], params={"metrics": ["loss"]}))


@pytest.mark.parametrize("kind", ["learning", "transfer"])
def test_runs_that_a_scale_lacks_are_left_out(tables: StudyTables, kind: str) -> None:
    assert "is learned at this scale" in draw(replace(tables, curves=tables.curves.iloc[:0]), SPECS[kind]).caption


def test_decisions_stand_at_their_time_and_action(tables: StudyTables) -> None:
    axes = draw(tables, SPECS["decisions"]).figure.axes[1]
    rows = tables.details["decisions"]
    rows = rows[rows["policy"] == "constant"]
    for number in range(3):
        found = np.asarray(axes.collections[number].get_offsets())
        expected = rows[rows["decision"] == number]
        assert found[:, 0] == pytest.approx(expected["time_left"].to_numpy())
        assert np.round(found[:, 1]) == pytest.approx(expected["action"].to_numpy())
    assert axes.get_xlim()[0] > axes.get_xlim()[1], "time runs out to the right"


def test_the_trunk_is_drawn_where_it_is_given(tables: StudyTables, tmp_path: Path) -> None:
    without = draw(tables, SPECS["trunk"])
    assert "no growth, as time passes" not in legend_labels(without)
    trunk = pd.DataFrame({"job": 0, "time_left": [240.0, 230.0], "train_seconds": 8.5, "eval_seconds": 1.5, "validation_loss": [2.0, 1.0]})
    write_table(tmp_path / "trunk.parquet", trunk)
    inputs = {name: {**files, "trunk": tmp_path / "trunk.parquet"} for name, files in tables.inputs.items()}
    drawing = draw(replace(tables, inputs=inputs), SPECS["trunk"])
    line = drawing.figure.axes[0].get_lines()[0]
    assert list(line.get_xdata()) == [10.0, 20.0]
    assert list(line.get_ydata()) == [2.0, 1.0]
    assert "no growth, as time passes" in legend_labels(drawing)
    (early,) = shown(tables, "early")
    losses = early.mean("validation_loss")
    assert f"{losses[63] - losses.min():.3f} nat from 60 s" in drawing.caption


def test_moves_compare_resources_kept_and_taken_away(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["moves"])
    cells, dumbbells = drawing.figure.axes[:2]
    widen, down, early = shown(tables, "widen", "up_down", "early")
    assert [text.get_text() for text in cells.texts] == [f"{value:.3f}" for value in widen.mean()]
    kept = [early.mean()[early.sequences.index(f"{sequence}3")] for sequence in down.sequences]
    assert markers(dumbbells)[:, 0] == pytest.approx([*kept, *down.mean()])
    assert [label.get_text() for label in dumbbells.get_yticklabels()][:2] == ["deepen 0, deepen 0", "deepen 0, deepen 1"]
    assert "growth is not shown to help" not in drawing.caption
    with pytest.raises(UserError, match="early has 3 decisions"):
        draw(tables, replace(SPECS["moves"], params={"widen": "early", "kept": "early", "down": "up_down"}))


def test_scenarios_of_different_rewards_are_not_mixed(tables: StudyTables) -> None:
    late = {**tables.scenarios["late"], "reward": {"split": "validation", "metric": "accuracy", "window": 2}}
    with pytest.raises(UserError, match="different quantities"):
        draw(replace(tables, scenarios={**tables.scenarios, "late": late}), SPECS["regret"])


def test_an_unknown_scenario_or_value_is_told(tables: StudyTables) -> None:
    with pytest.raises(UserError, match="no scenario 'erly'"):
        draw(tables, replace(SPECS["regret"], scenarios=("erly",)))
    with pytest.raises(UserError, match=r"params\.metrics"):
        draw(tables, replace(SPECS["final"], params={"metrics": "test_accuracy"}))


def test_lines_of_one_figure_never_look_alike(tables: StudyTables) -> None:
    many = pd.DataFrame({"policy": [f"p{number:02}" for number in range(30)], "kind": "learned"})
    names = ["p00", "p07", "p14"]
    styles = figures_data.styles(replace(tables, scores=many), names)
    assert len({(style.colour, style.dashes) for style in styles.values()}) == 3
    assert mpl.rcParams["font.size"] == 8.0
