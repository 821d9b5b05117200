"""What a training script's text says of it, without running it (specification of cloud, A5)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.readers import read_text
from schedlab.studies.cloud.live.child import entry_function, module_settings

LARGEST = 10**18  # of a number, which an environment variable then holds in 18 digits
DIGITS = 18
# expressions within expressions and names behind names: also what a chain of names that leads back to itself ends at
DEEPEST = 40
OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
    ast.FloorDiv: lambda one, other: one // other if other else 0,
    ast.Pow: lambda one, other: one**other if 0 <= other <= 64 and abs(one) <= LARGEST else 0,
}
GETTERS = ("get", "getenv", "setdefault", "pop")  # of os.environ or os


class KnownNumbers:
    """Values of a module's expressions. A name counts where one plain assignment is all that sets it."""

    def __init__(self, tree: ast.Module) -> None:
        bound: Counter[str] = Counter()
        self.values: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            bound.update(_names_set(node))
            target = (
                node.targets[0]
                if isinstance(node, ast.Assign) and len(node.targets) == 1
                else getattr(node, "target", None)
            )
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and node.value is not None:
                self.values[target.id] = node.value
        self.values = {name: value for name, value in self.values.items() if bound[name] == 1}

    def whole_number(self, node: ast.expr | None, text: bool = False) -> int | None:
        """Return an expression's whole number above 0, None where unknown; text: also one in quotes."""
        found = self._value(node, text, DEEPEST)
        return found if found is not None and 0 < found < LARGEST else None

    def _value(self, node: ast.expr | None, text: bool, deep: int) -> int | None:
        if deep == 0:
            return None
        if isinstance(node, ast.Constant):
            return _literal(node.value, text)
        if isinstance(node, ast.Name):
            return self._value(self.values.get(node.id), text, deep - 1)
        if isinstance(node, ast.BinOp):
            left, right = (self._value(side, False, deep - 1) for side in (node.left, node.right))
            operation = OPERATIONS.get(type(node.op))
            if operation is None or left is None or right is None or max(abs(left), abs(right)) > LARGEST:
                return None
            return operation(left, right)
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Name)
            or len(node.args) != 1
            or node.keywords
        ):
            return None
        converts = node.func.id == "int" or (node.func.id == "str" and text)
        return self._value(node.args[0], True, deep - 1) if converts else None


def _names_set(node: ast.AST) -> Iterator[str]:
    """The names that a node of a tree gives something to."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
    ):
        yield node.name or ""


def _literal(value: object, text: bool) -> int | None:
    if text and isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def defaults(tree: ast.Module, variable: str) -> Iterator[ast.expr]:
    """Yield defaults of an environment variable: second arguments of `get` and its like, `get(...) or this`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _asks(node, variable):
            yield from node.args[1:2]
            yield from (each.value for each in node.keywords if each.arg == "default")
        elif (
            isinstance(node, ast.BoolOp)
            and isinstance(node.op, ast.Or)
            and isinstance(asked := node.values[0], ast.Call)
            and _asks(asked, variable)
            and len(asked.args) == 1
        ):
            yield node.values[1]


def _asks(node: ast.AST, variable: str) -> bool:
    """Whether a node is `os.environ.get(variable, ...)`, `os.getenv(variable, ...)` or one of their like."""
    if not isinstance(node, ast.Call) or not node.args or getattr(node.args[0], "value", None) != variable:
        return False
    return getattr(node.func, "attr", getattr(node.func, "id", None)) in GETTERS


def needs(tree: ast.Module, variable: str) -> bool:
    """Return whether a module requires an environment variable: `os.environ[variable]` outside any `try`."""
    tried = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for each in node.body
        for part in ast.walk(each)
    }
    plain = {id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript) and id(node) not in tried}
    return all(
        id(node) in plain for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == variable
    )


def mentions(tree: ast.Module, variable: str) -> bool:
    """Return whether the name of an environment variable stands in a module as a text."""
    return any(isinstance(node, ast.Constant) and node.value == variable for node in ast.walk(tree))


MODELS = ("resnet", "vgg", "inception", "transformer", "bert", "gpt")
DATASETS = ("cifar", "imagenet", "mnist", "coco", "pascal")
UNKNOWN = "unknown"
BATCH_NAMES, EPOCH_NAMES = ("batch_size", "BATCH_SIZE"), ("epochs", "num_epochs", "EPOCHS", "NUM_EPOCHS")
BATCH_TOLD, EPOCHS_TOLD = "OPTIMIZER_BATCH_SIZE", "OPTIMIZER_EPOCHS"  # environment variables
UNKNOWN_BATCH = (
    64  # what is told to a script whose batch size nobody knows; the published program, too, takes 64 then (A3, A8)
)


@dataclass(frozen=True)
class ScriptFacts:
    """What a script says of itself: whether it knows GPUs, its model and data by name, its own epochs and batch size
    (or None).

    epochs, batch_size  the first whole number that a module-level name or a key of `config` gets, in blocks, too, as
                        with_settings finds them; else what it takes where the environment variable for it is not set.
                        Arithmetic on whole numbers counts, and so do names that one assignment sets to such
    unset_batch        what OPTIMIZER_BATCH_SIZE says where no batch is given; None: it has to stay unset, as the
                        script has a default for it that its text does not tell
    function            what is called after it is loaded; None where it trains by itself
    """

    gpu_support: bool
    model_type: str
    dataset_type: str
    epochs: int | None
    batch_size: int | None
    function: str | None
    unset_batch: int | None


def script_facts(path: Path) -> ScriptFacts:
    """Return what a script's text tells. Raises UserError where it cannot be read or is no Python."""
    text = read_text(path, "a training script in Python")
    try:
        tree = ast.parse(text, str(path))
    except (RecursionError, MemoryError):  # as the parser says it of code that is nested too deeply
        raise UserError(
            "is nested too deeply to be read", where=str(path), expected="a training script in Python"
        ) from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else str(path)
        raise UserError(
            f"is no Python: {getattr(error, 'msg', error)}", where=place, expected="a training script in Python"
        ) from None
    lower, batch_size = text.lower(), _own(tree, BATCH_NAMES, BATCH_TOLD)
    return ScriptFacts(
        gpu_support="cuda" in lower or "gpu" in lower,
        model_type=next((name for name in MODELS if name in lower), UNKNOWN),
        dataset_type=next((name for name in DATASETS if name in lower), UNKNOWN),
        epochs=_own(tree, EPOCH_NAMES, EPOCHS_TOLD),
        batch_size=batch_size,
        function=entry_function(tree),
        unset_batch=_unset_batch(tree, batch_size),
    )


def _own(tree: ast.Module, names: tuple[str, ...], variable: str) -> int | None:
    """The first value of a setting that is a whole number above 0; else the default beside the environment variable."""
    numbers = KnownNumbers(tree)
    set_here = (numbers.whole_number(setting.value) for setting in module_settings(tree) if setting.name in names)
    by_default = (numbers.whole_number(value, text=True) for value in defaults(tree, variable))
    return next((number for number in chain(set_here, by_default) if number is not None), None)


def _unset_batch(tree: ast.Module, batch_size: int | None) -> int | None:
    """What OPTIMIZER_BATCH_SIZE says without a given batch, so that the script trains with its own default."""
    if not mentions(tree, BATCH_TOLD) or needs(tree, BATCH_TOLD):
        return batch_size or UNKNOWN_BATCH
    numbers = KnownNumbers(tree)
    found = {numbers.whole_number(value, text=True) for value in defaults(tree, BATCH_TOLD)}
    return found.pop() if len(found) == 1 else None
