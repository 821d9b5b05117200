"""What the text of a training script tells about it, without running it. Source: specification of the study cloud, A5."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.json_files import read_text
from schedlab.studies.cloud.live_child import entry_function, module_settings

MODELS = ("resnet", "vgg", "inception", "transformer", "bert", "gpt")
DATASETS = ("cifar", "imagenet", "mnist", "coco", "pascal")
UNKNOWN = "unknown"
BATCH_NAMES, EPOCH_NAMES = ("batch_size", "BATCH_SIZE"), ("epochs", "num_epochs", "EPOCHS", "NUM_EPOCHS")
BATCH_TOLD, EPOCHS_TOLD = "OPTIMIZER_BATCH_SIZE", "OPTIMIZER_EPOCHS"  # environment variables
DIGITS = 18  # of a number in quotes, at most


@dataclass(frozen=True)
class ScriptFacts:
    """What a script says of itself: whether it knows GPUs, its model and data by name, its own epochs and batch size (or None).

    epochs, batch_size  the first whole number that a module-level name or a key of `config` gets, in blocks, too, as with_settings finds
                        them; else what it takes where the environment variable for it is not set
    function            what is called after it is loaded; None where it trains by itself
    """

    gpu_support: bool
    model_type: str
    dataset_type: str
    epochs: int | None
    batch_size: int | None
    function: str | None


def script_facts(path: Path) -> ScriptFacts:
    """Return what a script's text tells. Raises UserError where it cannot be read or is no Python."""
    text = read_text(path, "a training script in Python")
    try:
        tree = ast.parse(text, str(path))
    except (RecursionError, MemoryError):  # as the parser says it of code that is nested too deeply
        raise UserError("is nested too deeply to be read", where=str(path), expected="a training script in Python") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else str(path)
        raise UserError(f"is no Python: {getattr(error, 'msg', error)}", where=place, expected="a training script in Python") from None
    lower = text.lower()
    return ScriptFacts(
        gpu_support="cuda" in lower or "gpu" in lower,
        model_type=next((name for name in MODELS if name in lower), UNKNOWN),
        dataset_type=next((name for name in DATASETS if name in lower), UNKNOWN),
        epochs=_own(tree, EPOCH_NAMES, EPOCHS_TOLD),
        batch_size=_own(tree, BATCH_NAMES, BATCH_TOLD),
        function=entry_function(tree),
    )


def _own(tree: ast.Module, names: tuple[str, ...], variable: str) -> int | None:
    """The first literal value of a setting that is a whole number above 0; else the default beside the environment variable."""
    set_here = (_whole_number(setting.value) for setting in module_settings(tree) if setting.name in names)
    return next((number for number in (*set_here, *_defaults(tree, variable)) if number is not None), None)


def _defaults(tree: ast.Module, variable: str) -> Iterator[int | None]:
    """The second argument of each `os.environ.get(variable, ...)` or `os.getenv(variable, ...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 2 and getattr(node.args[0], "value", None) == variable:
            yield _whole_number(node.args[1], text=True)


def _whole_number(node: ast.expr | None, text: bool = False) -> int | None:
    """A literal whole number above 0; text: also one in quotes, as the environment holds them."""
    value = node.value if isinstance(node, ast.Constant) else None
    if text and isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
