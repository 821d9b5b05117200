"""Writes a drawing: SVG, PDF and PNG whose bytes depend only on the drawing, and its caption."""

from __future__ import annotations

import gc
import logging
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from schedlab.config.contract import Drawing
from schedlab.config.files import atomic_path, write_text
from schedlab.figures.captions import filled

# Neither date nor version of the drawing software, so that files change only with the drawing.
METADATA = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def save(drawing: Drawing, path: Path | str) -> list[Path]:
    """Write <path>.svg, .pdf, .png and the caption as <path>.txt within a theme's block; return the paths."""
    path = Path(path)
    targets = [path.with_name(f"{path.name}.{ending}") for ending in METADATA]
    save_as(drawing, targets)
    caption = path.with_name(f"{path.name}.txt")
    write_text(caption, textwrap.fill(caption_of(drawing), 100, break_on_hyphens=False) + "\n")
    return [*targets, caption]


def save_as(drawing: Drawing, targets: Iterable[Path]) -> None:
    """Write a drawing to files, each in the format of its ending (svg, pdf, png), within a theme's block."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it logs every table of every font that a PDF embeds
    with _nothing_collected():
        drawing.figure.draw_without_rendering()
        drawing.figure.set_layout_engine(
            "none"
        )  # the layout is final; computing it again for each format takes longer than drawing
        for target in targets:
            form = target.suffix[1:]
            with atomic_path(target) as temporary:
                drawing.figure.savefig(temporary, format=form, metadata=METADATA[form])


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Disable the garbage collector: traversing a figure's many reference cycles takes a fifth of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def caption_of(drawing: Drawing, where: str = "") -> str:
    """Return the caption of a drawing as one line. Raises UserError, which names `where`, for an unknown name."""
    return " ".join(filled(drawing.caption, drawing.values, where).split())
