"""The code that decides a result: a hash of the modules that a stage reaches, and the packages that they compute with.

A module counts by its syntax tree without docstrings, documentation of settings and positions, so that an edit of a
comment, a docstring or a line break changes nothing. It reaches the modules that it imports, at first or second hand,
and those that it names to `load_object` in so many letters; imports for type checking alone do not count. Modules that
draw, parse a command line, report mistakes or keep a run in order decide no number (`NO_NUMBERS`) and are not followed.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import schedlab
from schedlab.config.runtime.instructions import pinned

# Packages whose version can change a number or a picture, by the name that is imported -> the name that is installed.
PACKAGES = {
    "batsim": "pybatsim", "gymnasium": "gymnasium", "h5py": "h5py", "matplotlib": "matplotlib", "moocore": "moocore",
    "networkx": "networkx", "numba": "numba", "numpy": "numpy", "pandas": "pandas", "procset": "procset",
    "sb3_contrib": "sb3-contrib", "scipy": "scipy", "seaborn": "seaborn", "sklearn": "scikit-learn",
    "stable_baselines3": "stable_baselines3", "torch": "torch", "torch_geometric": "torch-geometric",
}  # fmt: skip

ORDER = r"schedlab(\.(cli|environments|config\.(errors|data_paths|runtime(?!\.compiled)))(\..*)?)?"
NO_NUMBERS = re.compile(rf"{ORDER}|.*\.(commands|figures)(\..*)?")
NOT_DRAWN = re.compile(rf"{ORDER}|.*\.commands(\..*)?")  # what a picture does not depend on
DRAWING = "schedlab.stages.draw"
# Modules that all parts reach: of them only what is imported by name counts, with what it uses of its module.
BY_NAME = re.compile(r"schedlab\.config\.(contract|files|readers|schema|seeds|settings)")

PYTHON = "{}.{}".format(*sys.version_info[:2])  # its syntax trees differ, too, from one such version to another

Remember = Callable[[str, Callable[[], Any]], Any]  # (key, make) -> a JSON value that is made once
Content = tuple[str, list[str]]  # the digest of a syntax tree, and the dotted names that it imports


class Code:
    """The code of some packages as it lies in their folders.

    packages  name -> folder of a package, or file of a module; schedlab's own is always there
    remember  keeps what was read of a file, by its path, size and times (records_cache.RecordCache.get)
    """

    def __init__(self, packages: Mapping[str, Path] | None = None, remember: Remember | None = None) -> None:
        self.packages = {"schedlab": Path(schedlab.__file__).parent, **(packages or {})}
        self.remember = remember or (lambda _key, make: make())
        self._files: dict[str, Path | None] = {}
        self._contents: dict[str, Content] = {}
        self._hashes: dict[tuple[str, ...], tuple[str, dict[str, str]]] = {}

    def add_file(self, path: Path) -> str:
        """Take a user's file in, with the modules beside it that it may import; returns its name as a root."""
        self._files.clear()
        for file in sorted(path.parent.glob("*.py")):
            self.packages.setdefault(file.stem, file)
        name = path.stem if self.packages[path.stem] == path else path.as_posix().replace(".", "-")
        self.packages[name] = path
        return name

    def hash(self, roots: Iterable[str], upon: Iterable[str] = ()) -> dict[str, Any]:
        """Return {"code": 16 hexadecimal digits over what the roots reach, "packages": versions that it computes with,
        that of Python among them, and under `instructions` what they are held to}.

        roots  modules ("a.b"), or functions ("a.b:f"), of whose module only what the function uses counts; drawings are
               followed where the stage that draws is among them
        upon   marks of other code that the result builds on, such as that of its inputs
        """
        names = tuple(sorted(set(roots)))
        if names not in self._hashes:
            reached = sorted(self._reached(names).items())
            imports = {part for _, (_, names) in reached for name in names for part in (name, name.partition(".")[0])}
            used = sorted({PACKAGES[name] for name in imports & PACKAGES.keys()})
            versions = {name: version for name in used if (version := _version(name))}
            versions |= {"instructions": pinned(), "python": PYTHON} if versions else {"python": PYTHON}
            self._hashes[names] = _hexdigest(f"{name} {tree}" for name, (tree, _) in reached), versions
        code, versions = self._hashes[names]
        return {"code": _hexdigest([code, *sorted(set(upon))])[:16], "packages": dict(versions)}

    def reached(self, roots: Iterable[str]) -> dict[str, str]:
        """Return all modules that the roots reach, themselves included, by name -> digest of their trees, sorted."""
        return {name: tree for name, (tree, _) in sorted(self._reached(tuple(roots)).items())}

    def _reached(self, roots: tuple[str, ...]) -> dict[str, Content]:
        without = NOT_DRAWN if DRAWING in roots else NO_NUMBERS
        found: dict[str, Content] = {}
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name in found or (path := self._file(name.partition(":")[0])) is None:
                continue
            found[name] = self._content(name, path)
            waiting += [imported for imported in found[name][1] if not without.fullmatch(imported)]
        return found

    def _content(self, name: str, path: Path) -> Content:
        if name not in self._contents:
            module, _, function = name.partition(":")
            stat = path.stat()
            times = f"{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"
            read = self.remember(f"code:{_reader()}:{path}:{name}:{times}", lambda: list(_read(path, module, function)))
            self._contents[name] = read[0], read[1]
        return self._contents[name]

    def _file(self, name: str) -> Path | None:
        """The file of a module of the packages; None for those of other packages and for names inside a module."""
        if name not in self._files:
            first, *rest = name.split(".")
            place = self.packages.get(first)
            if place is None or place.suffix == ".py":
                self._files[name] = None if rest else place
            else:
                path = place.joinpath(*rest)
                places = ([path.with_suffix(".py")] if rest else []) + [path / "__init__.py"]
                self._files[name] = next((file for file in places if file.is_file()), None)
        return self._files[name]


