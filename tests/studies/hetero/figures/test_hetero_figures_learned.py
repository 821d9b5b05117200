"""Figures of learned policies among the pairs, of learning, of over-used bandwidth: they show the tables' values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from small_hetero_tables import held_back, learned, overused, scored

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.figures.panels.points import BAR
from schedlab.figures.save import caption_of
from schedlab.stages.draw import drawing_function
from schedlab.studies.hetero.figures.learning import NAMED, preference_lines, preferred
from schedlab.studies.hetero.figures.pairs import place_among, same_scores
from schedlab.studies.hetero.figures.workload import count_oversubscribed, share_of_time
from schedlab.studies.hetero.study import STUDY

PAIRS = {
    "first-high_mem": (8.0, 12.0),
    "first-low_power": (40.0, 60.0),
    "shortest-high_mem": (2.0, 4.0),
    "shortest-low_power": (18.0, 22.0),
}


@pytest.fixture(autouse=True)
def themed() -> Iterator[None]:
    with theme.applied(ThemeSettings()):
        yield


def draw(tables: StudyTables, kind: str, policies: tuple[str, ...] = (), **params: Any) -> Drawing:
    drawing = drawing_function(STUDY, kind)(
        tables, FigureSpec("figure", kind, "title", "Caption.", "", ("case",), policies, params)
    )
    drawing.figure.draw_without_rendering()
    assert not set("{}[]") & set(caption_of(drawing)), caption_of(drawing)
    return drawing


@pytest.fixture
def among() -> StudyTables:
    """Four pairs, one of them found by trying, a scheduler, and a learned policy of two seeds."""
    one = {name: [dict(zip("ab", values, strict=True))] for name, values in PAIRS.items()}
    more = {"best_fixed_pair": one["shortest-low_power"], "easy": [{"a": 5.0, "b": 7.0}]}
    return scored({**one, **more, "mine": [{"a": 2.0, "b": 2.0}, {"a": 28.0, "b": 32.0}]}, learned=("mine",))


def test_the_map_has_each_pair_in_its_place_from_best_to_worst(among):
    above = draw(among, "pairs").figure.axes[0]
    assert [label.get_text() for label in above.get_yticklabels()] == ["shortest", "first"]
    assert [label.get_text() for label in above.get_xticklabels()] == ["high_mem", "low_power"]
    assert above.collections[0].get_array().reshape(2, 2).tolist() == [[3.0, 20.0], [10.0, 50.0]]
    assert [text.get_text() for text in above.texts] == ["3.00", "20.0", "10.0", "50.0"]


def test_the_pair_that_was_found_is_framed_and_no_other(among):
    drawing = draw(among, "pairs")
    frames = [patch for patch in drawing.figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert [(int(frame.get_x()), int(frame.get_y())) for frame in frames] == [(1, 0)]
    assert any("best_fixed_pair" in text.get_text() for text in drawing.figure.legends[0].get_texts())
    assert same_scores(among.scores, "easy", PAIRS) == "" == same_scores(among.scores, "mine", PAIRS)


def test_each_seed_has_its_place_among_the_pairs(among):
    drawing = draw(among, "pairs")
    ends = [drawing.values[name] for name in ("pairs", "first", "last")]
    assert ends == [4, "shortest-high_mem", "first-low_power"]
    assert [drawing.values[name].value for name in ("first_value", "last_value")] == [3, 50]
    shown = {name: (row["value"].value, row["places"]) for name, row in drawing.values["places"].items()}
    assert shown == {"easy": (6, ["2"]), "mine": (16, ["1", "4"]), "best_fixed_pair": (20, ["3"])}
    assert drawing.values["places"]["best_fixed_pair"]["pair"] == "shortest-low_power"
    rows = [label.get_text() for label in drawing.figure.axes[1].get_yticklabels()]
    assert rows == ["easy", "mine", "best_fixed_pair"]


def test_a_place_counts_those_that_are_lower():
    assert [place_among(value, {"a": 0.5, "b": 0.7, "c": 0.7}) for value in (0.8, 0.7, 0.4)] == [4, 2, 1]


def test_all_have_intervals_of_one_kind_over_workloads():
    """A rule of one seed and a learned policy of three have intervals over the same five workloads, and seeds ticks."""
    units = [
        dict(zip("abcde", values, strict=True)) for values in ((1, 2, 3, 4, 90), (2, 3, 4, 5, 90), (3, 4, 5, 6, 90))
    ]
    means = {"first-high_mem": units[:1], "easy": units[:1], "mine": units}
    drawing = draw(scored(means, learned=("mine",)), "pairs")
    assert drawing.values["interval"] and not drawing.values["range"] and drawing.values["workloads"] == 5
    below = drawing.figure.axes[1]
    bars = [line.get_xdata() for line in below.get_lines() if line.get_linewidth() == BAR["linewidth"]]
    assert len(bars) == 2 and all(high - low > 20 for low, high in bars), "as wide as the workloads differ"
    (ticks,) = [line.get_xdata() for line in below.get_lines() if line.get_marker() == "|"]
    assert ticks == pytest.approx([20.0, 20.8, 21.6])


CURVES = {
    "reinforce-case": [
        {"return": [1.0, 2.0], "loss": [5.0, 4.0], "probability first-high_mem": [0.2, 0.1],
         "probability first-low_power": [0.5, 0.1], "probability shortest-high_mem": [0.3, 0.8]},
        {"return": [3.0, 4.0], "loss": [3.0, 2.0], "probability first-high_mem": [0.4, 0.2],
         "probability first-low_power": [0.4, 0.2], "probability shortest-high_mem": [0.2, 0.6]},
    ],
    "ppo-case": [{"return": [1.5, 2.5], "policy_loss": [0.5, 0.25], "probability first-high_mem": [1.0, 1.0]}],
}  # fmt: skip


def test_learning_shows_mean_and_range_of_return_and_loss():
    drawing = draw(learned(CURVES), "learning", ("reinforce-case", "ppo-case"))
    panels = drawing.figure.axes
    assert [axes.get_title(loc="left") for axes in panels[:2]] == ["reinforce", "ppo"]
    lines = [axes.get_lines()[0].get_xydata().tolist() for axes in panels]
    assert lines == [[[8, 2.0], [16, 3.0]], [[8, 1.5], [16, 2.5]], [[8, 4.0], [16, 3.0]], [[8, 0.5], [16, 0.25]]]
    band = panels[0].collections[0].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == (1.0, 4.0)
    reinforce, ppo = drawing.values["returns"].values()
    assert reinforce == {"first": 2.0, "last": 3.0, "steps": 16, "low": 2.0, "high": 4.0}
    assert ppo == {"first": 1.5, "last": 2.5, "steps": 16, "low": None, "high": None}
    assert drawing.values["seeds"] == 2


def test_a_window_of_ones_own_begins_where_it_is_whole():
    axes = draw(learned(CURVES), "learning", ("reinforce-case",), window=2).figure.axes[0]
    assert axes.get_lines()[0].get_xydata().tolist() == [[16, 2.5]]


def test_preferences_of_pairs_with_the_same_policy_add_up():
    tables = learned(CURVES)
    points = tables.curves[tables.curves["policy"] == "reinforce-case"]
    episodes, cores = preferred(points, "core")
    assert episodes.tolist() == [8, 16] and list(cores) == ["high_mem", "low_power"]
    assert cores["high_mem"] == pytest.approx(np.array([[0.5, 0.9], [0.6, 0.8]]))
    assert preferred(points, "job")[1]["first"] == pytest.approx(np.array([[0.7, 0.2], [0.8, 0.4]]))
    assert len(preferred(points, "pair")[1]) == 3
    drawing = draw(tables, "preferences", ("reinforce-case", "ppo-case"), by=["core"])
    last = drawing.values["last"][0]
    assert last == {"agent": "reinforce-case", "group": "high_mem", "probability": pytest.approx(0.85)}
    first, second = (drawing.figure.axes[number].get_lines()[0] for number in (0, 1))
    assert first.get_label() == second.get_label() == "high_mem" and first.get_color() == second.get_color()


def test_only_the_first_groups_have_names():
    axes = theme.new_figure()[1]
    preference_lines(axes, np.array([1, 2]), {f"action {number}": np.full((1, 2), 0.1) for number in range(NAMED + 3)})
    labels = [line.get_label() for line in axes.get_lines()]
    assert labels == [*(f"action {number}" for number in range(NAMED)), *["_others"] * 3]


@pytest.mark.parametrize(
    ("kind", "tables", "policies", "key", "named"),
    [
        ("pairs", scored({"easy": [{"a": 1.0}]}), (), "scenarios", "mean_bounded_slowdown"),
        ("learning", learned(CURVES), ("reinforce-other",), "policies", "case"),
    ],
)
def test_scenarios_without_pairs_and_agents_that_learned_elsewhere_are_refused(kind, tables, policies, key, named):
    with pytest.raises(UserError) as error:
        draw(tables, kind, policies)
    assert error.value.where == f"figure figure: {key}" and named in error.value.what


def test_overuse_shows_each_span_on_its_processor(tmp_path: Path):
    tables = overused(
        {"first-high_gflops": [(1, 100.0, 30.0), (0, 110.0, 10.0)], "first-high_mem_bw": []}, 150.0, tmp_path
    )
    drawing = draw(tables, "overuse", ("first-high_gflops", "first-high_mem_bw"))
    share, kinds, none = drawing.figure.axes[:3]
    assert share.get_lines()[0].get_xydata().tolist() == [[0, 0], [0, 50], [10, 100], [20, 50], [30, 0], [50, 0]]
    assert [len(axes.get_yticklabels()) for axes in (kinds, none)] == [2, 2]
    shares = np.asarray(kinds.collections[0].get_array()).reshape(2, 60)
    assert shares.sum(axis=0) == pytest.approx([100] * 12 + [200] * 12 + [100] * 12 + [0] * 24), "of 50 s"
    assert not np.asarray(none.collections[0].get_array()).any()
    found = drawing.values["found"]
    assert drawing.values["processors"] == 2 and found["first-high_gflops"]["count"] == 2
    assert found["first-high_gflops"]["share"] == pytest.approx(0.4) and found["first-high_mem_bw"]["count"] == 0


def test_bubbles_stand_on_the_queue_and_count_what_was_lacking():
    """60 s in sixtieths: two refusals in the 11th second, one in the 31st; the largest bubble is that of two."""
    held = {"first-high_gflops": [(110.2, "cores"), (110.8, "cores"), (130.5, "memory")], "shortest-high_mem_bw": []}
    drawing = draw(held_back(held, [(100.0, 0), (105.0, 4), (140.0, 0), (160.0, 0)]), "bubbles", tuple(held))
    above, below = drawing.figure.axes
    drawn = [
        found for found in above.collections if len(found.get_offsets()) and not found.get_label().startswith("for")
    ]
    assert [found.get_offsets().tolist() for found in drawn] == [
        [pytest.approx([10.5 / 60, 4])],
        [pytest.approx([30.5 / 60, 4])],
    ]  # minutes
    assert [found.get_sizes().tolist() for found in drawn] == [[160.0], [80.0]]
    assert not [found for found in below.collections if len(found.get_offsets())]
    assert list(drawing.values["held"].values()) == [{"cores": 2, "memory": 1}, {"cores": 0, "memory": 0}]


def test_part_of_time_by_hand():
    assert share_of_time([(0, 0.0, 5.0), (1, 2.0, 5.0)], 4, 10.0) == 0.25
    assert share_of_time([], 4, 0.0) == 0.0
    assert count_oversubscribed([(0, 0.0, 1.0), (0, 2.0, 1.0), (3, 0.0, 1.0)]) == 2
