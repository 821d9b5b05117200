"""Learns one policy with several seeds, one after the other in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from schedlab.stages.learn import learn


def learn_each(
    part: Path,
    inputs: Mapping[str, Mapping[str, Path]],
    seeds: Sequence[int],
    parents: Sequence[str],
    checkpoints: Sequence[str],
    curves: Sequence[str],
    config_copies: Sequence[str],
    origins: Sequence[str],
) -> None:
    """Learn one policy with each seed, as `learn` does. All sequences have one entry for each seed; an empty parent
    means that there is none.
    """
    files = zip(parents, checkpoints, curves, config_copies, origins, strict=True)
    for seed, (parent, checkpoint, curve, config_copy, origin) in zip(seeds, files, strict=True):
        learn(
            part,
            inputs,
            Path(parent) if parent else None,
            Path(checkpoint),
            Path(curve),
            Path(config_copy),
            Path(origin),
            seed,
        )
