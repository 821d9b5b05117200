"""Runs one training script within limits: the program of the subprocess that `process` starts. It uses only the
standard library.

`python child.py SPEC.json` limits its own process, sets the module-level settings of the script, and runs the script as
`__main__`; or it replaces itself by the program of a command. Exit status MEMORY: the script raised an error for lack
of memory; 128 + n: signal n ended it (Linux).
"""

from __future__ import annotations

import ast
import ctypes
import importlib.machinery
import json
import os
import resource
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

MEMORY = 77  # exit status of a MemoryError
NO_PROGRAM = 127  # exit status of a command whose program cannot be started
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
MS_NOSUID, MS_NODEV = 2, 4  # mount(2)
GUARDED = sys.platform == "linux"  # where a script's orphans can be kept
FIXED_NAMES = (
    "train",
    "train_model",
    "main",
)  # what is called, in this order, before any train_*, where nothing runs by itself


class SettingLoader(importlib.machinery.SourceFileLoader):
    """Loads a script with other values for its module-level settings. The file is not changed, and no bytecode is
    written.
    """

    def __init__(self, path: str, values: Mapping[str, Any]) -> None:
        super().__init__("__main__", path)
        self.values = values

    def get_code(self, fullname: str) -> types.CodeType:
        """Return the code of the script with the values inserted. Raises SyntaxError."""
        del fullname
        tree = ast.parse(Path(self.path).read_bytes(), self.path)
        return compile(with_settings(tree, self.values), self.path, "exec", dont_inherit=True)


class Setting(NamedTuple):
    """A value that a module sets outside functions and classes.

    value      the expression; None if the name is only declared
    put        a function that replaces the expression; None if the statement sets several names, which would all change
    in_config  whether it is a key of `config`
    """

    name: Any
    value: ast.expr | None
    put: Callable[[ast.expr], None] | None
    in_config: bool = False


def module_settings(tree: ast.Module) -> Iterator[Setting]:
    """Yield the settings made by `name = ...` and `config["name"] = ...`, and each key of a literal `config = {...}`,
    in the order of the text.

    A value that is computed from the previous value of the setting is left out. In a `for` loop, only literals count;
    in a `while` loop, nothing does, because a loop that waits for a variable to change would never end.
    """
    for setting, looped in _all_settings(tree):
        if not (looped and not isinstance(setting.value, ast.Constant)) and not _reads_itself(setting):
            yield setting


def _all_settings(tree: ast.Module) -> Iterator[tuple[Setting, bool]]:
    """Yield the settings of all assignments, and whether each is within a loop."""
    for node, looped in list(_statements(tree.body)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        put = partial(setattr, node, "value") if len(targets) == 1 else None
        for target in targets:
            if _is_config(target) and isinstance(node.value, ast.Dict):
                values = node.value.values
                for place, key in enumerate(node.value.keys):
                    yield Setting(_key(key), values[place], partial(values.__setitem__, place), True), looped
            elif isinstance(target, ast.Name):
                yield Setting(target.id, node.value, put), looped
            elif isinstance(target, ast.Subscript) and _is_config(target.value):
                yield Setting(_key(target.slice), node.value, put, True), looped


def _reads_itself(setting: Setting) -> bool:
    """Whether the value of a setting is computed from its previous value."""
    parts = list(ast.walk(setting.value)) if setting.value is not None else []
    if setting.in_config:
        of_config = (part for part in parts if isinstance(part, ast.Subscript) and _is_config(part.value))
        return any(_key(part.slice) == setting.name for part in of_config)
    return any(isinstance(part, ast.Name) and part.id == setting.name for part in parts)


def with_settings(tree: ast.Module, values: Mapping[str, Any]) -> ast.Module:
    """Return the module with these values for settings of these names. Names that it does not set are ignored."""
    for setting in module_settings(tree):
        if setting.name in values and setting.put is not None:
            setting.put(ast.Constant(values[setting.name]))
    return ast.fix_missing_locations(tree)


def _statements(body: list[ast.stmt], looped: bool = False) -> Iterator[tuple[ast.Assign | ast.AnnAssign, bool]]:
    """Yield the assignments that are executed when the module is loaded, also within if, try, with and match, and
    whether each is within a `for` loop. The bodies of `while` loops are left out.
    """
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield node, looped
        elif isinstance(node, ast.While):
            yield from _statements(node.orelse, looped)
        elif isinstance(node, ast.For | ast.AsyncFor):
            yield from _statements(node.body, True)
            yield from _statements(node.orelse, looped)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = [node, *getattr(node, "handlers", []), *getattr(node, "cases", [])]
            for part in ("body", "orelse", "finalbody"):
                for each in inner:
                    yield from _statements(getattr(each, part, []), looped)


def _is_config(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Name) and node.id.lower() == "config"


def _key(node: ast.AST | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def entry_function(tree: ast.Module) -> str | None:
    """Return the function to call after a script that only contains definitions; None if the script trains by
    itself.

    A script trains by itself if it has an `if __name__ ...`, or calls one of its functions at module level.
    """
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not _required(node.args)]
    names = [node.name for node in functions]
    for node in tree.body:
        if isinstance(node, ast.If) and "__name__" in {
            name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)
        }:
            return None
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            called = {
                call.func.id
                for call in ast.walk(node)
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            }
            if called & {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}:
                return None
    fixed = [name for name in FIXED_NAMES if name in names]
    return next(iter([*fixed, *(name for name in names if name.startswith("train_"))]), None)


