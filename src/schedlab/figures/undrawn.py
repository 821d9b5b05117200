"""What stands in the place of a figure that could not be drawn: a picture that says so, and why."""

from __future__ import annotations

import textwrap

from schedlab.config.contract import Drawing
from schedlab.figures import theme

LETTERS_IN_A_LINE = 90
MOST_LINES = 12


def undrawn(title: str, reason: str) -> Drawing:
    """Return a picture, in the theme applied, of the words that a figure could not be drawn, and why; its caption says
    the same.
    """
    said = f"This figure could not be drawn: {' '.join(reason.split())}"
    figure, axes = theme.new_figure(height_mm=60)
    axes.set_axis_off()
    lines = textwrap.wrap(said, LETTERS_IN_A_LINE, max_lines=MOST_LINES, placeholder=" ...")
    axes.set_title(title, parse_math=False)
    axes.text(0.0, 0.9, "\n".join(lines), transform=axes.transAxes, va="top", color=theme.INK, parse_math=False)
    return Drawing(figure, said)
