"""Readers of JSON, YAML, arrays and zip archives from outside. Each kind of damage gives a message of one sentence, and
memory is bounded.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import numpy as np

MAX_BYTES = 1 << 30
MOST_LEVELS = 100  # of nested lists and objects


def read_json(path: Path | str, what: str) -> Any:
    """Return the value in a JSON file. `what`: expected content of the file, for messages. Raises UserError, also for
    NaN and infinities.
    """
    return parse_json(read_text(path, what), str(path), what)


def read_text(path: Path | str, what: str) -> str:
    """Return a file's UTF-8 text. `what`: expected content of the file, for messages. Raises UserError."""
    path = Path(path)
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
    except FileNotFoundError:
        raise UserError("there is no such file", where=str(path), expected=what) from None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path), expected=what) from None
    if data is None:
        raise UserError("is larger than 1 GiB", where=str(path), expected=what)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"byte 0x{data[error.start]:02x} is not UTF-8", where=str(path), expected=what) from None


def parse_json(text: str, where: str, what: str, most_levels: int = MOST_LEVELS) -> Any:
    """Return the value of a JSON text. `where` and `what`: place and expected content, for messages. Raises UserError,
    also for NaN, infinities and repeated keys.

    most_levels: of nested lists and objects; a caller that passes values on without walking through them may allow
      more.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise UserError(
            f"is no valid JSON: {error.msg}, line {error.lineno}, column {error.colno}", where=where, expected=what
        ) from None
    except ValueError as error:
        raise UserError(f"{error}", where=where, expected=what) from None
    except RecursionError:
        raise UserError("is no valid JSON: nested too deeply", where=where, expected=what) from None
    if levels_exceed(value, most_levels):
        raise UserError(f"is nested too deeply, in more than {most_levels} levels", where=where, expected=what)
    return value


def levels_exceed(value: Any, most: int) -> bool:
    """Return whether lists and mappings are nested in more than `most` levels, which could exhaust the stack of
    recursive functions.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inside = [outer.values() if isinstance(outer, dict) else outer for outer in level]
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return bool(level)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"holds {text}, which is too large")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        twice = next(key for key, number in times.items() if number > 1)
        raise ValueError(f"holds the key '{twice}' twice in one object")
    return found


def read_members(
    path: Path | str, what: str, remedy: str, wanted: Callable[[str], bool] = lambda name: True
) -> dict[str, bytes]:
    """Return the members of a zip archive that are `wanted`, by name. `what` and `remedy`: words for messages.

    Raises UserError for a missing or damaged file, a name that occurs twice, and members that unpack to more than 1 GiB
    and more than the size of the file itself.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if wanted(info.filename)]
            twice = [name for name, count in Counter(info.filename for info in infos).items() if count > 1]
            if twice:
                raise ValueError(f"it holds '{twice[0]}' twice")
            size = sum(info.file_size for info in infos)
            if size > max(MAX_BYTES, path.stat().st_size):
                raise ValueError(f"it unpacks to {size} bytes")
            return {info.filename: archive.read(info) for info in infos}
    except FileNotFoundError:
        raise UserError("there is no such file", where=str(path), expected=what, remedy=remedy) from None
    # For damaged, encrypted or unknown archives, zipfile and its four compression methods raise about twelve kinds of
    # errors.
    except Exception as error:
        raise UserError(f"cannot be read: {error}", where=str(path), expected=what, remedy=remedy) from None


def read_array(data: bytes) -> np.ndarray:
    """Return the array in the bytes of a .npy file, without unpickling. Raises ValueError if anything is wrong with the
    bytes.
    """
    import numpy as np  # takes half of the time of `schedlab --help`

    try:
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    # NumPy parses the header as Python, which may raise tokenize.TokenError, MemoryError for impossible shapes, and
    # others.
    except Exception as error:
        raise ValueError(f"no array: {error}") from None


# Resolvers whose value depends on the machine, the clock or the process: a frozen configuration must not hold them.
FORBIDDEN_RESOLVER = re.compile(r"\$\{(oc\.env|now|hydra|python_version)\b[^}]*\}")
TEXT, FLOAT, MERGE, TIMESTAMP = (
    "tag:yaml.org,2002:str",
    "tag:yaml.org,2002:float",
    "tag:yaml.org,2002:merge",
    "tag:yaml.org,2002:timestamp",
)

ODD_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("binary", "omap", "pairs", "set", "timestamp")}  # no JSON values
MOST_YAML_LEVELS = (
    50  # of nested lists and mappings; Hydra's reader fails at about 300, and libyaml then crashes the process
)
MOST_VALUES = 100_000  # with all aliases expanded, as Hydra does: a few lines of nested aliases can fill any memory


class _Loader(yaml.CSafeLoader):
    """YAML as Hydra reads it: a date is text, and 1e-3 a number."""

    yaml_implicit_resolvers: ClassVar = {
        letter: [(tag, pattern) for tag, pattern in resolvers if tag != TIMESTAMP]
        for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(FLOAT, re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789"))


def read_value(text: str, where: str) -> Any:
    """Return the value of a YAML text; `where` names its place in messages. Raises UserError as `read_yaml` does."""
    try:
        return parse_yaml(text, Path(where))
    except yaml.YAMLError:
        raise UserError(f"'{text}' cannot be read", where=where, expected="a value as in YAML") from None


def parse_yaml(text: str, file: Path) -> Any:
    """Return the value of a YAML text, which must be a JSON value; `file` names it. Raises UserError as `read_yaml`
    does, and YAMLError.
    """
    _refuse_depth(text, file)
    loader = _Loader(text)
    if (root := loader.get_single_node()) is None:
        return None
    _refuse_odd(file, root, (), set())
    _written_out(file, root, {})
    try:
        return loader.construct_document(root)
    except (ValueError, OverflowError) as error:
        raise UserError(
            f"a number cannot be read: {error}", where=short_path(file), expected="numbers of a computer's size"
        ) from None


def _refuse_depth(text: str, file: Path) -> None:
    """Raise UserError for too many levels, before the text is composed: libyaml's composer recurses at each level and
    would exhaust the stack.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_YAML_LEVELS:
            raise _too_deep(file, event.start_mark.line)


