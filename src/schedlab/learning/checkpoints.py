"""Checkpoints of learned policies: a zip of NumPy arrays and one JSON text. It contains no pickle, and equal values
give equal bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path, canonical_json
from schedlab.config.readers import read_array, read_members

if TYPE_CHECKING:
    from torch import nn

Arrays = Mapping[str, np.ndarray]
_META = "meta.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can contain, so that members have no real time


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint: plain values (`meta`, JSON) and arrays by name. `path`: the file that was read."""

    meta: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    path: Path = Path("-")

    def group(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays whose names begin with `name/`, without this prefix."""
        return {key.removeprefix(f"{name}/"): value for key, value in self.arrays.items() if key.startswith(f"{name}/")}


def write_checkpoint(path: Path | str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> None:
    """Write a checkpoint atomically; equal values give equal bytes (members are sorted, uncompressed, and have a fixed
    time).
    """
    members = {_META: (canonical_json(dict(meta)) + "\n").encode()}
    for name, array in (arrays or {}).items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array).reshape(np.shape(array)), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, members[name])


def read_checkpoint(path: Path | str, kind: str | None = None) -> Checkpoint:
    """Return a checkpoint. Raises UserError if the file is missing or damaged, or if its meta['kind'] is not `kind`."""
    path = Path(path)
    remedy = "name another file; or delete this one and run the job that makes it again"
    if not path.exists():
        raise UserError("there is no such checkpoint", where=str(path), remedy="run the job that makes it first")
    if path.is_dir():
        raise UserError("that is a folder", where=str(path), expected="the file of a policy, as .../seed-0/policy.zip")
    members = read_members(path, "a zip of arrays and meta.json", remedy)
    try:
        meta = json.loads(members.pop(_META))
        arrays = {name.removesuffix(".npy"): read_array(data) for name, data in members.items()}
    except (KeyError, ValueError, RecursionError) as error:
        raise UserError(
            f"the checkpoint cannot be read: {error}",
            where=str(path),
            expected="a zip of arrays and meta.json",
            remedy=remedy,
        ) from None
    if not isinstance(meta, dict) or (kind is not None and meta.get("kind") != kind):
        found = meta.get("kind") if isinstance(meta, dict) else type(meta).__name__
        raise UserError(
            f"the checkpoint is of kind '{found}'",
            where=str(path),
            expected=f"'{kind}'",
            remedy="name a policy of the right kind",
        )
    return Checkpoint(meta, arrays, path)


def read_progress(path: Path, kind: str, digest: str) -> Checkpoint | None:
    """Return the state that an interrupted job with the same values (meta['digest']) saved; None if there is none or it
    is damaged.
    """
    try:
        kept = read_checkpoint(path, kind)
    except UserError:
        return None
    return kept if kept.meta.get("digest") == digest else None


def grouped(groups: Mapping[str, Arrays]) -> dict[str, np.ndarray]:
    """Return the arrays of several groups in one mapping, named `group/name` as `Checkpoint.group` reads them."""
    return {f"{group}/{name}": array for group, arrays in groups.items() for name, array in arrays.items()}


def module_arrays(module: nn.Module) -> dict[str, np.ndarray]:
    """Return a module's parameters and buffers as arrays by name."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in module.state_dict().items()}


def load_module(module: nn.Module, arrays: Mapping[str, np.ndarray], where: Path | str) -> None:
    """Copy arrays into a module. Raises UserError for the first parameter whose name or shape differs."""
    import torch

    own = module.state_dict()
    for name in sorted({*own, *arrays}):
        if name not in own or name not in arrays:
            side = "misses" if name in own else "has more than the network, namely"
            raise UserError(
                f"the checkpoint {side} '{name}'",
                where=str(where),
                expected="the parameters of a network of the same settings",
            )
        if tuple(own[name].shape) != arrays[name].shape:
            raise UserError(
                f"'{name}' has shape {arrays[name].shape}",
                where=str(where),
                expected=f"{tuple(own[name].shape)}",
                remedy="use the settings (sizes, number of actions, encoder) that the policy was learned with",
            )
        if not np.isfinite(arrays[name]).all():
            raise UserError(
                f"'{name}' holds values that are not finite", where=str(where), expected="finite parameters"
            )
    module.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
