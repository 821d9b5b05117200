"""Valid files made wrong, by a seeded generator: bytes, lines, fields, numbers, types, nesting, encodings, lengths,
members of archives.

The same draws give the same bytes. An input stays below LARGEST bytes, so that no reader has an excuse for taking long.
"""

from __future__ import annotations

import io
import json
import random
import re
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

LARGEST = 1 << 18
CHANGES = (1, 1, 2, 4)
NUMBERS = (
    *(
        "0",
        "-0",
        "-1",
        "1",
        "2",
        "0.5",
        "-0.5",
        "1e308",
        "-1e308",
        "1e400",
        "1e-320",
        "5e-324",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "1e",
        "--1",
    ),
    *(
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "9" * 30,
        "9" * 400,
    ),
    *(
        "1" * 5000,
        "1_000",
        "0x10",
        "010",
        "1,5",
        "1 000",
        "٣",
        "²",
        "½",
        "1e1_0",
        "true",
        "null",
        "",
        " ",
        "1e+9",
        "1000000",
        "1000001",
    ),
)
SNIPPETS = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xe9",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\x1b[31m",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\t",
        b"\x0b",
        b"\x0c",
    ),
    *(
        "\u2028".encode(),
        "\u0085".encode(),
        "\u202e".encode(),
        b'"',
        b"'",
        b"\\",
        b";",
        b",",
        b"#",
        b"{",
        b"}",
        b"[",
        b"]",
        b"<",
        b">",
        b"&",
        b"=",
    ),
    *(
        b"&amp;",
        b"&lol;",
        b"]]>",
        b"<!--",
        b"<!DOCTYPE p [<!ENTITY a 'b'>]>",
        b"<?xml version='1.0' encoding='utf-7'?>",
        b"PK\x03\x04",
        b"\x1f\x8b",
    ),
    *(
        b"*a",
        b"&a ",
        b"!!python/object/apply:os.getcwd []",
        b"!!binary ",
        b"!!timestamp ",
        b"<<: ",
        b"- ",
        b": ",
        b"? ",
        b"${",
        b"${oc.env:HOME}",
    ),
    *(
        b"${seed}",
        b"${scale.none}",
        b"${scenario}",
        b"|",
        b">-",
        b"%YAML 9.9\n",
        b"---\n",
        b"...\n",
        b"NaN",
        b"Infinity",
        b"\\ud800",
        b"None",
    ),
)
ODD_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        0.5,
        -0.5,
        2,
        10**6,
        10**6 + 1,
        2**31,
        2**63,
        -(2**63) - 1,
        10**30,
        10**400,
        1e308,
        -1e308,
        5e-324,
    ),
    *(
        float("nan"),
        float("inf"),
        float("-inf"),
        "",
        " ",
        "a",
        "-1",
        "1e400",
        "inf",
        "nan",
        "\x00",
        "\ud800",
        "é",
        "٣",
        "²",
        "x" * 5000,
        "../..",
        "/",
    ),
    *([], {}, [[]], [None], {"": {}}, [0] * 50, {"a": None}, [True, "a", {}], {"_": 1}, {"1": 1, "01": 1, "²": 2}),
)
PACKED = (
    *(zipfile.ZIP_STORED,) * 4,
    *(zipfile.ZIP_DEFLATED,) * 2,
    zipfile.ZIP_BZIP2,
    zipfile.ZIP_LZMA,
)  # LZMA's packer is slow to begin
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w.-]*")
_QUOTED = re.compile(rb"\"[^\"\n]*\"|'[^'\n]*'")

Change = Callable[[bytes, random.Random], bytes]


def mutated(form: str, valid: bytes, draws: random.Random) -> bytes:
    """Return a valid file with one to four changes; form: text, json or zip, which decides what changes keep its outer
    shape.
    """
    changes = {
        "json": (*TEXT, *(json_tree,) * len(TEXT)),
        "zip": (*BYTES, *(zip_member,) * 2 * len(BYTES)),
        "text": TEXT,
    }[form]
    data = valid
    for _ in range(draws.choice(CHANGES)):
        data = draws.choice(changes)(data, draws)[:LARGEST]
    return data


