"""torch without hidden state: one thread, and random streams that depend only on a seed and names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from schedlab.config.seeds import derive_seed


def use_one_thread() -> None:
    """Restrict torch to one thread, so that sums are taken in one order and parallel jobs do not share cores."""
    import torch

    torch.set_num_threads(1)


@contextmanager
def torch_stream(root: int, *names: str | int) -> Iterator[int]:
    """Within the block, torch's CPU generator starts at the stream `names` of the root seed; afterwards its former
    state is restored. Yields the seed of the stream.
    """
    import torch

    seed = derive_seed(root, *names)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(
            seed
        )  # torch.manual_seed also keeps a stack trace for CUDA at each call, which takes 1 ms and is never freed
        yield seed
