"""Tests of schedlab.figures.captions."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.figures.captions import filled, listed, three_digits


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("Plain [0, 1] {} {0}.", {}, "Plain [0, 1] {} {0}."),
        ("{{ x }} {{x}} {% raw %} [", {}, "{{ x }} {{x}} {% raw %} ["),
        ("{t:digits} {u:digits} {v:.3g}", {"t": 1234.5, "u": 0.5, "v": 2149.0}, "1234 0.500 2150"),
        ("{x:.2f} and {y:g}", {"x": -0.001, "y": -2.5}, "0.00 and \N{MINUS SIGN}2.5"),
        ("{x:.0f}", {"x": np.float64(3)}, "3"),
        ("{n:seed|seeds}", {"n": 1}, "1 seed"),
        ("{n:seed|seeds}", {"n": 3}, "3 seeds"),
        ("{names}.", {"names": ["a", "b"]}, "a, b."),
        ("{means:{name} {value:.1f}}", {"means": {"a": 1.0, "b": 2.0}}, "a 1.0; b 2.0"),
        (
            "{rows:{x} of {all}[ ({y})]}",
            {"rows": [{"x": 1, "y": 2}, {"x": 3, "y": None}], "all": 9},
            "1 of 9 (2); 3 of 9",
        ),
        ("{rows:{name} [{far}]}", {"rows": {"a": {"far": ["u", "v"]}, "b": {"far": []}}}, "a u, v; b "),
        ("a[ {x}][ {y:.1f}]", {"x": "", "y": float("nan")}, "a"),
        ("[{many}Many.][{one}One.]", {"many": False, "one": True}, "One."),
        ("[{rows:{name} [inner {value}]}]", {"rows": {"a": 1}}, "a inner 1"),
    ],
)
def test_a_template_is_filled_with_values(template: str, values: dict, text: str) -> None:
    assert filled(template, values) == text


def test_a_name_without_value_is_an_error_that_names_the_others() -> None:
    with pytest.raises(UserError) as error:
        filled("{seds}", {"seeds": 3}, "figure f: caption")
    assert error.value.where == "figure f: caption" and "seeds" in str(error.value)


def test_numbers_and_lists_are_written_for_readers() -> None:
    assert [three_digits(value) for value in (0.012345, 3.0, 123.4, 12345.6, -1.5)] == [
        "0.0123",
        "3.00",
        "123",
        "12346",
        "\N{MINUS SIGN}1.50",
    ]
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
