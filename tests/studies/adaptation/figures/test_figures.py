"""Tests of all of the study's figures: they can be drawn, hold what they say, and depend on the tables alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from small_figures import EVERY_SCENARIO, SPECS, draw, repeated, texts

import shipped_conf
from schedlab.config.contract import Drawing, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.figures.save import caption_of, save
from schedlab.studies.adaptation.figures import data as figures_data
from schedlab.studies.adaptation.study import STUDY

pytestmark = pytest.mark.usefixtures("themed")


@pytest.mark.parametrize("name", shipped_conf.names("figure/adaptation"))
def test_shipped_figures_can_be_drawn_and_say_what_they_show(name: str) -> None:
    values = shipped_conf.values("figure/adaptation", name)
    assert values["kind"] in STUDY.figures
    for policy in [*values.get("policies", ()), *values.get("params", {}).get("jumpstart", ())]:
        assert policy in CONF_POLICIES | CONF_RULES, policy
    for name in values.get("scenarios", ()):
        assert name in shipped_conf.names("scenario/adaptation"), name


CONF_POLICIES = set(shipped_conf.names("policy/adaptation"))
CONF_RULES = {"never", "random", "exhaustive", "exhaustive-test", "constant-011", "constant-100"}
CONF_RULES |= {f"always-{action}" for action in range(3)}


@pytest.fixture(scope="module", params=STUDY.figures)
def drawn(request: pytest.FixtureRequest, tables: StudyTables) -> Drawing:
    """The drawing of each kind."""
    with theme.applied(ThemeSettings()):
        return draw(tables, SPECS[request.param])


def test_nothing_is_cut_off_or_lies_on_the_legend(drawn: Drawing) -> None:
    figure = drawn.figure
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


def test_axes_have_labels_with_units(drawn: Drawing) -> None:
    said = " ".join(text.get_text() for text in texts(drawn))
    assert "(nat)" in said or "(s)" in said, said
    assert "reward" not in said.replace("what is rewarded", ""), "rewards are called what they are"
    assert not set("{}[]") & set(caption_of(drawn)), caption_of(drawn)


@pytest.mark.parametrize(
    "kind", ["transfer", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("learning", "moves", "sequences"))]
)
def test_the_same_tables_give_the_same_bytes(tables: StudyTables, tmp_path: Path, kind: str) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        save(draw(tables, SPECS[kind]), tmp_path / folder / kind)
    for ending in ("svg", "pdf", "png", "txt"):
        assert (tmp_path / f"one/{kind}.{ending}").read_bytes() == (tmp_path / f"other/{kind}.{ending}").read_bytes(), (
            ending
        )


def test_drawing_needs_no_torch() -> None:
    modules = {target.partition(":")[0] for target in STUDY.figures.values()}
    code = f"import sys, {', '.join(sorted(modules))}; assert not {{'torch', 'gymnasium'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


COMPARING = ["versus", "regret", "sequences", "reliability"]


@pytest.mark.parametrize("kind", COMPARING)
def test_a_scenario_of_another_reward_is_left_out_and_told(tables: StudyTables, kind: str) -> None:
    late = {**tables.scenarios["late"], "reward": {"split": "validation", "metric": "accuracy", "window": 2}}
    drawing = draw(replace(tables, scenarios={**tables.scenarios, "late": late}), SPECS[kind])
    assert drawing.left_out["late"] == "rewarded by another quantity"
    assert "late" not in draw(tables, SPECS[kind]).left_out


@pytest.mark.parametrize(
    "kind",
    [k if k in ("ranking", "decisions") else pytest.param(k, marks=pytest.mark.slow) for k in EVERY_SCENARIO],
)
def test_a_figure_holds_as_many_scenarios_as_there_are(tables: StudyTables, kind: str) -> None:
    many = repeated(tables, "late", 13)
    spec = replace(SPECS[kind], scenarios=())
    alike = {name: values for name, values in many.scenarios.items() if name not in ("widen", "up_down")}
    figure = draw(replace(many, scenarios=alike), spec).figure
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert all(box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1 for box in boxes)
    for one, other in combinations([axes.get_window_extent() for axes in figure.axes], 2):
        assert not one.overlaps(other)
    assert min(axes.get_window_extent().width for axes in figure.axes if axes.get_label() != "<colorbar>") > 50


def test_an_unknown_scenario_or_value_is_told(tables: StudyTables) -> None:
    with pytest.raises(UserError, match=r"'erly'.*'early'"):
        draw(tables, replace(SPECS["regret"], scenarios=("erly",)))
    with pytest.raises(UserError, match=r"params\.metrics"):
        draw(tables, replace(SPECS["final"], params={"metrics": "test_accuracy"}))


def test_lines_of_one_figure_never_look_alike(tables: StudyTables) -> None:
    many = pd.DataFrame({"policy": [f"p{number:02}" for number in range(30)], "kind": "learned"})
    names = ["p00", "p07", "p14"]
    styles = figures_data.styles(replace(tables, scores=many), names)
    assert len({(style.colour, style.dashes) for style in styles.values()}) == 3
    assert mpl.rcParams["font.size"] == 8.0