def flip_bytes(data: bytes, draws: random.Random) -> bytes:
    """Change some bytes to any others."""
    changed = bytearray(data)
    for _ in range(draws.choice((1, 1, 2, 8)) if data else 0):
        changed[draws.randrange(len(changed))] = draws.randrange(256)
    return bytes(changed)


def delete_span(data: bytes, draws: random.Random) -> bytes:
    """Leave out some bytes."""
    begin = draws.randint(0, len(data))
    return data[:begin] + data[begin + draws.choice((1, 2, 10, 100)) :]


def truncate(data: bytes, draws: random.Random) -> bytes:
    """Cut the end off."""
    return data[: draws.randint(0, len(data))]


def repeat_span(data: bytes, draws: random.Random) -> bytes:
    """Say some bytes again, often many times."""
    begin = draws.randint(0, len(data))
    length = draws.choice((1, 5, 50))
    return data[:begin] + data[begin : begin + length] * draws.choice((2, 3, 300)) + data[begin + length :]


def insert_snippet(data: bytes, draws: random.Random) -> bytes:
    """Put something odd somewhere."""
    begin = draws.randint(0, len(data))
    return data[:begin] + draws.choice(SNIPPETS) + data[begin:]


def nest(data: bytes, draws: random.Random) -> bytes:
    """Open brackets, elements or indented keys far more often than anyone would, closed or not."""
    depth = draws.choice((20, 60, 200, 900, 5000, 50_000))
    opening, closing = draws.choice(
        ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"<zone id='z' routing='Full'>", b"</zone>"), (b"- ", b""))
    )
    begin = draws.choice((0, draws.randint(0, len(data))))
    inside, rest = (data[begin:], b"") if draws.random() < 0.5 else (b"1", data[begin:])
    return data[:begin] + opening * depth + inside + closing * (depth if draws.random() < 0.7 else 0) + rest


def encode(data: bytes, draws: random.Random) -> bytes:
    """Write the whole text in another encoding, or with other ends of lines."""
    text = data.decode("utf-8", "replace")
    if draws.random() < 0.3:
        return data.replace(b"\n", draws.choice((b"\r\n", b"\r", b"")))
    return text.encode(
        draws.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "utf-7", "cp500")), "replace"
    )


def change_lines(data: bytes, draws: random.Random) -> bytes:
    """Leave out, repeat, swap, join or empty lines."""
    lines = data.split(b"\n")
    first, second = draws.randrange(len(lines)), draws.randrange(len(lines))
    kind = draws.randrange(5)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(second, lines[first])
    elif kind == 2:
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == 3:
        lines[first] = b""
    else:
        lines[first : first + 2] = [b"".join(lines[first : first + 2])]
    return b"\n".join(lines)


def swap_fields(data: bytes, draws: random.Random) -> bytes:
    """Swap, leave out or repeat a field of a line."""
    lines = data.split(b"\n")
    at = draws.randrange(len(lines))
    separator = draws.choice((b",", b" ", b" -- ", b"\t", b":", b"="))
    fields = lines[at].split(separator)
    first, second = draws.randrange(len(fields)), draws.randrange(len(fields))
    kind = draws.randrange(3)
    if kind == 0:
        fields[first], fields[second] = fields[second], fields[first]
    elif kind == 1:
        del fields[first]
    else:
        fields.insert(second, fields[first])
    lines[at] = separator.join(fields)
    return b"\n".join(lines)


def _replace_match(
    pattern: re.Pattern[bytes], data: bytes, draws: random.Random, new: Callable[[list[re.Match]], bytes]
) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return insert_snippet(data, draws)
    match = draws.choice(found)
    return data[: match.start()] + new(found) + data[match.end() :]


def change_number(data: bytes, draws: random.Random) -> bytes:
    """Put an extreme or odd number in the place of one."""
    return _replace_match(_NUMBER, data, draws, lambda found: draws.choice(NUMBERS).encode())


