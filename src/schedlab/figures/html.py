"""Small HTML pages of tables, which load nothing from elsewhere; every text is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

STYLE = """
body { font: 13px/1.4 system-ui, sans-serif; color: #1f2937; margin: 1.5rem; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
h3 { font-size: .95rem; margin: 1rem 0 .2rem; }
p { max-width: 60rem; margin: .4rem 0; }
table { border-collapse: collapse; margin: .6rem 0 1rem; }
th, td { padding: .25rem .55rem; text-align: left; vertical-align: top; border-bottom: 1px solid #e5e7eb; }
th { border-bottom: 2px solid #9ca3af; font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.whole { white-space: nowrap; }
.small { color: #6b7280; font-size: .85em; }
.warning { border-left: 4px solid #b45309; background: #fffbeb; padding: .5rem .8rem; max-width: 60rem; }
"""


def escaped(text: object) -> str:
    """Return a text for HTML; braces too, as the page may be a template of somebody else."""
    return html.escape(str(text)).replace("{", "&#123;").replace("}", "&#125;")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table of cells that are HTML already; `numbers` are the columns set to the right."""
    return "\n".join(["<table>", _row(head, "th", numbers), *(_row(row, "td", numbers) for row in rows), "</table>"])


def page(title: str, body: str) -> str:
    """Return a whole page with its style; the body is HTML already."""
    head = f'<meta charset="utf-8"><title>{escaped(title)}</title><style>{STYLE}</style>'
    return (
        "<!doctype html>\n<html "
        f'lang="en"><head>{head}</head><body>\n<h1>{escaped(title)}</h1>\n{body}\n</body></html>\n'
    )


def _row(cells: Sequence[str], tag: str, numbers: Sequence[int]) -> str:
    right = " class='number'"
    made = (f"<{tag}{right if column in numbers else ''}>{cell}</{tag}>" for column, cell in enumerate(cells))
    return "<tr>" + "".join(made) + "</tr>"