def _read(path: Path, module: str, function: str) -> Content:
    """The content of a module, or of one function with what it uses of its module. Raises ValueError where it has none
    of that name.
    """
    tree = _bare(ast.parse(path.read_text(encoding="utf-8")))
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    if not function:
        return _digest(tree), sorted(_imports(tree, package))
    if not any(function in _names_of(node) for node in tree.body):
        raise ValueError(f"{path} defines no {function}")
    always = [node for node in tree.body if not _names_of(node) and not isinstance(node, ast.Import | ast.ImportFrom)]
    used, waiting = set[str](), [function, *(name for node in always for name in _loaded(node))]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += [loaded for node in tree.body if name in _names_of(node) for loaded in _loaded(node)]
    nodes = [node for node in tree.body if node in always or used & set(_names_of(node))]
    found = {name for node in nodes for name in _imports(node, package)}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*" or (alias.asname or alias.name.partition(".")[0]) in used:
                    found |= set(_imported(node, alias, package))
    return _digest(*nodes), sorted(found)


def _loaded(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _names_of(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines or adds to, where it does nothing else."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else targets
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """The names that a tree imports or gives to `load_object` or `import_module`, not for type checking alone."""
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test):
        for other in tree.orelse:
            yield from _imports(other, package)
        return
    if isinstance(tree, ast.Import | ast.ImportFrom):
        for alias in tree.names:
            yield from _imported(tree, alias, package)
    if isinstance(tree, ast.Call) and tree.args and isinstance(tree.args[0], ast.Constant):
        called = getattr(tree.func, "attr", getattr(tree.func, "id", ""))
        if called in ("load_object", "import_module") and isinstance(tree.args[0].value, str):
            yield tree.args[0].value.partition(":")[0]
    for child in ast.iter_child_nodes(tree):
        yield from _imports(child, package)


def _imported(node: ast.Import | ast.ImportFrom, alias: ast.alias, package: str) -> Iterator[str]:
    """`from a import b` gives a and a.b, since b may be a module; of those BY_NAME it gives a:b."""
    if isinstance(node, ast.Import):
        yield alias.name
        return
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    source = ".".join([*above, *([node.module] if node.module else [])])
    if BY_NAME.fullmatch(source) and alias.name != "*":
        yield f"{source}:{alias.name}"
        return
    yield source
    yield f"{source}.{alias.name}"


def _bare(tree: ast.Module) -> ast.Module:
    """Take out of a tree what only people read: docstrings, texts on lines of their own, documentation of settings."""
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
        if isinstance(node, ast.Call):
            node.keywords = [word for word in node.keywords if word.arg != "doc"]
    return tree


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _digest(*trees: ast.AST) -> str:
    return _hexdigest(map(ast.dump, trees))


def _hexdigest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def _reader() -> str:
    """What decides the digest of a file beside its text: this module and Python's version."""
    return _hexdigest([Path(__file__).read_text(encoding="utf-8"), PYTHON])[:12]


@cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # an extra that is not installed
        return ""
