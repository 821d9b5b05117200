"""The style of every figure: print sizes, typeface, and colour-blind-safe colours with a fixed one for each policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schedlab.config.settings import ThemeSettings
from schedlab.figures.order import FITTED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MM_PER_INCH = 25.4
FONT = "DejaVu Sans"  # part of matplotlib, so it is the same on every machine
INK, MUTED, GRID = "#262626", "#767676", "#d9d9d9"
LIGHTEST = 0.5  # largest luminance of a colour for lines on white
LEARNED_MARKERS, RULE_MARKERS = "oDsPX^v", ("<", ">", "d", "p", (4, 1, 0), "8", "h")
STARS = ("*", (4, 1, 0))  # markers that look smaller than others of the same size
RULE_GREYS = ("#5f5f5f", "#8a8a8a", "#a9a9a9")
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))


@dataclass(frozen=True)
class Style:
    """The look of one policy in every figure of a study."""

    colour: str
    marker: str | tuple[int, int, float]
    dashes: Any = "-"

    def line(self) -> dict[str, Any]:
        """Keywords for a line."""
        return {"color": self.colour, "linestyle": self.dashes}

    def point(self) -> dict[str, Any]:
        """Keywords for a marker without line."""
        import matplotlib as mpl

        size = mpl.rcParams["lines.markersize"] * (1.5 if self.marker in STARS else 1.0)
        edge = {"markeredgecolor": "white", "markeredgewidth": 0.3}
        return {"color": self.colour, "marker": self.marker, "markersize": size, "linestyle": "none", **edge}


@contextmanager
def applied(settings: ThemeSettings) -> Iterator[None]:
    """Apply the theme to everything that is drawn and saved within the block. Matplotlib's backend Agg, which needs no
    display, is still used after the block.
    """
    import matplotlib as mpl

    mpl.use("Agg", force=True)
    with mpl.rc_context(rc(settings)):
        yield


def rc(settings: ThemeSettings) -> dict[str, Any]:
    """Return the theme's parameters of matplotlib."""
    import seaborn as sns

    width = settings.width_mm / MM_PER_INCH
    return {
        **sns.axes_style("ticks"),
        **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), settings.font_size),
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), settings.font_size * 0.875),
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
        **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
        **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
        **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
        "axes.prop_cycle": _cycle(settings.palette),
        "font.family": [FONT],
        "axes.titlelocation": "left",
        "axes.titleweight": "normal",  # each additional face of the font costs 0.15 s in every PDF
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.2,
        "lines.markersize": 5.5,
        "legend.frameon": False,
        "figure.figsize": (width, width * 0.45),
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "savefig.dpi": settings.dpi,
        "savefig.facecolor": "white",
        "svg.fonttype": "path",
        "svg.hashsalt": "schedlab",
        "pdf.fonttype": 42,
    }


def colour(number: int) -> str:
    """Return the colour of the current theme with a number from 0. After the last colour, the first one follows."""
    import matplotlib as mpl

    colours = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return colours[number % len(colours)]


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = 1.0, height_mm: float | None = None, **subplots: Any
) -> tuple[Figure, Any]:
    """Return a figure and its axes as `Figure.subplots` does, without pyplot's global state.

    width      as a fraction of the theme's full width
    height_mm  height of the whole figure; None: 45 % of its width for each row
    subplots   keywords of `Figure.subplots` (sharex, sharey, squeeze, width_ratios ...)
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    inches = mpl.rcParams["figure.figsize"][0] * width
    height = height_mm / MM_PER_INCH if height_mm else 0.45 * inches * rows / columns**0.5
    figure = Figure(figsize=(inches, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **subplots)


def mark(figure: Figure, words: str) -> None:
    """Write small words into the upper right corner of a figure, above all other content, which makes room."""
    figure.suptitle(words, x=0.995, horizontalalignment="right", fontsize="x-small", color=MUTED)


def policy_styles(kinds: Mapping[str, str]) -> dict[str, Style]:
    """Return the style of each policy (name -> kind) in the current theme. It depends only on names and kinds.

    Learned, searched and published policies have colours; rules and planners have greys and other markers; oracles and
    bounds are black and dashed; informed policies have the same markers in further colours. Learned policies therefore
    stand out, and any two policies differ in marker as well as in colour.
    """
    import matplotlib as mpl

    colours = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    fitted = sorted(name for name, kind in kinds.items() if kind in FITTED)
    informed = sorted(name for name, kind in kinds.items() if kind == "informed")
    beyond = sorted(name for name, kind in kinds.items() if kind in ("oracle", "bound"))
    rules = sorted(set(kinds) - {*fitted, *informed, *beyond})
    styles = {}
    for number, name in enumerate(fitted):
        again = number // len(colours)
        marker = LEARNED_MARKERS[(number + again) % len(LEARNED_MARKERS)]
        styles[name] = Style(colours[number % len(colours)], marker, DASHES[again % 2])
    for number, name in enumerate(rules):
        grey, shape = RULE_GREYS[number % len(RULE_GREYS)], RULE_MARKERS[number % len(RULE_MARKERS)]
        styles[name] = Style(grey, shape, DASHES[1 + number % (len(DASHES) - 1)])
    for number, name in enumerate(informed, start=len(fitted)):
        styles[name] = Style(colours[number % len(colours)], "*dh"[number % 3], DASHES[1 + number % 3])
    for number, name in enumerate(beyond):
        styles[name] = Style("#000000", "*dh"[number % 3], DASHES[1 + number % 3])
    return styles


def styles_of(scores: pd.DataFrame) -> dict[str, Style]:
    """Return the styles of all policies in a study's scores or summary: the whole table, so that all figures agree."""
    return policy_styles(dict(zip(scores["policy"], scores["kind"], strict=True)))


def luminance(colour: Any) -> float:
    """Return the relative luminance of a colour, 0 (black) to 1 (white), as in the WCAG 2.2."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ink_on(colour: Any) -> str:
    """Return the text colour, white or nearly black, with the higher contrast on a background."""
    ground = luminance(colour) + 0.05
    return "white" if 1.05 / ground > ground / (luminance(INK) + 0.05) else INK


def _colours(palette: str) -> list[str]:
    """Return the colours of a seaborn palette without greys (kept for rules) and those too light for lines on white."""
    import seaborn as sns
    from matplotlib.colors import rgb_to_hsv, to_hex, to_rgb

    colours = [to_rgb(colour) for colour in sns.color_palette(palette)]
    return [to_hex(colour) for colour in colours if rgb_to_hsv(colour)[1] > 0.15 and luminance(colour) < LIGHTEST]


def _cycle(palette: str) -> Any:
    from cycler import cycler

    return cycler(color=_colours(palette))
