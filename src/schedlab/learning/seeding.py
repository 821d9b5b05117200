"""Torch without hidden state: one thread, and random streams that depend on a seed and names alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from schedlab.config.seeds import derive_seed


def use_one_thread() -> None:
    """Keep torch to one thread, so that sums are taken in one order and jobs side by side do not share cores."""
    import torch

    torch.set_num_threads(1)


@contextmanager
def torch_stream(root: int, *names: str | int) -> Iterator[int]:
    """Within the block torch's CPU generator stands at the stream `names` of the root seed; afterwards it is as it was
    before.
    """
    import torch

    seed = derive_seed(root, *names)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(
            seed
        )  # torch.manual_seed also notes a stack trace for CUDA each time, 1 ms and never freed
        yield seed
