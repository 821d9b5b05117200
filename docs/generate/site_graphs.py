"""Mermaid graphs of a page as pictures in SVG, so that the site needs no script to draw them."""

from __future__ import annotations

import re
from html import escape
from itertools import pairwise

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout

MERMAID = re.compile(r"^```mermaid\ngraph (\w+)\n(.*?)^```\n", flags=re.M | re.S)
LABEL = re.compile(r"(\w+)\[([^][]+)\]")
ARROWS = re.compile(r"^\s+(\w+) --> (\w+(?: & \w+)*)$", flags=re.M)
LETTER, HEIGHT, MARGIN = 7.5, 28, 12  # pixels: width of a letter, height of a box, space around a label and the picture
COLUMNS, LAYERS = 14, 40  # pixels between neighbours in a layer, and between layers

Point = tuple[float, float]


class _Box:
    """Label, size and centre of a box; the layout sets the centre."""

    def __init__(self, label: str) -> None:
        self.label, self.w, self.h = label, LETTER * len(label) + 2 * MARGIN, HEIGHT
        self.xy: Point = (0.0, 0.0)


class _Line:
    """The points of an arrow, from the centre of a box to that of another; the layout sets them."""

    def setpath(self, points: list[Point]) -> None:
        """Take the points, in the spelling that the layout calls."""
        self.points = points


def with_pictures(markdown: str) -> str:
    """Return a page with a picture in the place of each graph. An upward graph (BT) starts at the bottom, any other one
    at the top.
    """
    return MERMAID.sub(lambda block: picture(block[2], upwards=block[1] == "BT"), markdown)


def picture(text: str, *, upwards: bool) -> str:
    """Draw the boxes and arrows of a graph without circles in layers; returns one line of HTML."""
    labels = dict(LABEL.findall(text))
    pairs = [(here, to) for here, places in ARROWS.findall(LABEL.sub(r"\1", text)) for to in places.split(" & ")]
    boxes = {name: Vertex(name) for name in sorted({name for pair in pairs for name in pair})}
    for name, box in boxes.items():
        box.view = _Box(labels.get(name, name))
    arrows = [Edge(boxes[here], boxes[to]) for here, to in pairs]
    for arrow in arrows:
        arrow.view = _Line()
    for part in Graph(list(boxes.values()), arrows).C:
        layout = SugiyamaLayout(part)
        layout.xspace, layout.yspace, layout.dw = COLUMNS, LAYERS, 1
        layout.init_all(optimize=True)
        layout.draw(10)
    drawn = [vertex.view for vertex in boxes.values()]
    sides = [box.xy[0] + side * box.w / 2 for box in drawn for side in (-1, 1)]
    sides += [point[0] for arrow in arrows for point in arrow.view.points]
    left, right = min(sides), max(sides)
    height = max(box.xy[1] for box in drawn) + HEIGHT / 2

    def placed(point: Point) -> Point:
        return point[0] - left + MARGIN, (height - point[1] if upwards else point[1]) + MARGIN

    lines = [_line([placed(point) for point in arrow.view.points]) for arrow in arrows]
    rectangles = [_rectangle(box, placed(box.xy)) for box in drawn]
    width, height = round(right - left + 2 * MARGIN), round(height + 2 * MARGIN)
    head = f'<svg class="graph" role="img" aria-label="graph" width="{width}" height="{height}">'
    return f'<div class="graph" tabindex="0">{head}{HEAD_OF_ARROW}{"".join(lines + rectangles)}</svg></div>\n'


HEAD_OF_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
)


def _line(points: list[Point]) -> str:
    """An arrow that leaves the first box and enters the last one at the side towards its neighbour."""
    (x, y), (to_x, to_y) = points[0], points[-1]
    down = 1 if to_y > y else -1
    points = [(x, y + down * HEIGHT / 2), *points[1:-1], (to_x, to_y - down * HEIGHT / 2)]
    path = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        path.append(f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}")
    return f'<path d="{" ".join(path)}" marker-end="url(#arrow)"/>'


def _rectangle(box: _Box, centre: Point) -> str:
    x, y = centre
    return (
        f'<rect x="{x - box.w / 2:.1f}" y="{y - box.h / 2:.1f}" width="{box.w:.1f}" height="{box.h}" rx="4"/>'
        f'<text x="{x:.1f}" y="{y:.1f}">{escape(box.label)}</text>'
    )
