"""Compiles kernels with numba, again whenever a module on which they depend was edited.

Numba caches compiled functions in files whose key covers only the source of the defining module: after an edit of an
imported kernel or constant, it would continue to use the old machine code. The key here covers that module and every
schedlab module that it imports, directly or indirectly. Numba's documented setting NUMBA_CACHE_LOCATOR_CLASSES replaces
the classes that locate the files.

This is the only module that uses private interfaces of numba: the three locator classes for which the documented
setting is made, with their `_py_file`, and the lock of the compiler. With a numba without them, importing this module
fails; until it is adapted, `compiled = numba.njit` is a substitute that computes the same results but compiles in every
process.
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

# Seconds. A kernel compiles in about ten; a process that has waited for longer compiles at the same time as the other.
PATIENCE = 120.0

# `from schedlab.a import b, c` and `import schedlab.a.b`, at any indentation; this package uses no relative imports.
_IMPORT = re.compile(
    rb"^[ \t]*(?:from (schedlab[\w.]*) import ([^\n(]+|\([^)]*\))|import (schedlab[\w.]*))", flags=re.MULTILINE
)


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
    """Return `numba.njit` of the function, cached in files under the hash of all sources on which it depends. Usable as
    a decorator with or without options.

    function: a function of a module of this package. A call compiles it if no file has its argument types yet.
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
    """Let one process at a time compile a function: processes that start together, such as the seeds of a policy, would
    otherwise all spend the same seconds.

    The lock of numba's compiler is acquired first, as compilation acquires it before it compiles the called functions.
    So two threads cannot wait for each other's lock.
    """
    compile_alone, function = dispatcher.compile, dispatcher.py_func
    name = re.sub(r"[^\w.]", "_", f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}.lock")

    def compile_in_turn(signature: Any) -> Any:
        with global_compiler_lock, turn(Path(dispatcher.stats.cache_path, name), PATIENCE):
            return compile_alone(signature)

    dispatcher.compile = compile_in_turn


class _AllSources:
    """Base of the three locations below: cached files are valid for these sources only."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return sources_hash(Path(self._py_file))


class ChosenFolder(_AllSources, caching.UserProvidedCacheLocator):
    """The folder that NUMBA_CACHE_DIR names, if it is set. Checkouts with the same sources share their files there."""

    def get_cache_path(self) -> str:
        return str(Path(numba.config.CACHE_DIR, self.get_source_stamp()[:16]))


class BesideSource(_AllSources, caching.InTreeCacheLocator):
    """`__pycache__` next to the module, if it is writable."""


class UserFolder(_AllSources, caching.UserWideCacheLocator):
    """The user's cache folder, for a read-only installation."""


def sources_hash(path: Path) -> str:
    """Return a hash over the bytes of a module's file and of all schedlab modules that it imports, directly or
    indirectly.
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
    """Return the bytes of a file at the first call, because modules that this process has imported do not change with
    later edits.
    """
    return path.read_bytes()


@cache
def _imported(path: Path) -> frozenset[Path]:
    """Return the files of the schedlab modules that a file imports directly; imported names that are functions or
    classes have none.
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
        return None  # the package itself imports the environments, and thus everything
    path = Path(schedlab.__file__).parent.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
