"""What drawings need in addition to panels: typed values, scenarios left out, and pictures of a text."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable
from typing import TypeVar

from schedlab.config.contract import Drawing, FigureSpec
from schedlab.config.schema import Settings, validate
from schedlab.figures import theme

S = TypeVar("S", bound=Settings)
LETTERS_IN_A_LINE = 90
MOST_LINES = 12


def settings_of(spec: FigureSpec, kind: type[S]) -> S:
    """Return the typed values of a figure. Raises UserErrors."""
    return validate(kind, spec.params, lambda path: f"figure {spec.name}: params.{'.'.join(map(str, path))}")


def after_the_first(spec: FigureSpec) -> dict[str, str]:
    """Return the scenarios that a drawing of one scenario leaves out (see Drawing): all after the first one."""
    return dict.fromkeys(spec.scenarios[1:], "only the first scenario has a place here")


def left_out(spec: FigureSpec, shown: Container[str], why: str) -> dict[str, str]:
    """Return the scenarios of a figure that are not shown -> the reason (see Drawing)."""
    return {name: why for name in spec.scenarios if name not in shown}


def nothing_to_draw(why: str, left_out: Iterable[str] = ()) -> Drawing:
    """Return a drawing with a text that states why there is nothing to draw at this scale."""
    figure, axes = theme.new_figure(height_mm=20)
    axes.axis("off")
    axes.text(0.5, 0.5, why, ha="center", va="center", color=theme.MUTED)
    return Drawing(figure, f"{why[:1].upper()}{why[1:]}.", left_out=dict.fromkeys(left_out, why))


def undrawn(title: str, reason: str) -> Drawing:
    """Return a picture, in the current theme, that states that the figure could not be drawn, and why."""
    words = f"This figure could not be drawn: {' '.join(reason.split())}"
    figure, axes = theme.new_figure(height_mm=60)
    axes.set_axis_off()
    lines = textwrap.wrap(words, LETTERS_IN_A_LINE, max_lines=MOST_LINES, placeholder=" ...")
    axes.set_title(title, parse_math=False)
    axes.text(0.0, 0.9, "\n".join(lines), transform=axes.transAxes, va="top", color=theme.INK, parse_math=False)
    return Drawing(figure, "{reason}", {"reason": words})
