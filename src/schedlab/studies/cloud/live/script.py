"""Facts read from the text of a training script without running it (docs/guide/cloud_live.md)."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.readers import read_text
from schedlab.studies.cloud.live.child import entry_function

MODELS = ("resnet", "vgg", "inception", "transformer", "bert", "gpt")
DATASETS = ("cifar", "imagenet", "mnist", "coco", "pascal")
UNKNOWN = "unknown"
SCRIPT = "a training script in Python"


@dataclass(frozen=True)
class ScriptFacts:
    """Facts in the text of a script: whether it uses GPUs, and the names of its model and data.

    function  the function to call after the script is loaded; None if it trains by itself
    """

    gpu_support: bool
    model_type: str
    dataset_type: str
    function: str | None = None


def script_facts(path: Path) -> ScriptFacts:
    """Return the facts in the text of a script. Raises UserError if it cannot be read or is not Python."""
    text = read_text(path, SCRIPT)
    try:
        function = entry_function(ast.parse(text, str(path)))
    except (RecursionError, MemoryError):  # as the parser says it of code that is nested too deeply
        raise UserError("is nested too deeply to be read", where=str(path), expected=SCRIPT) from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else str(path)
        raise UserError(f"is no Python: {getattr(error, 'msg', error)}", where=place, expected=SCRIPT) from None
    return command_facts([text], function)


def command_facts(words: Sequence[str], function: str | None = None) -> ScriptFacts:
    """Return the facts in the words of a command. function: as of ScriptFacts."""
    lower = " ".join(words).lower()
    return ScriptFacts(
        gpu_support="cuda" in lower or "gpu" in lower,
        model_type=next((name for name in MODELS if name in lower), UNKNOWN),
        dataset_type=next((name for name in DATASETS if name in lower), UNKNOWN),
        function=function,
    )
