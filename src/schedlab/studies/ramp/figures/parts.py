"""What the figures of this study share."""

from __future__ import annotations

from collections.abc import Container

from schedlab.config.contract import Drawing, FigureSpec
from schedlab.figures import theme
from schedlab.figures.theme import MUTED

MARKERS = "osD^vPX"  # of the lines of one panel
NOT_SCORED = "scores none of these policies"  # why a scenario is left out
SHORT = {"jct": "completion time", "speedup": "speed-up"}  # of completed jobs; a panel's title has room for no more


def family(policy: str, scenario: str) -> str:
    """Return a policy's name without the scenario that it was learned on, so that panels share names."""
    return policy.removesuffix("-" + scenario.replace("_", "-"))


def left_out(spec: FigureSpec, shown: Container[str], why: str) -> dict[str, str]:
    """Return the scenarios of a figure that are not among those shown -> why (see Drawing)."""
    return {name: why for name in spec.scenarios if name not in shown}


def nothing_to_draw(spec: FigureSpec, why: str) -> Drawing:
    """Return a drawing of the words why there is nothing to draw at this scale."""
    figure, axes = theme.new_figure(height_mm=20)
    axes.axis("off")
    axes.text(0.5, 0.5, why, ha="center", va="center", color=MUTED)
    return Drawing(figure, f"{spec.caption} {why[:1].upper()}{why[1:]}.")
