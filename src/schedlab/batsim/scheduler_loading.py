"""Functions that find a scheduler by name or file: a built-in one, one of PyBatsim's package, or one of the user."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from schedlab.batsim.backends.pybatsim_bus import import_pybatsim
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.plugins import load_module, load_object

OURS: dict[str, Callable[[], type]] = {
    "fcfs": lambda: load_object("schedlab.batsim.schedulers.fcfs:Fcfs"),
    "sjf": lambda: load_object("schedlab.batsim.schedulers.sjf:Sjf"),
    "filler": lambda: load_object("schedlab.batsim.schedulers.filler:Filler"),
    "easy": lambda: load_object("schedlab.batsim.schedulers.easy:Easy"),
    "conservative": lambda: load_object("schedlab.batsim.schedulers.conservative:Conservative"),
}
"""Our schedulers: what loads the class of each. Named in so many letters, so that the hash of the code sees them."""


def load_scheduler(name: str, options: dict[str, Any] | None = None, prefix: str | None = None) -> Any:
    """Return a scheduler object, ready for PyBatsim.

    name      one of OURS; the name of a module of PyBatsim's package `schedulers` (easyBackfill, schedFcfs,
              fillerSched, ...); or a user's FILE.py or FILE.py:CLASS. It may be a class of the low-level API
              (`batsim.batsim.BatsimScheduler`), a class of the high-level API (`batsim.sched.Scheduler`) or a function
              `schedule(scheduler)`. Without CLASS it is the class with the name of the file and a capital first letter,
              as in PyBatsim, or otherwise the only scheduler class of the file.
    options   the object that the scheduler gets as its options
    prefix    path prefix of the events that schedulers of the high-level API write (PREFIX_events.csv), unless the
              options have `export-prefix`; PyBatsim's default is `out` in the working directory

    Raises UserError if no such scheduler can be found or it does not accept the options.
    """
    import_pybatsim()
    found = find_scheduler(name)
    try:
        return _instance(found, {} if options is None else options, prefix)
    except (UserError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise UserError(
            f"the scheduler cannot be made: {type(error).__name__}: {error}",
            where=name,
            remedy="check the options and the class",
        ) from error


@contextmanager
def own_events(prefix: str) -> Iterator[str]:
    """Yield the prefix under which a scheduler of the high-level API may write its events; if no error is raised, they
    become PREFIX_events.csv.

    PyBatsim keeps the file open and the scheduler's log handlers active, even for the next scheduler of the same class;
    here they are closed at the end of the block.
    """
    before = {name: _handlers(name) for name in list(logging.root.manager.loggerDict)}
    events = Path(f"{prefix}.partial_events.csv")
    try:
        yield f"{prefix}.partial"
        if events.exists():
            events.replace(f"{prefix}_events.csv")
    finally:
        for name in list(logging.root.manager.loggerDict):
            for handler in set(_handlers(name)) - set(before.get(name, ())):
                logging.getLogger(name).removeHandler(handler)
                handler.close()
        events.unlink(missing_ok=True)


def _handlers(name: str) -> list[logging.Handler]:
    return list(logging.getLogger(name).handlers)


def pybatsim_schedulers() -> list[str]:
    """Return the names of the schedulers in PyBatsim's package, sorted."""
    folder = importlib.util.find_spec("schedulers")
    names = [module.name for module in pkgutil.iter_modules(folder.submodule_search_locations)] if folder else []
    return sorted(name for name in names if name not in ("common_pyss_adaptator", "intervalContainer"))


def find_scheduler(name: str) -> type | FunctionType:
    """Return the class or function of a name, in the form that `load_scheduler` accepts. Raises UserError if there is
    none.
    """
    if name in OURS:
        return OURS[name]()
    if name.endswith(".py") or ".py:" in name:
        return _from_file(name)
    known = pybatsim_schedulers()
    if name not in known:
        raise UserError(
            f"no scheduler '{name}'",
            where="--scheduler",
            expected=f"one of ours ({', '.join(OURS)}), one of PyBatsim's ({', '.join(known)}), or FILE.py[:CLASS]",
            remedy=did_you_mean(name, [*OURS, *known]) if known else "",
        )
    return _capitalised(importlib.import_module(f"schedulers.{name}"), name)


def _from_file(name: str) -> type | FunctionType:
    file, _, wanted = name.rpartition(":") if ".py:" in name else (name, "", "")
    path = Path(file)
    with _neighbours_importable(path):
        module = load_module(path)
    schedulers: dict[str, type | FunctionType] = {
        key: value for key, value in vars(module).items() if _is_scheduler(value, module)
    }
    found: type | FunctionType | None = getattr(module, wanted or _capital_first(path.stem), None)
    if callable(found):
        return found
    if not wanted and len(schedulers) == 1:
        return next(iter(schedulers.values()))
    wanted = wanted or _capital_first(path.stem)
    raise UserError(
        f"no scheduler '{wanted}'", where=str(path), expected="FILE.py:CLASS", remedy=did_you_mean(wanted, schedulers)
    )


def _instance(found: type | FunctionType, options: dict[str, Any], prefix: str | None) -> Any:
    """Make the object as PyBatsim's launcher does: it wraps functions and high-level schedulers as low-level ones."""
    from batsim.batsim import BatsimScheduler
    from batsim.sched import as_scheduler

    if isinstance(found, type) and issubclass(found, BatsimScheduler):
        return found(options)
    if isinstance(found, FunctionType):
        found = as_scheduler()(found)
    if prefix:
        _make_folder(Path(prefix).parent)
    return found({"export-prefix": prefix, **options} if prefix else options)()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{error.strerror}", where=str(folder), expected="a folder to write into") from None


def _is_scheduler(value: Any, module: ModuleType) -> bool:
    from batsim.batsim import BatsimScheduler
    from batsim.sched import Scheduler

    return (
        isinstance(value, type)
        and value.__module__ == module.__name__
        and issubclass(value, BatsimScheduler | Scheduler)
    )


def _capitalised(module: ModuleType, name: str) -> type | FunctionType:
    found: type | FunctionType | None = getattr(module, _capital_first(name), None)
    if found is None:
        raise UserError(
            f"PyBatsim's module 'schedulers.{name}' has no scheduler '{_capital_first(name)}'", where="--scheduler"
        )
    return found


def _capital_first(name: str) -> str:
    return name[:1].upper() + name[1:]


@contextmanager
def _neighbours_importable(path: Path) -> Iterator[None]:
    """Let a scheduler's file import modules of its folder while it is loaded."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