def _required(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional > 0 or any(default is None for default in arguments.kw_defaults)


def guard(parent: int | None) -> int | None:
    """Fork. Return None in the process that is to run the script. The other process waits for it, ends all processes
    that the script leaves running, and returns its exit status.

    Orphans of the script become children of the waiting process, whatever their group, session or environment. It also
    ends all of them on SIGTERM, and if `parent`, the process that started it, has ended (None: something else sees to
    this). On systems other than Linux, nothing is forked.
    """
    if not GUARDED:
        return None
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    script = os.fork()
    if script == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        return None
    signal.signal(signal.SIGTERM, lambda *_: _end_at_once())
    if parent is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            _end_at_once()
    while (ended := os.wait())[0] != script:
        pass
    end_children()
    status = os.waitstatus_to_exitcode(ended[1])
    return status if status >= 0 else 128 - status


def _end_at_once() -> None:
    end_children()
    os._exit(128 + signal.SIGTERM)


def end_children() -> None:
    """End the children of this process and their orphans, until there are none."""
    while True:
        for child in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _children() -> list[int]:
    """Return the children of this process, by the fourth field of proc_pid_stat(5). The process name before it may
    contain any character.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            told = (process / "stat").read_text(encoding="utf-8", errors="replace")
            if int(told.rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(process.name))
    return found


def mount_private(places: Mapping[str, int]) -> None:
    """Mount an empty folder in memory at each place, with a size in bytes (0: the kernel's default). Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    for place, size in places.items():
        if libc.mount(b"tmpfs", place.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=1777".encode()):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), place)


def take_limits(cpus: list[int], memory_bytes: int | None, file_bytes: int | None = None) -> None:
    """Restrict this process, and all processes that it starts later, to these cores, this amount of private memory,
    and files of this size.
    """
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    if file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))


def run_command(words: list[str]) -> int:
    """Replace this process by the program of a command, which keeps the limits. Return an exit status only if there is
    no such program.
    """
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
    return NO_PROGRAM


def main(spec_path: str, inside: bool = False) -> int:
    """Run the script or command that a JSON file names, with its limits, and return the exit status.

    With `user_words` in the file, this process begins in namespaces in which it is root. It mounts there, and the
    script's process gives these rights up and begins again, `inside`.
    """
    spec = json.loads(Path(spec_path).read_text(encoding="utf-8"))
    if not inside:
        mount_private(spec.get("private") or {})
        if (status := guard(spec.get("parent"))) is not None:
            return status
        if words := spec.get("user_words"):
            os.execvp(words[0], [*words, sys.executable, __file__, spec_path, "inside"])
    take_limits(spec["cpus"], spec["memory_bytes"], spec.get("file_bytes"))
    if spec.get("command"):
        return run_command(spec["command"])
    script = spec["script"]
    sys.argv, sys.path[0] = [script], str(Path(script).parent)
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    try:
        SettingLoader(script, spec["values"]).exec_module(module)
        name = entry_function(ast.parse(Path(script).read_bytes(), script))
        if name is not None:
            getattr(module, name)()
    except MemoryError:
        traceback.print_exc()
        return MEMORY
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], len(sys.argv) > 2))
