"""Captions: templates for the values that a drawing returns, and numbers and names formatted for readers.

A template is text with names in braces and optional parts in square brackets:

    {seeds}                      a value; numbers may have a format: {ratio:.2f}, or {time:digits} as `three_digits`
    {seeds:seed|seeds}           a count with its word: 1 seed, 3 seeds
    {means:{name} {value:.3f}}   one text for each entry of a mapping, joined by semicolons (inside another: by commas);
                                 {name} is the key, {value} the value, or the names in the value if that is a mapping
    {rows:{policy} {mean:.1f}}   the same for a sequence of mappings
    {names}                      a sequence of texts, joined by commas
    [ ({low} to {high})]         left out if one of its values is missing (None, NaN, False or empty)

Braces without a name, double braces and square brackets without a value are text like any other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schedlab.config.errors import UserError, did_you_mean

FIELD = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)[:}]")
CLOSING = {"{": "}", "[": "]"}


def filled(template: str, values: Mapping[str, Any], where: str = "") -> str:
    """Return a template with the values inserted.

    where: place that the error names. Raises UserError for a name that is not among the values.
    """
    return _filled(template, values, where)[0]


def number_text(value: float, form: str) -> str:
    """Return a number as text, with the axes' minus sign, a space before a percent sign, and no large exponent."""
    text = form.format(value)
    if "e+" in text:
        return number_text(float(text), "{:.0f}")
    text = form.format(0.0) if text == form.format(-0.0) else text.replace("-", "\N{MINUS SIGN}")
    return text.replace("%", " %") if form.endswith("%}") else text


def three_digits(value: float) -> str:
    """Return a number with three digits, or with all digits before the decimal point, without an exponent."""
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")
    return text.replace("-", "\N{MINUS SIGN}")


def listed(texts: Sequence[str]) -> str:
    """Return 'a, b and c'."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def _filled(template: str, values: Mapping[str, Any], where: str, joint: str = "; ") -> tuple[str, bool]:
    """Return the text, and whether all its values are present."""
    texts, complete = [], True
    for kind, part, form in _parts(template):
        if kind == "text":
            texts.append(part)
        elif kind == "optional":
            text, there = _filled(part, values, where, joint)
            texts.append(text if there else "")
        else:
            if part not in values:
                what, remedy = f"the caption names {{{part}}}", did_you_mean(part, values)
                raise UserError(what, where=where, expected=f"one of {', '.join(sorted(values))}", remedy=remedy)
            complete = complete and not _missing(values[part])
            texts.append(_text(values[part], form, values, where, joint))
    return "".join(texts), complete


def _parts(template: str) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, text or name, format) for each text, optional part and value."""
    start = place = 0
    while place < len(template):
        field = FIELD.match(template, place)
        end = _end(template, place) if field or template[place] == "[" else -1
        if end < 0 or (field is None and not FIELD.search(template, place, end)):
            place += 1  # a bracket without a name is plain text
            continue
        yield "text", template[start:place], ""
        if field:
            yield "value", field[1], template[field.end() : end]
        else:
            yield "optional", template[place + 1 : end], ""
        start = place = end + 1
    yield "text", template[start:], ""


def _end(template: str, start: int) -> int:
    """Return the place of the bracket that closes the one at `start`; -1 if there is none."""
    depth, own, closing = 0, template[start], CLOSING[template[start]]
    for place in range(start, len(template)):
        depth += (template[place] == own) - (template[place] == closing)
        if not depth:
            return place
    return -1


def _missing(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or value is False or (hasattr(value, "__len__") and not len(value))


def _text(value: Any, form: str, values: Mapping[str, Any], where: str, joint: str) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, Mapping):
        rows = [{"name": name, **(own if isinstance(own, Mapping) else {"value": own})} for name, own in value.items()]
        return _text(rows, form, values, where, joint)
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        if not form:
            return ", ".join(str(item) for item in value)
        return joint.join(_filled(form, {**values, **row}, where, ", ")[0] for row in value)
    if form == "digits":
        return three_digits(value)
    if "|" in form:
        return f"{value} {form.split('|')[value != 1]}"
    return number_text(value, f"{{:{form}}}") if isinstance(value, (int, float)) else format(value, form)
