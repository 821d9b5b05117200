"""Pages and texts from Jinja2 templates. Pages load nothing from other hosts, and all inserted texts are escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

PAGES = Path(__file__).parent / "templates"  # contains page.html, which pages in other folders extend

BRACES = str.maketrans({"{": "&#123;", "}": "&#125;"})


def escaped(text: object) -> Markup:
    """Return a text for HTML (Markup as it is), with braces escaped too, as Snakemake's report fills templates."""
    return text if isinstance(text, Markup) else Markup(str(escape(text)).translate(BRACES))


def render(
    folder: Path, template: str, filters: Mapping[str, Callable[..., object]] | None = None, **values: object
) -> str:
    """Return the filled template of a folder: for `.html`, a page or a part of one; for other files, plain text.

    filters: filters of the template in addition to Jinja2's. A name in the template that `values` lacks is an error.
    """
    markup = template.endswith(".html")
    environment = Environment(
        loader=FileSystemLoader([folder, PAGES]),
        autoescape=markup,
        finalize=escaped if markup else None,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"digits": format, **(filters or {})}
    return environment.get_template(template).render(**values)