def change_word(data: bytes, draws: random.Random) -> bytes:
    """Put another word of the file, a number or a slip of the finger in the place of a word."""

    def other(found: list[re.Match]) -> bytes:
        word = draws.choice(found).group()
        return draws.choice((word, word[:-1], word + word[-1:], word.upper(), draws.choice(NUMBERS).encode()))

    return _replace_match(_WORD, data, draws, other)


def change_quoted(data: bytes, draws: random.Random) -> bytes:
    """Put another quoted text of the file, an odd one or a bare number in the place of a quoted one."""

    def other(found: list[re.Match]) -> bytes:
        kept = draws.choice(found).group()
        odd = kept[:1] + draws.choice((*SNIPPETS, *(number.encode() for number in NUMBERS))) + kept[-1:]
        return draws.choice((kept, odd, odd, draws.choice(NUMBERS).encode()))

    return _replace_match(_QUOTED, data, draws, other)


def json_tree(data: bytes, draws: random.Random) -> bytes:
    """Change a value, a key or a list of a JSON text; what is no JSON any more is changed as text."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return draws.choice(TEXT)(data, draws)
    holders = _holders(values)
    if not holders:
        return json.dumps(draws.choice(ODD_VALUES)).encode()
    holder = draws.choice(holders)
    key = draws.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    kind = draws.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = [holder[key]] if draws.random() < 0.5 else {"a": holder[key]}
    elif kind == 2:
        other = draws.choice(holders)
        holder[key] = json.loads(
            json.dumps(other[draws.choice(list(other) if isinstance(other, dict) else range(len(other)))])
        )
    elif kind == 3 and isinstance(holder, dict):
        holder[draws.choice((f"{key}x", "_note", "", str(key)[:-1], "\ud800", "9" * 30))] = holder.pop(key)
    elif kind == 4 and isinstance(holder, list):
        holder[key:key] = [holder[key]] * draws.choice((1, 2, 100))
    elif kind == 5 and isinstance(holder[key], str | int | float) and not isinstance(holder[key], bool):
        holder[key] = (
            str(holder[key])
            if not isinstance(holder[key], str)
            else holder[key] + draws.choice(("x", " ", "\n", "\x00", "²"))
        )
    else:
        holder[key] = draws.choice(ODD_VALUES)
    try:
        return json.dumps(values).encode()
    except RecursionError:
        return nest(data, draws)


def _holders(values: Any) -> list[Any]:
    """All lists and objects in a value that hold something."""
    found, waiting = [], [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list) and value:
            found.append(value)
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return found


def zip_member(data: bytes, draws: random.Random) -> bytes:
    """Change one member of an archive, its name or its compression, and write the archive as a whole one again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:  # no archive any more, for whichever of the standard library's many reasons
        return draws.choice(BYTES)(data, draws)
    if not members:
        return draws.choice(BYTES)(data, draws)
    at = draws.randrange(len(members))
    name, content = members[at]
    kind = draws.randrange(10)
    if kind == 0:
        del members[at]
    elif kind == 1:
        members[at] = (
            draws.choice(("meta.json", "../../outside.npy", "/outside.npy", f"{name}x", "a\x00b", "é.npy", "x" * 300)),
            content,
        )
    elif kind == 2:
        members.append((name, content))
    else:
        members[at] = (name, (json_tree if content[:1] in b"{[" else draws.choice(TEXT))(content, draws))
    made = io.BytesIO()
    compression = draws.choice(PACKED)
    with (
        warnings.catch_warnings(action="ignore"),
        zipfile.ZipFile(made, "w", compression) as archive,
    ):  # of a name that stands there twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, compress_type=compression)
    return made.getvalue()


BYTES: tuple[Change, ...] = (flip_bytes, flip_bytes, delete_span, truncate, repeat_span, insert_snippet)
TEXT: tuple[Change, ...] = (
    *BYTES,
    *(nest, encode, change_lines, change_lines, swap_fields, swap_fields, change_number, change_number, change_number),
    *(change_word, change_word, change_quoted, change_quoted),
)
