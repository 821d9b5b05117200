"""The devices on which torch computes: finding one by name, describing it, and waiting for its results."""

from __future__ import annotations

import logging
import platform
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError
from schedlab.config.runtime.provenance import processor_name

if TYPE_CHECKING:
    import torch


log = logging.getLogger(__name__)


def find_device(name: str, where: str = "--device", *, metal: bool = False) -> torch.device:
    """Return the torch device of a name: cpu, cuda, cuda:1, mps, or auto (CUDA if this machine has it, else the CPU).

    metal  auto also selects Apple's Metal if there is no CUDA
    where  place that a message names. Raises UserError if this machine has no device of that name.
    """
    import torch

    if name == "auto":
        other = "mps" if metal and torch.backends.mps.is_available() else "cpu"
        name = "cuda" if torch.cuda.is_available() else other
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"'{name}' is no device", where=where, expected="auto, cpu, cuda or mps") from None
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError("this machine has no Metal device that torch can use", where=where, expected="cpu")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "this machine has no CUDA device that torch can use",
            where=where,
            expected="auto or cpu",
            remedy="run on a GPU node",
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"there is no device {name}", where=where, expected=f"an index below {torch.cuda.device_count()}"
        )
    return device


def device_or_processor(name: str) -> torch.device:
    """Return the torch device of a name. If this machine has none, return the CPU and log a warning."""
    device, missing = find_or_processor(name)
    if missing:
        log.warning("WARNING: %s; computing on the processor instead", missing)
    return device


def find_or_processor(name: str) -> tuple[torch.device, str]:
    """Return the torch device of a name and ""; if this machine has none, the CPU and the reason."""
    import torch

    try:
        return find_device(name), ""
    except UserError as error:
        return torch.device("cpu"), error.what


def described(asked: str, device: torch.device) -> dict[str, str]:
    """Return a device for the provenance: the one in the settings, the one used, and its name."""
    return {"asked": asked, "used": str(device), "name": device_name(device)}


def device_name(device: torch.device) -> str:
    """Return the name of a device for readers: that of the GPU or of the processor."""
    import torch

    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return processor_name() or platform.machine()


def wait_for(device: torch.device) -> None:
    """Wait until a device has finished all its operations, which run asynchronously."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
