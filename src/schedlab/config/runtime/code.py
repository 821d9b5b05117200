"""The code that decides a result: a hash of the modules that a stage reaches, and the packages that they compute with.

A module counts by its syntax tree without docstrings and positions, so that an edit of a comment, a docstring or a line
break changes nothing. It reaches the modules that its text imports, at first or second hand, and those that it names to
`load_object`; imports for type checking alone do not count. Modules that draw, parse a command line, report mistakes or
keep a run in order decide no number (`NO_NUMBERS`) and are not followed.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import schedlab

# Packages whose version can change a number, by the name that is imported -> the name that is installed. Numba compiles
# what the module `compiled` is given.
PACKAGES = {
    "schedlab.config.runtime.compiled": "numba",
    "gymnasium": "gymnasium", "h5py": "h5py", "moocore": "moocore", "networkx": "networkx", "numba": "numba",
    "numpy": "numpy", "pandas": "pandas", "sb3_contrib": "sb3-contrib", "scipy": "scipy", "sklearn": "scikit-learn",
    "stable_baselines3": "stable_baselines3", "torch": "torch", "torch_geometric": "torch-geometric",
}  # fmt: skip

ORDER = r"schedlab(\.(cli|environments|config\.(errors|runtime|data_paths))(\..*)?)?|.*\.commands(\..*)?"
NO_NUMBERS = re.compile(rf"{ORDER}|.*\.figures(\..*)?")
NOT_DRAWN = re.compile(ORDER)  # what a picture does not depend on

_TYPING_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", flags=re.MULTILINE)
_IMPORT = re.compile(
    r"^[ \t]*(?:from ([\w.]+) import ([^\n(]+|\([^)]*\))|import ([\w., ]+))|load_object\(\s*\"([\w.]+):",
    flags=re.MULTILINE,
)
Remember = Callable[[str, Callable[[], Any]], Any]  # (key, make) -> a JSON value that is made once


class Code:
    """The code of some packages as it lies in their folders.

    packages  name -> folder; by default schedlab's own
    remember  keeps what was read of a file, by its path, size and time of change (record_cache.RecordCache.get)
    """

    def __init__(self, packages: Mapping[str, Path] | None = None, remember: Remember | None = None) -> None:
        self.packages = {"schedlab": Path(schedlab.__file__).parent, **(packages or {})}
        self.remember = remember or (lambda _key, make: make())
        self._read: dict[Path, tuple[str, list[str]]] = {}
        self._hashes: dict[tuple[str, ...], tuple[str, dict[str, str]]] = {}

    def hash(
        self, roots: Iterable[str], also: Iterable[str] = (), without: re.Pattern[str] = NO_NUMBERS
    ) -> dict[str, Any]:
        """Return {"code": 16 hexadecimal digits over what the roots reach, "packages": versions that it computes with}.

        roots    modules ("a.b"), or functions ("a.b:f"), of whose module only what the function uses counts
        also     hashes of other code that the result builds on, such as that of its inputs
        without  names of modules that are not followed
        """
        key = (*sorted(set(roots)), without.pattern)
        if key not in self._hashes:
            reached = sorted(self._reached(roots, without).items())
            names = {part for _, (_, imports) in reached for name in imports for part in (name, name.partition(".")[0])}
            used = sorted({PACKAGES[name] for name in names & PACKAGES.keys()})
            versions = {name: version for name in used if (version := _version(name))}
            self._hashes[key] = _hexdigest(f"{name} {tree}" for name, (tree, _) in reached), versions
        code, versions = self._hashes[key]
        return {"code": _hexdigest([code, *sorted(set(also))])[:16], "packages": dict(versions)}

    def reached(self, roots: Iterable[str], without: re.Pattern[str] = NO_NUMBERS) -> list[str]:
        """Return the names of all modules that the roots reach, themselves included, sorted."""
        return sorted(self._reached(roots, without))

    def _reached(self, roots: Iterable[str], without: re.Pattern[str]) -> dict[str, tuple[str, list[str]]]:
        """Root or module -> the digest of its syntax tree and the names that it imports."""
        found: dict[str, tuple[str, list[str]]] = {}
        waiting = sorted(set(roots))
        while waiting:
            name = waiting.pop()
            module, _, function = name.partition(":")
            path = self._file(module)
            if name in found or path is None:
                continue
            found[name] = self._content(path) if not function else _part_of(path, function)
            waiting += [imported for imported in found[name][1] if not without.fullmatch(imported)]
        return found

    def _content(self, path: Path) -> tuple[str, list[str]]:
        if path not in self._read:
            stat = path.stat()
            key = f"code:{path}:{stat.st_size}:{stat.st_mtime_ns}"
            digest, imports = self.remember(key, lambda: list(_whole(path)))
            self._read[path] = digest, imports
        return self._read[path]

    def _file(self, name: str) -> Path | None:
        """The file of a module of the packages; None for those of other packages and for names inside a module."""
        first, *rest = name.split(".")
        if first not in self.packages:
            return None
        path = self.packages[first].joinpath(*rest)
        places = (path.with_suffix(".py"), path / "__init__.py") if rest else (path / "__init__.py",)
        return next((file for file in places if file.is_file()), None)


def _whole(path: Path) -> tuple[str, list[str]]:
    """The digest of a file's syntax tree, and the names that it imports."""
    text = path.read_text(encoding="utf-8")
    return _digest(_bare(ast.parse(text))), sorted(imported(text))


def _part_of(path: Path, function: str) -> tuple[str, list[str]]:
    """The same of one function, with what it uses of its module. Raises ValueError where the module has none."""
    tree = _bare(ast.parse(path.read_text(encoding="utf-8")))
    defined: dict[str, ast.stmt] = {}
    bound: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {name: imported(ast.unparse(part)) for name, part in _single_imports(node)}
        else:
            defined |= dict.fromkeys(_names_of(node), node)
    if function not in defined:
        raise ValueError(f"{path} defines no {function}")
    used, waiting = set[str](), [function]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            if name in defined:
                waiting += [part.id for part in ast.walk(defined[name]) if isinstance(part, ast.Name)]
    nodes = [node for node in tree.body if used & set(_names_of(node))]
    imports = {module for name in used & bound.keys() for module in bound[name]}
    imports |= {module for node in nodes for module in imported(ast.unparse(node))}
    return _digest(*nodes), sorted(imports)


def _single_imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ast.stmt]]:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        yield name, ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, [alias], 0)


def _names_of(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [part.id for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)]


def _bare(tree: ast.Module) -> ast.Module:
    """Take the docstrings out of a tree."""
    for node in ast.walk(tree):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree


def _digest(*trees: ast.AST) -> str:
    return _hexdigest(map(ast.dump, trees))


def _hexdigest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def imported(text: str) -> set[str]:
    """Return the dotted names that a text imports or gives to `load_object`; `from a import b` gives a and a.b."""
    found: set[str] = set()
    for source, names, plain, loaded in _IMPORT.findall(_TYPING_ONLY.sub("", text)):
        parts = [part.split()[0] for part in names.strip("()\n ").split(",") if part.strip()]
        found.update({source, *(f"{source}.{name}" for name in parts)} if source else ())
        found.update(part.split()[0] for part in plain.split(",") if part.strip())
        found.update({loaded} if loaded else ())
    return found


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # an extra that is not installed
        return ""