def _too_deep(file: Path, line: int) -> UserError:
    where = f"{short_path(file)}, line {line + 1}"
    return UserError(
        "too many lists and mappings within each other", where=where, expected=f"at most {MOST_YAML_LEVELS} levels"
    )


def _written_out(file: Path, node: yaml.Node, known: dict[yaml.Node, tuple[int, int]]) -> tuple[int, int]:
    """Return (values, levels) of a node with its aliases expanded. Raises UserError if there are too many."""
    if node not in known:
        inner = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
        sizes = [_written_out(file, value, known) for value in inner] if isinstance(node, yaml.CollectionNode) else []
        known[node] = 1 + sum(count for count, _ in sizes), 1 + max((levels for _, levels in sizes), default=0)
        if known[node][0] > MOST_VALUES:
            where = f"{short_path(file)}, line {node.start_mark.line + 1}"
            raise UserError(
                "too many values, with the aliases written out", where=where, expected=f"at most {MOST_VALUES}"
            )
        if known[node][1] > MOST_YAML_LEVELS + 1:
            raise _too_deep(file, node.start_mark.line)
    return known[node]


def read_yaml(file: Path) -> dict[str, Any]:
    """Return the values of a file, which must be JSON values.

    Raises UserError if the file is not a YAML mapping in UTF-8, if a key is not text or occurs twice in one mapping (of
    which YAML readers keep the last), if a value is of another kind, and if the file uses a resolver that depends on
    the machine.
    """
    try:
        text = file.read_text(encoding="utf-8")
        content = parse_yaml(text, file)
    except UnicodeDecodeError:
        raise UserError("the file is not UTF-8 text", where=short_path(file)) from None
    except yaml.YAMLError as error:
        raise yaml_error(file, error) from None
    except OSError as error:
        raise UserError(f"the file cannot be read: {error.strerror}", where=short_path(file)) from None
    if content is not None and not isinstance(content, dict):
        raise UserError("the file holds no mapping", where=short_path(file), expected="keys and values")
    if found := FORBIDDEN_RESOLVER.search(text):
        what = f"'{found.group(0)}' depends on the machine"
        raise UserError(what, where=short_path(file), expected="a pinned value", remedy="write the value itself")
    return content or {}


def read_once(file: Path) -> dict[str, Any]:
    """Return a file's own values, read once; callers must not change them. Raises UserError."""
    try:
        changed = file.stat()
    except OSError:
        return read_yaml(file)  # raises the error
    return _parsed(file.absolute(), changed.st_mtime_ns, changed.st_size)


@lru_cache(maxsize=1024)
def _parsed(file: Path, changed_ns: int, size: int) -> dict[str, Any]:
    del changed_ns, size
    return read_yaml(file)


def _refuse_odd(file: Path, node: yaml.Node, above: tuple[yaml.Node, ...], seen: set[yaml.Node]) -> None:
    """Raise UserError for the first node, in the file's order, that is not a value of a configuration, or whose keys
    are not text or occur twice.
    """
    where = f"{short_path(file)}, line {node.start_mark.line + 1}"
    if node in above:
        raise UserError("the value holds itself", where=where, remedy="write the value itself in place of the alias")
    if node in seen:  # reached again through an alias
        return
    seen.add(node)
    if node.tag in ODD_TAGS:
        tag = node.tag.replace("tag:yaml.org,2002:", "!!")
        raise UserError(
            f"'{tag}' is no kind of value",
            where=where,
            expected="text, a number, true, false, null, a list or a mapping",
        )
    if isinstance(node, yaml.MappingNode):
        _refuse_keys(file, node)
    inside = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
    for inner in inside if isinstance(node, yaml.CollectionNode) else ():
        _refuse_odd(file, inner, (*above, node), seen)


def _refuse_keys(file: Path, mapping: yaml.MappingNode) -> None:
    first: dict[str, int] = {}
    for key, _ in mapping.value:
        line = key.start_mark.line + 1
        where = f"{short_path(file)}, line {line}"
        if not isinstance(key, yaml.ScalarNode) or key.tag not in (TEXT, MERGE):
            given = f"'{key.value}'" if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            raise UserError(f"{given} is no key", where=where, expected="text", remedy="put it into quotation marks")
        if key.value in first:
            remedy = f"remove one of them; the first is in line {first[key.value]}"
            raise UserError(f"the key '{key.value}' is written twice", where=where, remedy=remedy)
        first[key.value] = line


def yaml_error(file: Path, error: yaml.YAMLError) -> UserError:
    """Return a one-paragraph error for YAML that does not parse, with line and column."""
    mark = getattr(error, "problem_mark", None)
    where = f"{short_path(file)}, line {mark.line + 1}, column {mark.column + 1}" if mark else short_path(file)
    return UserError(f"not valid YAML: {getattr(error, 'problem', None) or error}", where=where)


def option_names(folder: Path) -> list[str]:
    """Return the names of the YAML files of one configuration group, without bases (`_base`) and hidden files
    (`.#early`).
    """
    return sorted(
        path.stem for path in folder.glob("*.yaml") if path.is_file() and not path.name.startswith(("_", "."))
    )


def short_path(file: Path) -> str:
    """Return a file's path starting with its folder conf/, as messages name it."""
    parts = file.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index("conf") :]) if "conf" in parts else file.as_posix()
