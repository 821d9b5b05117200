"""Put faults into the source, one at a time, and say which of them the quick tests catch.

python tests/mutation/mutation.py run [--processes 2] [--only PATTERN]   every fault of faults.txt; status 1 below
    --least
python tests/mutation/mutation.py list MODULE                            the places of a module where a fault can be put

A line of faults.txt names a place: module, function (Class.method), kind of fault, and which such node of the function
(from 0). The kinds are in KINDS. A fault runs in a scratch copy of the checkout, against the quick tests of its own
area, which stop at the first failure.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

REPOSITORY = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).with_name("faults.txt")
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mod}
NO_TESTS = 5  # pytest's status where it found none; that of a killed process is negative
CALLS = {"min": "max", "max": "min", "sum": "len", "any": "all", "all": "any", "sorted": "list"}


def _comparison(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        return ast.Compare(node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    return None


def _operator(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    return None


def _number(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return ast.Constant(node.value + 1)
    return None


def _condition(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    return None


def _call(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        return ast.Call(ast.Name(CALLS[node.func.id]), node.args, node.keywords)
    return None


def _statement(node: ast.AST) -> ast.AST | None:
    """A call whose value nobody takes, or an addition to a value, left out."""
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return ast.Pass()
    return None


KINDS: dict[str, Callable[[ast.AST], ast.AST | None]] = {
    "comparison": _comparison,
    "operator": _operator,
    "number": _number,
    "condition": _condition,
    "call": _call,
    "statement": _statement,
}


@dataclass(frozen=True)
class Fault:
    """One place of the source and what is done to it."""

    module: str
    function: str
    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.module} {self.function} {self.kind} {self.number}"

    @property
    def file(self) -> Path:
        """The module's file, relative to the checkout."""
        return Path("src", *self.module.split(".")).with_suffix(".py")

    @property
    def tests(self) -> list[str]:
        """Tests of the module's area, and before them the files that name the module, as a caught fault is caught soon
        there: those of its area, then others.
        """
        parts = self.module.split(".")[1:]
        area = [Path("tests", *parts[: 2 if parts[0] == "studies" else 1]), Path("tests/conformance")]
        area += [Path("tests/stages"), Path("tests/cli")] if parts[0] != "studies" else []
        files = [file for folder in area for file in sorted((REPOSITORY / folder).rglob("test_*.py"))]
        if parts[0] == "studies":
            files = [file for file in files if "conformance" not in file.parts or f"test_{parts[1]}" in file.name]
        everywhere = [*files, *sorted((REPOSITORY / "tests").rglob("test_*.py"))]
        near = [file for file in everywhere if self.module in file.read_text(encoding="utf-8")]
        return [str(file.relative_to(REPOSITORY)) for file in dict.fromkeys([*near, *files])]


def places(tree: ast.Module) -> Iterator[tuple[str, str, int, ast.AST, ast.AST]]:
    """Yield (function, kind, number, node, node with the fault) of every place in a module."""
    for name, function in _functions(tree, ""):
        counts = dict.fromkeys(KINDS, 0)
        for node in _own_nodes(function):
            for kind, change in KINDS.items():
                if (changed := change(node)) is not None:
                    yield name, kind, counts[kind], node, changed
                    counts[kind] += 1


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body in the order of the text, without those of functions inside it or error texts."""
    for statement in function.body:
        yield from _below(statement)


def _below(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Raise):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _below(child)


def with_fault(text: str, fault: Fault) -> str:
    """Return a module's text with one fault. Raises ValueError where there is no such place."""
    for function, kind, number, node, changed in places(ast.parse(text)):
        if (function, kind, number) == (fault.function, fault.kind, fault.number):
            lines = text.encode().splitlines(keepends=True)
            start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
            end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
            new = ast.unparse(changed)
            if isinstance(changed, ast.expr):
                new = f"({new})"
            return (text.encode()[:start] + new.encode() + text.encode()[end:]).decode()
    raise ValueError(f"no such place: {fault}")


def read_faults(pattern: str = "") -> list[Fault]:
    """Return the faults of faults.txt whose line holds a pattern."""
    lines = [line.split("#")[0].split() for line in FAULTS.read_text(encoding="utf-8").splitlines()]
    faults = [Fault(module, function, kind, int(number)) for module, function, kind, number in filter(None, lines)]
    return [fault for fault in faults if pattern in str(fault)]


def copy_checkout(folder: Path) -> None:
    """Copy what git tracks or would track into a folder."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)


def is_caught(fault: Fault, checkout: Path) -> tuple[bool, str]:
    """Run the quick tests of a fault's area in a copy of the checkout; return whether one failed, and which."""
    file = checkout / fault.file
    sound = file.read_text(encoding="utf-8")
    file.write_text(with_fault(sound, fault), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *fault.tests], cwd=checkout, env=environment, capture_output=True, text=True, timeout=900
        )
    except subprocess.TimeoutExpired:
        return True, "a test that never ended"
    finally:
        file.write_text(sound, encoding="utf-8")
    if "file or directory not found" in done.stderr:  # the checkout changed meanwhile: nothing was tested
        raise FileNotFoundError(done.stderr.strip())
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode not in (0, NO_TESTS), failed[0] if failed else f"status {done.returncode}"


def run(faults: list[Fault], processes: int, least: float) -> int:
    """Try every fault and print what became of it; return 1 where a smaller share than `least` is caught."""
    for fault in faults:  # a place that is gone is found before anything runs
        with_fault((REPOSITORY / fault.file).read_text(encoding="utf-8"), fault)
    caught = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(processes) as pool:
        free: Queue[Path] = Queue()
        for number in range(processes):
            copy_checkout(Path(scratch, str(number)))
            free.put(Path(scratch, str(number)))

        def attempt(fault: Fault) -> tuple[bool, str]:
            checkout = free.get()
            try:
                return is_caught(fault, checkout)
            finally:
                free.put(checkout)

        for fault, (found, how) in zip(faults, pool.map(attempt, faults), strict=True):
            caught += found
            print(f"{'caught' if found else 'MISSED'}: {fault} ({how})", flush=True)
    print(f"{caught} of {len(faults)} faults caught")
    return int(caught < least * len(faults))


def main() -> int:
    """Run or list faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run")
    runner.add_argument("--processes", type=int, default=2)
    runner.add_argument("--only", default="", metavar="PATTERN")
    runner.add_argument("--least", type=float, default=0.9, help="share of the faults that has to be caught")
    runner.set_defaults(run=lambda chosen: run(read_faults(chosen.only), chosen.processes, chosen.least))
    lister = commands.add_parser("list")
    lister.add_argument("module")
    lister.set_defaults(run=lambda chosen: list_places(chosen.module))
    chosen = parser.parse_args()
    return chosen.run(chosen)


def list_places(module: str) -> int:
    """Print each place of a module as a line of faults.txt, with its text before and after."""
    text = (REPOSITORY / Fault(module, "", "", 0).file).read_text(encoding="utf-8")
    for function, kind, number, node, changed in places(ast.parse(text)):
        print(f"{module} {function} {kind} {number}  # {node.lineno}: {ast.unparse(node)} -> {ast.unparse(changed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
