"""The caption of a figure in Snakemake's report: reStructuredText that says what is seen and what the figure rests
on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from schedlab.figures.index import spans


def report_caption(entry: Mapping[str, Any]) -> str:
    """Return the caption of one figure of a figures.json, with its published counterpart, scenarios, policies, seeds,
    hash and command.
    """
    facts = {
        "Published figure": entry["published"] or "none",
        "Scenarios": ", ".join(entry["scenarios"]),
        "Policies": ", ".join(entry["policies"]),
        "Seeds": spans(entry["seeds"]),
        "Configuration": entry["config_hash"],
        "Drawn again by": entry["command"],
    }
    lines = [f"* {name}: {plain(text)}" for name, text in facts.items() if text]
    return "\n".join([plain(entry["caption"]), "", *lines]) + "\n"


def plain(text: str) -> str:
    """Return text that reStructuredText, and Jinja before it, show as it is."""
    return re.sub(r"([^\w\s]|_)", r"\\\1", " ".join(text.split()))
