"""Writing a drawing: SVG, PDF and PNG whose bytes depend on the drawing alone, and its caption."""

from __future__ import annotations

import gc
import logging
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from schedlab.config.contract import Drawing
from schedlab.config.files import atomic_path, write_text

# No date, and no version of the drawing software in files that would otherwise not change with it.
METADATA = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def save(drawing: Drawing, path: Path | str) -> list[Path]:
    """Write <path>.svg, .pdf, .png and the caption as <path>.txt, each atomically, inside a theme's block; returns the paths."""
    path = Path(path)
    written = []
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every table of every font that a PDF embeds
    with _nothing_collected():
        drawing.figure.draw_without_rendering()
        drawing.figure.set_layout_engine("none")  # the layout is found; finding it again for each form takes longer than drawing
        for ending, metadata in METADATA.items():
            target = path.with_name(f"{path.name}.{ending}")
            with atomic_path(target) as temporary:
                drawing.figure.savefig(temporary, format=ending, metadata=metadata)
            written.append(target)
    caption = path.with_name(f"{path.name}.txt")
    write_text(caption, textwrap.fill(" ".join(drawing.caption.split()), 100) + "\n")
    return [*written, caption]


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Keep the garbage collector from looking through a figure's many cycles while it is drawn, which takes a fifth of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
