"""Fill the tables of docs/notebook/performance.md from a record of benchmarks/suite.py.

    python docs/generate/performance_page.py [docs/results/benchmarks.json] [--page docs/notebook/performance.md]

Each table stands between two marks, `<!-- measured: NAME -->` and `<!-- end of NAME -->`. Goals and the originals'
rates come from benchmarks/goals.yaml.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.files import write_text
from schedlab.config.runtime import instructions

instructions.pin()  # before libraries are loaded: else a picture has other bytes on another processor

from growth_pictures import curves, draw_together, fit  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RECORD, PAGE, PICTURES = (
    ROOT / "docs/results/benchmarks.json",
    ROOT / "docs/notebook/performance.md",
    ROOT / "docs/pictures",
)
STUDIES = ("batch", "ramp", "hetero", "cloud", "adaptation", "general")


def main() -> None:
    """Rewrite the page's tables and the two pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", nargs="?", type=Path, default=RECORD)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--pictures", type=Path, default=PICTURES, metavar="FOLDER")
    given = parser.parse_args()
    record = json.loads(given.record.read_text(encoding="utf-8"))
    write_text(given.page, filled(given.page.read_text(encoding="utf-8"), record))
    draw_together(record["growth"], given.pictures)


def filled(page: str, record: dict[str, Any]) -> str:
    """Return the page with the tables of a record."""
    goals = yaml.safe_load((ROOT / "benchmarks/goals.yaml").read_text(encoding="utf-8"))
    tables = {"machine": [machine_line(record)], "growth": growth_table(record["growth"], goals)}
    tables["missed"] = missed(record["rates"], goals) + missed_growth(record["growth"], goals) or [
        "No goal of these tables is missed."
    ]
    for study in STUDIES:
        tables[f"rates of {study}"] = rate_table([one for one in record["rates"] if one["study"] == study], goals)
    for name, lines in tables.items():
        mark = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end of {name} -->)", flags=re.S)
        page, count = mark.subn(lambda found, lines=lines: found[1] + "\n".join(lines) + "\n" + found[2], page)
        if count != 1:
            raise ValueError(f"the page has {count} marks of '{name}'; expected one")
    return page


def machine_line(record: dict[str, Any]) -> str:
    """Return the machine and its load as a sentence; records from before the processor's name was kept tell none."""
    kind, load = record["machine"], record["load"]
    packages = ", ".join(f"{name} {version}" for name, version in kind["packages"].items())
    named = [kind[key] for key in ("processor_name", "system", "processor") if kind.get(key)]
    text = f"{kind['cores']} core{'s' if kind['cores'] != 1 else ''} ({', '.join(named)}, {kind['memory_gib']:g} GiB), "
    return (
        text
        + f"Python {kind['python']}, {packages}; load average {load['before']:g} before and {load['after']:g} after."
    )


def rate_table(rates: list[dict[str, Any]], goals: dict[str, dict[str, Any]]) -> list[str]:
    """Return a table in Markdown: what, our median and quartiles, the goal, the original."""
    lines = ["| benchmark | what | median | quartiles | best | goal | original |", "|---|---|---:|---:|---:|---:|---|"]
    for one in rates:
        known = goals.get(f"{one['study']}/{one['name']}", {})
        sign = "≤" if one["unit"] == "s" else "≥"
        goal = f"{sign} {text_of(known['goal'], one['unit'])}" if "goal" in known else ""
        original = f"{known['original']} ({known['source']})" if "original" in known else ""
        ends = sorted(value_of(one, key) for key in ("q1", "q3"))
        quartiles = " to ".join(text_of(end, one["unit"], with_unit=place == 1) for place, end in enumerate(ends))
        cells = (
            text_of(value_of(one, "median"), one["unit"]),
            quartiles,
            text_of(value_of(one, "min"), one["unit"]),
            goal,
            original,
        )
        lines.append(f"| `{one['name']}` | {one['what']} | " + " | ".join(cells) + " |")
    return lines


def value_of(one: dict[str, Any], key: str) -> float:
    """Return the rate at one of the recorded times (unit s: seconds of one)."""
    seconds = one["seconds"][key]
    return seconds / one["count"] if one["unit"] == "s" else one["count"] / seconds


def text_of(value: float, unit: str, *, with_unit: bool = True) -> str:
    """Return a rate with three digits, or a time in s, ms or us."""
    if unit != "s":
        digits = float(f"{value:.3g}")
        return f"{digits:,.0f}" + (f" {unit}/s" if with_unit else "")
    size, name = next(
        ((size, name) for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if value >= size), (1e-6, "us")
    )
    return f"{value / size:.3g} {name}"


def reaches(one: dict[str, Any], key: str, goal: float) -> bool:
    """Return whether the rate at one of the recorded times reaches the goal."""
    value = value_of(one, key)
    return value <= goal if one["unit"] == "s" else value >= goal


def missed(rates: list[dict[str, Any]], goals: dict[str, dict[str, Any]]) -> list[str]:
    """Return a line for each goal that the record misses: by how much."""
    lines = []
    for one in rates:
        known = goals.get(f"{one['study']}/{one['name']}", {})
        if "goal" not in known or reaches(one, "median", known["goal"]):
            continue
        goal, median, best = (
            text_of(value, one["unit"]) for value in (known["goal"], value_of(one, "median"), value_of(one, "min"))
        )
        far = abs(value_of(one, "median") / known["goal"] - 1)
        told = "the best round reaches it" if reaches(one, "min", known["goal"]) else f"the best round {best}"
        lines.append(f"* {one['study']} `{one['name']}`: {median} of {goal}, {far:.0%} off; {told}.")
    return lines


def missed_growth(grown: dict[str, Any], goals: dict[str, dict[str, Any]]) -> list[str]:
    """Return a line for each goal of time that the largest size of what grows misses."""
    lines = []
    for name, one in grown.items():
        known, last = goals.get(f"growth/{name}", {}), one["points"][-1]
        if "goal" in known and last["seconds"] > known["goal"]:
            took, goal = (text_of(value, "s") for value in (last["seconds"], known["goal"]))
            at = f"at {last['size']:,.0f} {one['label']}"
            lines.append(f"* {one['what']}: {took} of {goal} {at}, {last['seconds'] / known['goal'] - 1:.0%} off.")
    return lines


def growth_table(grown: dict[str, Any], goals: dict[str, dict[str, Any]] | None = None) -> list[str]:
    """Return a table in Markdown: the smallest and the largest size, time (with its goal, if any) and memory at the
    largest, exponents.
    """
    lines = ["| what grows | from | to | time at the largest | exponent | memory at the largest | exponent |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for name, one in grown.items():
        first, last = one["points"][0], one["points"][-1]
        time, memory = (f"{found[0]:.2f}" if (found := fit(*curve)) else "" for curve in curves(one).values())
        sizes = f"{first['size']:,.0f} | {last['size']:,.0f}"
        known = (goals or {}).get(f"growth/{name}", {})
        goal = f" (≤ {text_of(known['goal'], 's')})" if "goal" in known else ""
        at_last = f"{text_of(last['seconds'], 's')}{goal} | {time} | {last['memory_mb']:,.0f} MB | {memory}"
        lines.append(f"| {one['label']}: {one['what']} | {sizes} | {at_last} |")
    return lines


if __name__ == "__main__":
    main()
