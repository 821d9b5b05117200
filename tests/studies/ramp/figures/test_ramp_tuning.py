"""The recorded search: what its program draws and tabulates, and the figure of it."""

import numpy as np
import pandas as pd
import pytest

from schedlab.config.contract import FigureSpec
from schedlab.config.errors import UserError
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.studies.ramp.figures.policies import RECORDED, draw_tuning

RUNS = [
    ("00", 0, 10, 0.4),
    ("00", 0, 20, 0.3),
    ("01", 0, 10, 0.5),
    ("01", 0, 20, 0.45),
    ("00", 1, 20, 0.35),
    ("00", 1, 40, 0.25),
]


@pytest.fixture(scope="module")
def program(load_program):
    return load_program("benchmarks/ramp_tuning")


def rows_of(program):
    values = {"learning_rate": 1e-4, **{name: choices[0] for name, choices in program.SPACE.items()}}
    rules = [{"configuration": "para_max", "blocked": 0.263}]
    return pd.DataFrame(rules + [dict(zip(RECORDED, run, strict=True)) | values for run in RUNS])


def test_draws_lie_within_the_space_and_repeat(program):
    drawn = [program.draw(np.random.default_rng(seed)) for seed in range(30)]
    assert drawn[0] == program.draw(np.random.default_rng(0))
    for name, choices in program.SPACE.items():
        assert {values[name] for values in drawn} <= set(choices)
        assert len({values[name] for values in drawn}) > 1
    assert all(1e-5 <= values["learning_rate"] <= 1e-3 for values in drawn)


def test_the_table_has_a_row_for_each_configuration(program):
    table, curves = program.tables(rows_of(program))
    assert table["configuration"].tolist() == ["para_max", "00", "01"]
    assert table["blocked_rung_0"].tolist() == [0.263, 0.3, 0.45]
    assert table["blocked_rung_1"].tolist() == pytest.approx([np.nan, 0.25, np.nan], nan_ok=True)
    assert list(curves.columns) == RECORDED
    assert len(curves) == 7


def spec(record):
    return FigureSpec("tuning", "tuning", "Title", "What is shown.", params={"record": str(record), "named": 1})


def test_the_figure_has_a_panel_for_each_rung(program, tmp_path):
    program.tables(rows_of(program))[1].to_csv(tmp_path / "curves.csv", index=False)
    with theme.applied(ThemeSettings()):
        drawing = draw_tuning(None, spec(tmp_path / "curves.csv"))
    first, second = drawing.figure.axes
    assert [len(first.get_lines()), len(second.get_lines())] == [3, 2]
    assert second.get_lines()[0].get_ydata().tolist() == [0.35, 0.25]
    assert drawing.values == {"configuration": "00", "blocked": 0.25, "rules": {"para_max": 0.263}}


def test_another_table_is_refused(tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"other\.csv"):
        draw_tuning(None, spec(tmp_path / "other.csv"))
