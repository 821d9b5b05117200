"""What the text of a training script tells about it, without running it. Source: specification of the study cloud, A5."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.json_files import read_text
from schedlab.studies.cloud.live_child import entry_function, module_settings
from schedlab.studies.cloud.script_values import KnownNumbers, defaults, mentions, needs

MODELS = ("resnet", "vgg", "inception", "transformer", "bert", "gpt")
DATASETS = ("cifar", "imagenet", "mnist", "coco", "pascal")
UNKNOWN = "unknown"
BATCH_NAMES, EPOCH_NAMES = ("batch_size", "BATCH_SIZE"), ("epochs", "num_epochs", "EPOCHS", "NUM_EPOCHS")
BATCH_TOLD, EPOCHS_TOLD = "OPTIMIZER_BATCH_SIZE", "OPTIMIZER_EPOCHS"  # environment variables
UNKNOWN_BATCH = 64  # what is told to a script whose batch size nobody knows; the published program, too, takes 64 then (A3, A8)


@dataclass(frozen=True)
class ScriptFacts:
    """What a script says of itself: whether it knows GPUs, its model and data by name, its own epochs and batch size (or None).

    epochs, batch_size  the first whole number that a module-level name or a key of `config` gets, in blocks, too, as with_settings finds
                        them; else what it takes where the environment variable for it is not set. Arithmetic on whole numbers counts, and
                        so do names that one assignment sets to such
    untold_batch        what OPTIMIZER_BATCH_SIZE says where no batch is given; None: it has to stay unset, as the script has a default for
                        it that its text does not tell
    function            what is called after it is loaded; None where it trains by itself
    """

    gpu_support: bool
    model_type: str
    dataset_type: str
    epochs: int | None
    batch_size: int | None
    function: str | None
    untold_batch: int | None


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
    lower, batch_size = text.lower(), _own(tree, BATCH_NAMES, BATCH_TOLD)
    return ScriptFacts(
        gpu_support="cuda" in lower or "gpu" in lower,
        model_type=next((name for name in MODELS if name in lower), UNKNOWN),
        dataset_type=next((name for name in DATASETS if name in lower), UNKNOWN),
        epochs=_own(tree, EPOCH_NAMES, EPOCHS_TOLD),
        batch_size=batch_size,
        function=entry_function(tree),
        untold_batch=_untold(tree, batch_size),
    )


def _own(tree: ast.Module, names: tuple[str, ...], variable: str) -> int | None:
    """The first value of a setting that is a whole number above 0; else the default beside the environment variable."""
    numbers = KnownNumbers(tree)
    set_here = (numbers.whole_number(setting.value) for setting in module_settings(tree) if setting.name in names)
    by_default = (numbers.whole_number(value, text=True) for value in defaults(tree, variable))
    return next((number for number in chain(set_here, by_default) if number is not None), None)


def _untold(tree: ast.Module, batch_size: int | None) -> int | None:
    """What OPTIMIZER_BATCH_SIZE says where no batch is given, so that the script trains with its own as if the variable were not set."""
    if not mentions(tree, BATCH_TOLD) or needs(tree, BATCH_TOLD):
        return batch_size or UNKNOWN_BATCH
    numbers = KnownNumbers(tree)
    found = {numbers.whole_number(value, text=True) for value in defaults(tree, BATCH_TOLD)}
    return found.pop() if len(found) == 1 else None
