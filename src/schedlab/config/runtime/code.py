"""The code on which a result depends: a hash of the modules that a stage reaches, and the packages that they use.

A module is hashed by its statements (`statements.py`), so an edit of a comment, a docstring or a line break changes
nothing. A module reaches the modules that it imports, directly or indirectly, and those whose names it passes as
literals to `load_object`; imports for type checking alone do not count. Modules that draw, parse a command line, report
mistakes or control a run affect no number (`NO_NUMBERS`) and are not followed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import schedlab
from schedlab.config.runtime import statements
from schedlab.config.runtime.instructions import pinned
from schedlab.config.runtime.statements import Content, Statement, content, content_of_one, hexdigest, statements_of

# Packages whose version can change a number or a picture: imported name -> installed name.
PACKAGES = {
    "batsim": "pybatsim", "gymnasium": "gymnasium", "h5py": "h5py", "matplotlib": "matplotlib", "moocore": "moocore",
    "networkx": "networkx", "numba": "numba", "numpy": "numpy", "pandas": "pandas", "procset": "procset",
    "sb3_contrib": "sb3-contrib", "scipy": "scipy", "seaborn": "seaborn", "sklearn": "scikit-learn",
    "stable_baselines3": "stable_baselines3", "torch": "torch", "torch_geometric": "torch-geometric",
}  # fmt: skip

ORDER = r"schedlab(\.(cli|environments|config\.(errors|data_paths|runtime(?!\.compiled)))(\..*)?)?"
NO_NUMBERS = re.compile(rf"{ORDER}|.*\.(commands|figures)(\..*)?")
NOT_DRAWN = re.compile(rf"{ORDER}|.*\.commands(\..*)?")  # modules on which no picture depends
DRAWING = "schedlab.stages.draw"

PYTHON = "{}.{}".format(*sys.version_info[:2])  # syntax trees also differ between these versions

Remember = Callable[[str, Callable[[], Any]], Any]  # (key, make) -> a JSON value that is made once


class Code:
    """The code of some packages, read from their folders.

    packages  name -> folder of a package, or file of a module; the package schedlab is always included
    remember  caches the content of a file, by its name and its bytes (record_cache.RecordCache.get)
    """

    def __init__(self, packages: Mapping[str, Path] | None = None, remember: Remember | None = None) -> None:
        self.packages = {"schedlab": Path(schedlab.__file__).parent, **(packages or {})}
        self.remember = remember or (lambda _key, make: make())
        self._files: dict[str, Path | None] = {}
        self._sources: dict[Path, bytes] = {}
        self._statements: dict[Path, list[Statement]] = {}
        self._contents: dict[str, Content] = {}
        self._next: dict[tuple[str, re.Pattern[str]], list[str]] = {}
        self._hashes: dict[tuple[str, ...], tuple[str, dict[str, str]]] = {}

    def add_file(self, path: Path) -> str:
        """Add a user's file, and the modules and packages of its folder that it may import; return its name as a
        root.
        """
        self._files.clear()
        self._next.clear()
        for file in sorted(path.parent.glob("*.py")):
            self.packages.setdefault(file.stem, file)
        for package in sorted(path.parent.glob("*/__init__.py")):
            self.packages.setdefault(package.parent.name, package.parent)
        name = path.stem if self.packages[path.stem] == path else path.as_posix().replace(".", "-")
        self.packages[name] = path
        return name

    def hash(self, roots: Iterable[str], upon: Iterable[str] = ()) -> dict[str, Any]:
        """Return {"code": 16 hexadecimal digits over the reached code, "packages": package -> version}. `packages` also
        contains the version of Python under `python` and, if there are other packages, the pinned processor
        instructions under `instructions`.

        roots  modules ("a.b"), or functions ("a.b:f"); of the module of a function, only the statements that it uses
               count. Drawing modules are followed only if the stage `draw` is a root
        upon   marks of other code on which the result depends, such as that of its inputs
        """
        names = tuple(sorted(set(roots)))
        if names not in self._hashes:
            reached = sorted(self._reached(names).items())
            imports = set[str]().union(*(imports for _, (_, imports) in reached))
            used = sorted({PACKAGES[top] for top in {name.partition(".")[0] for name in imports} & PACKAGES.keys()})
            versions = {name: version for name in used if (version := _version(name))}
            versions |= {"instructions": pinned(), "python": PYTHON} if versions else {"python": PYTHON}
            self._hashes[names] = hexdigest(f"{name} {tree}" for name, (tree, _) in reached), versions
        code, versions = self._hashes[names]
        return {"code": hexdigest([code, *sorted(set(upon))])[:16], "packages": dict(versions)}

    def reached(self, roots: Iterable[str]) -> dict[str, str]:
        """Return all modules that the roots reach, including the roots, sorted: name -> digest of the syntax trees."""
        return {name: tree for name, (tree, _) in sorted(self._reached(tuple(roots)).items())}

    def _reached(self, roots: tuple[str, ...]) -> dict[str, Content]:
        without = NOT_DRAWN if DRAWING in roots else NO_NUMBERS
        found: dict[str, Content] = {}
        waiting = [root for root in roots if self._file(root.partition(":")[0])]
        while waiting:
            if (name := waiting.pop()) not in found:
                found[name] = self._content(name)
                waiting += self._followed(name, without)
        return found

    def _followed(self, name: str, without: re.Pattern[str]) -> list[str]:
        """Return the modules of the packages that a module imports, without those that are not followed."""
        if (name, without) not in self._next:
            imports = [imported for imported in self._content(name)[1] if not without.fullmatch(imported)]
            self._next[name, without] = [one for one in imports if self._file(one.partition(":")[0])]
        return self._next[name, without]

    def _content(self, name: str) -> Content:
        if name not in self._contents and (path := self._file(name.partition(":")[0])):
            if path not in self._sources:
                self._sources[path] = path.read_bytes()
            key = f"code:{_reader()}:{name}:{path.name}:{hashlib.sha256(self._sources[path]).hexdigest()}"
            read = self.remember(key, lambda: self._read(name, path))
            self._contents[name] = read[0], read[1]
        return self._contents[name]

    def _read(self, name: str, path: Path) -> Content:
        module, _, function = name.partition(":")
        if path not in self._statements:
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            self._statements[path] = statements_of(self._sources[path], package)
        if not function:
            return content(self._statements[path])
        try:
            return content_of_one(function, self._statements[path])
        except KeyError:
            raise ValueError(f"{path} defines no {function}") from None

    def _file(self, name: str) -> Path | None:
        """Return the file of a module; None for modules of other packages and for names that are not modules."""
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


@cache
def _reader() -> str:
    """Return a hash of everything except the text that the digest of a file depends on: this module, `statements`, and
    Python's version.
    """
    return hexdigest([*(Path(file).read_text(encoding="utf-8") for file in (__file__, statements.__file__)), PYTHON])[
        :12
    ]


@cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # an optional dependency that is not installed
        return ""
