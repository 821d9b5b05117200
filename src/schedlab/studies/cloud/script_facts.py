"""What the text of a training script tells about it, without running it. Source: specification of the study cloud, A5."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.json_files import read_text
from schedlab.studies.cloud.live import BATCH_NAMES, EPOCH_NAMES
from schedlab.studies.cloud.live_child import entry_function

MODELS = ("resnet", "vgg", "inception", "transformer", "bert", "gpt")
DATASETS = ("cifar", "imagenet", "mnist", "coco", "pascal")
UNKNOWN = "unknown"


@dataclass(frozen=True)
class ScriptFacts:
    """What a script says of itself: whether it knows GPUs, its model and data by name, its module-level epochs and batch size (or None).

    function: what is called after it is loaded; None where it trains by itself.
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
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else str(path)
        raise UserError(f"is no Python: {getattr(error, 'msg', error)}", where=place, expected="a training script in Python") from None
    lower = text.lower()
    return ScriptFacts(
        gpu_support="cuda" in lower or "gpu" in lower,
        model_type=next((name for name in MODELS if name in lower), UNKNOWN),
        dataset_type=next((name for name in DATASETS if name in lower), UNKNOWN),
        epochs=_whole_number(tree, EPOCH_NAMES),
        batch_size=_whole_number(tree, BATCH_NAMES),
        function=entry_function(tree),
    )


def _whole_number(tree: ast.Module, names: tuple[str, ...]) -> int | None:
    """The first module-level value of a name, where it is a whole number above 0; also that of a literal config."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        pairs = [(target.id, value)] if isinstance(target, ast.Name) else []
        if isinstance(target, ast.Name) and target.id.lower() == "config" and isinstance(value, ast.Dict):
            pairs = [(getattr(key, "value", None), entry) for key, entry in zip(value.keys, value.values, strict=True)]
        for name, entry in pairs:
            number = getattr(entry, "value", None) if name in names else None
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                return number
    return None
