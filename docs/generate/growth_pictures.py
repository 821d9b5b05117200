"""How time and memory grow with size, as benchmarks/growth.py measured it: power laws through the points, and pictures.

The exponent is the slope of a straight line through the logarithms of the larger half of the sizes, as small ones are
mostly constant cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from schedlab.config.contract import Drawing
from schedlab.config.settings import ThemeSettings
from schedlab.figures.panels.axes import log_ticks
from schedlab.figures.save import save_as
from schedlab.figures.theme import INK, MUTED, applied, colour, new_figure

LEAST_FITTED, LEAST_MB, IN_ONE_PICTURE = 3, 0.5, 4
LABELS = {"seconds": "CPU time (s)", "memory_mb": "memory (MB)"}


def fit(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, list[float], list[float]] | None:
    """Return exponent, sizes and fitted values of a power law through the larger half of the points, at least three;
    None of fewer.

    Least squares of log value over log size.
    """
    count = max(LEAST_FITTED, math.ceil(len(sizes) / 2))
    x, y = ([math.log(value) for value in column[-count:]] for column in (sizes, values))
    if len(x) < LEAST_FITTED:
        return None
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / sum(
        (a - middle_x) ** 2 for a in x
    )
    return slope, list(sizes[-count:]), [math.exp(middle_y + slope * (a - middle_x)) for a in x]


def curves(grown: dict[str, Any]) -> dict[str, tuple[list[float], list[float]]]:
    """Return sizes and values of time and of memory; points of memory below half a megabyte are noise and left out."""
    points = grown["points"]
    kept = {"seconds": points, "memory_mb": [point for point in points if point["memory_mb"] >= LEAST_MB]}
    return {key: ([point["size"] for point in of], [point[key] for point in of]) for key, of in kept.items()}


def drawing(grown: dict[str, Any]) -> Drawing:
    """Draw quantities side by side, time above memory, both axes logarithmic; inside a theme's block."""
    figure, axes = new_figure(2, len(grown), width=min(1.0, 0.3 + 0.25 * (len(grown) - 1)), height_mm=95, squeeze=False)
    for column, one in enumerate(grown.values()):
        for row, (key, (sizes, values)) in enumerate(curves(one).items()):
            panel = axes[row][column]
            panel.set(xscale="log", yscale="log", xlabel=one["label"], ylabel=LABELS[key] if column == 0 else "")
            _points_and_fit(panel, row, sizes, values)
        axes[0][column].set_title(one["what"].replace(", ", ",\n"))
    caption = (
        "CPU time of the work, and the peak of memory above that of a small size, over the size; both axes "
        "logarithmic. Dashed: a power "
        "law through the larger half of the sizes, at least three, with its exponent. "
    )
    return Drawing(figure, caption + "; ".join(f"{one['what']}: over {one['label']}" for one in grown.values()) + ".")


def _points_and_fit(panel: Axes, row: int, sizes: list[float], values: list[float]) -> None:
    if not values:
        panel.text(0.5, 0.5, f"less than {LEAST_MB} MB more", transform=panel.transAxes, ha="center", color=MUTED)
        return
    panel.plot(sizes, values, "o", color=colour(row), markersize=3.5)
    if found := fit(sizes, values):
        panel.plot(found[1], found[2], "--", color=INK, linewidth=0.8, label=f"exponent {found[0]:.2f}")
        panel.margins(y=0.22)  # room for the legend above what rises
        panel.legend(loc="upper left", handlelength=1.4, borderaxespad=0.1)
    for axis, numbers in ((panel.xaxis, sizes), (panel.yaxis, values)):
        log_ticks(axis, min(numbers), max(numbers))
    panel.grid(True)


def draw_together(grown: dict[str, Any], folder: Path) -> None:
    """Write one picture for each four quantities, as PNG: growth_1.png, growth_2.png."""
    with applied(ThemeSettings(dpi=120)):
        names = list(grown)
        for number, start in enumerate(range(0, len(names), IN_ONE_PICTURE), 1):
            shown = {name: grown[name] for name in names[start : start + IN_ONE_PICTURE]}
            save_as(drawing(shown), [folder / f"growth_{number}.png"])
