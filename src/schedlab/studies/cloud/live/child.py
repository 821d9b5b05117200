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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

MEMORY = 77  # exit status of a MemoryError
NO_PROGRAM = 127  # exit status of a command whose program cannot be started
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
MS_NOSUID, MS_NODEV = 2, 4  # mount(2)
GUARDED = sys.platform == "linux"  # where a script's orphans can be kept
FIXED_NAMES = ("train", "train_model", "main")  # called, in this order, before any train_*, if nothing runs by itself


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


def with_settings(tree: ast.Module, values: Mapping[Any, Any]) -> ast.Module:
    """Return the module with these values for the settings of these names that it makes outside functions and classes,
    by `name = ...` and `config["name"] = ...`, and as keys of a literal `config = {...}`.

    A value that is computed from the previous value of the setting stays. In a `for` loop, only literals are replaced;
    in a `while` loop, nothing is, because a loop that waits for a variable to change would never end. A statement that
    sets several names stays, because all of them would change.
    """
    for node, looped in list(_statements(tree.body)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if _is_config(target) and isinstance(node.value, ast.Dict):
                inner = node.value.values
                for place, name in enumerate(map(_key, node.value.keys)):
                    if name in values and _replaceable(inner[place], name, looped, in_config=True):
                        inner[place] = ast.Constant(values[name])
                continue
            in_config = isinstance(target, ast.Subscript) and _is_config(target.value)
            name = _key(target.slice) if isinstance(target, ast.Subscript) else getattr(target, "id", None)
            known = name in values and (in_config or isinstance(target, ast.Name))
            if known and len(targets) == 1 and _replaceable(node.value, name, looped, in_config):
                node.value = ast.Constant(values[name])
    return ast.fix_missing_locations(tree)


def _replaceable(value: ast.expr | None, name: Any, looped: bool, in_config: bool) -> bool:
    """Whether the value of a setting (None: it is only declared) is not computed from its previous value, and within a
    loop is a literal.
    """
    if looped and not isinstance(value, ast.Constant):
        return False
    parts = list(ast.walk(value)) if value is not None else []
    if in_config:
        of_config = (part for part in parts if isinstance(part, ast.Subscript) and _is_config(part.value))
        return all(_key(part.slice) != name for part in of_config)
    return name not in _names(parts)


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
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        if isinstance(node, ast.If) and "__name__" in _names(ast.walk(node.test)):
            return None
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            called = _names(call.func for call in ast.walk(node) if isinstance(call, ast.Call))
            if called & {each.name for each in functions}:
                return None
    names = [node.name for node in functions if not _required(node.args)]
    fixed = [name for name in FIXED_NAMES if name in names]
    return next(iter([*fixed, *(name for name in names if name.startswith("train_"))]), None)


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name)}


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
            stat = (process / "stat").read_text(encoding="utf-8", errors="replace")
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
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
