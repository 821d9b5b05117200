"""Models of agents as files: weights and the optimizer's memory. Equal values are written as equal bytes; reading runs
no code from a file. The form is HDeepRM's (`model_state_dict`, `optimizer_state_dict`) with the number of episodes
learned.
"""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from schedlab.config.errors import UserError
from schedlab.config.files import write_bytes
from schedlab.learning.checkpoints import load_module
from schedlab.studies.hetero.hdeeprm.agent import Agent

MODEL, OPTIMIZER, EPISODES = "model_state_dict", "optimizer_state_dict", "episodes"
_KEPT = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Model:
    """Weights by name, Adam's state by the number of the parameter, the number of episodes learned, and the origin."""

    weights: Mapping[str, torch.Tensor]
    memory: Mapping[int, Mapping[str, torch.Tensor]]
    episodes: int
    source: str = "the last episode"


def model_of(agent: Agent, optimizer: torch.optim.Adam, episodes: int) -> Model:
    """Return copies of an agent's weights and of Adam's state."""
    weights = {name: tensor.detach().clone() for name, tensor in agent.state_dict().items()}
    state = optimizer.state_dict()["state"]
    memory = {number: {key: entry[key].clone() for key in _KEPT} for number, entry in state.items()}
    return Model(weights, memory, episodes)


def write_model(path: Path, model: Model, optimizer: torch.optim.Adam) -> None:
    """Write a model atomically."""
    states = {"state": model.memory, "param_groups": optimizer.state_dict()["param_groups"]}
    buffer = io.BytesIO()  # because torch stores the name of a file that it writes to
    torch.save({MODEL: dict(model.weights), OPTIMIZER: states, EPISODES: model.episodes}, buffer)
    write_bytes(path, buffer.getvalue())


def read_model(path: Path) -> Model:
    """Return the model in a file. Raises UserError if it cannot be read, or contains anything but numbers."""
    where, expected = str(path), "a model that a launch wrote (-om)"
    try:
        with warnings.catch_warnings(action="ignore"):  # torch warns about files that are refused anyway
            values = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=where, expected=expected) from None
    except pickle.UnpicklingError:
        what = "holds more than numbers: objects of its own, which could run anything; it was not loaded"
        raise UserError(what, where=where, expected=expected) from None
    except Exception as error:  # torch raises KeyError, EOFError and others for files that it did not write
        what = f"is no model, or not a whole one ({type(error).__name__})"
        raise UserError(what, where=where, expected=expected) from None
    weights = values.get(MODEL) if isinstance(values, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in weights.values()):
        raise UserError(f"has no weights under '{MODEL}'", where=where, expected=expected)
    episodes, optimizer = values.get(EPISODES, 0), values.get(OPTIMIZER)
    if type(episodes) is not int or episodes < 0:
        raise UserError(f"{EPISODES} is {episodes!r}", where=where, expected="a whole number, 0 or more")
    memory = optimizer.get("state") if isinstance(optimizer, dict) else {}
    return Model(weights, memory if isinstance(memory, dict) else {}, episodes, where)


def put_weights(agent: Agent, model: Model) -> None:
    """Load a model's weights into an agent. Raises UserError with the first weight that the agent lacks or has in
    another shape.
    """
    load_module(agent, {name: tensor.numpy() for name, tensor in model.weights.items()}, model.source)


def put_memory(optimizer: torch.optim.Adam, model: Model) -> None:
    """Load a model's state into Adam, except the learning rate. Raises UserError if it belongs to other parameters."""
    parameters = optimizer.param_groups[0]["params"]
    for number, entry in model.memory.items():
        if not _fits(number, entry, parameters):
            what = f"the optimizer's memory of parameter {number!r} is of another shape"
            raise UserError(what, where=model.source, expected="that of the same network")
    groups = optimizer.state_dict()["param_groups"]
    memory = {number: {key: entry[key].clone() for key in _KEPT} for number, entry in model.memory.items()}
    optimizer.load_state_dict({"state": memory, "param_groups": groups})


def _fits(number: Any, entry: Any, parameters: list[torch.nn.Parameter]) -> bool:
    if type(number) is not int or not 0 <= number < len(parameters) or not isinstance(entry, dict):
        return False
    shapes = {"step": torch.Size([]), "exp_avg": parameters[number].shape, "exp_avg_sq": parameters[number].shape}
    tensors = {key: entry.get(key) for key in _KEPT}
    return all(
        isinstance(value, torch.Tensor) and value.shape == shapes[key] and value.isfinite().all()
        for key, value in tensors.items()
    )
