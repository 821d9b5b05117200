"""Compiles kernels, and compiles them again whenever a module that they depend on was edited.

Numba keeps compiled functions in files, keyed by the source of the module that defines them alone: after an edit of an
imported kernel or constant, it goes on with the old machine code. The key here is over that module and every schedlab
module that it imports, however indirectly. How a cache finds its files is exchangeable by numba's documented
NUMBA_CACHE_LOCATOR_CLASSES.

The one module that reads private interfaces of numba: the three locator classes that the documented setting is made
for, with their `_py_file`, and the lock of the compiler. A numba without them fails at this import; until this module
follows it, `compiled = numba.njit` serves, which computes the same and compiles in every process.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock

import schedlab
from schedlab.config.files import turn

# Seconds. A kernel takes some ten to compile; a process that waited for longer compiles at the same time as the other.
PATIENCE = 120.0

# `from schedlab.a import b, c` and `import schedlab.a.b`, wherever they stand; relative imports are not used in this
# package.
_IMPORT = re.compile(
    rb"^[ \t]*(?:from (schedlab[\w.]*) import ([^\n(]+|\([^)]*\))|import (schedlab[\w.]*))", flags=re.MULTILINE
)


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
    """Return `numba.njit` of the function, kept in files under the hash of all sources that it depends on; usable with
    or without options.

    function: of a module of this package. Compiles at the first call with types that no file has yet.
    """
    if function is None:
        return lambda decorated: compiled(decorated, **options)
    before = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = ",".join(
        f"{__name__}.{name}" for name in ("ChosenFolder", "BesideSource", "UserFolder")
    )
    try:
        dispatcher: Callable[..., Any] = numba.njit(cache=True, **options)(function)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before
    if not numba.config.DISABLE_JIT:
        _compile_once(dispatcher)
    return dispatcher


def _compile_once(dispatcher: Any) -> None:
    """Let one process at a time compile a function; those that begin together, as the seeds of a policy, would all
    spend the same seconds.

    The lock of numba's compiler comes first, as compiling takes it before the functions that are called: two threads
    cannot wait for each other's.
    """
    compile_alone, function = dispatcher.compile, dispatcher.py_func
    name = re.sub(r"[^\w.]", "_", f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}.lock")

    def compile_in_turn(signature: Any) -> Any:
        with global_compiler_lock, turn(Path(dispatcher.stats.cache_path, name), PATIENCE):
            return compile_alone(signature)

    dispatcher.compile = compile_in_turn


class _AllSources:
    """What the three places below have in common: their files hold for these sources only."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return sources_hash(Path(self._py_file))


class ChosenFolder(_AllSources, caching.UserProvidedCacheLocator):
    """The folder that NUMBA_CACHE_DIR names, if it does. Checkouts with the same sources share their files there."""

    def get_cache_path(self) -> str:
        return str(Path(numba.config.CACHE_DIR, self.get_source_stamp()[:16]))


class BesideSource(_AllSources, caching.InTreeCacheLocator):
    """`__pycache__` beside the module, where it can be written."""


class UserFolder(_AllSources, caching.UserWideCacheLocator):
    """The user's cache folder, for an installation that is read-only."""


def sources_hash(path: Path) -> str:
    """Return a hash over the bytes of a module's file and of all schedlab modules that it imports, at first or second
    hand.
    """
    found = {path}
    waiting = [path]
    while waiting:
        new = _imported(waiting.pop()) - found
        found |= new
        waiting += new
    digest = hashlib.sha256()
    for source in sorted(found):
        digest.update(source.name.encode() + b"\0" + hashlib.sha256(_text(source)).digest())
    return digest.hexdigest()


@cache
def _text(path: Path) -> bytes:
    """The file as it was when first asked for: what this process has imported cannot follow later edits."""
    return path.read_bytes()


@cache
def _imported(path: Path) -> frozenset[Path]:
    """The files of the schedlab modules that a file imports itself; functions and classes among the imported names have
    none.
    """
    found: set[Path] = set()
    for source, names, module in _IMPORT.findall(_text(path)):
        base = (source or module).decode()
        parts = [base, *(f"{base}.{name}" for name in re.findall(r"\w+", names.decode()))]
        found.update(file for part in parts if (file := _file_of(part)))
    return frozenset(found)


@cache
def _file_of(module: str) -> Path | None:
    if module == "schedlab":
        return None  # the package itself registers environments, and so imports everything
    path = Path(schedlab.__file__).parent.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
