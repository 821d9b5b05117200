"""Networks that read a queue: policies score its rows, and value networks score the whole queue. Torch modules.

Sources: RLScheduler (Zhang et al., SC20) for `kernel`, the value network `rows` and the layered policies mlp_v1 to
mlp_v3; W. Zhang's dissertation (Edinburgh, 2023) for `actor_kernel` and the value networks `small`, `large` and `deep`.
`attention` is what the dissertation meant: its module was given rows as if they were the batch, and attended over other
decisions; here it attends over the rows of a queue, with a residual connection and layer normalisation. `pooled` is
ours. Rows without a job are left out before anything is computed; results are those of the dense computation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from schedlab.learning.networks import layers
from schedlab.studies.batch.env.layouts import Layout

EXCLUDED = -1e6  # added to what a row without a job scores, as published: it is never chosen
MACHINE_OUTPUTS = 10  # numbers that the machine is told by, beside each row
ATTENTION_WIDTH, ATTENTION_HEADS = 32, 4
KERNEL_LAYERS = (32, 16, 8)
ACTOR_KERNEL_LAYERS = (64, 32, 16, 10)
ROWS_VALUE_LAYERS = (64, 32, 8)
POOLED_LAYERS = (32, 32)
MLP_LAYERS = {"mlp_v1": (128,) * 3, "mlp_v2": (32, 16, 8), "mlp_v3": (32,) * 5}
VALUE_LAYERS = {"small": (64, 32, 16, 8, 10), "large": (128, 128, 128, 128, 10), "deep": (64, 32, 32, 32, 32, 10)}


class Queue(NamedTuple):
    """Observations (B, size), split into their parts.

    flat     (B, size) as they were          rows   (M, columns): those that hold a job or the no-op
    owner    (M,) observation of each        place  (M,) row of each, 0 to 127
    machine  (B, cluster)
    """

    flat: torch.Tensor
    rows: torch.Tensor
    owner: torch.Tensor
    place: torch.Tensor
    machine: torch.Tensor


def read(layout: Layout, flat: torch.Tensor) -> Queue:
    """Split observations (B, size) into their parts."""
    border = layout.rows * len(layout.columns)
    rows = flat[:, :border].view(len(flat), layout.rows, len(layout.columns))
    owner, place = _real(layout, rows).nonzero(as_tuple=True)
    return Queue(flat, rows[owner, place], owner, place, flat[:, border:])


def _real(layout: Layout, rows: torch.Tensor) -> torch.Tensor:
    """True (B, 128) for rows that hold a job or the no-op."""
    if layout.name == "rlscheduler":
        return (rows[:, :, 0] > 0) | (rows[:, :, -1] > 0)  # a job's `fits` is above 0; the no-op's wait is
    return rows[:, :, layout.columns.index("job")] != 0


class RowNetwork(nn.Module):
    """The same small network on every row, with the machine's numbers if requested."""

    def __init__(self, layout: Layout, hidden: Sequence[int], *, machine: bool) -> None:
        super().__init__()
        self.machine = nn.Linear(layout.cluster, MACHINE_OUTPUTS) if machine and layout.cluster else None
        self.net = layers(len(layout.columns) + (MACHINE_OUTPUTS if self.machine else 0), hidden, 1)

    def forward(self, queue: Queue) -> torch.Tensor:
        """Return the score of each real row (M,)."""
        return self.net(beside_machine(queue, self.machine)).squeeze(1)


class RowPolicy(nn.Module):
    """Scores of all 128 rows (B, 128) from a network on the real rows."""

    def __init__(self, layout: Layout, scores: nn.Module) -> None:
        super().__init__()
        self.rows, self.scores = layout.rows, scores

    def forward(self, queue: Queue) -> torch.Tensor:
        """Return the scores, with EXCLUDED for rows without a job."""
        excluded = queue.flat.new_full((len(queue.flat) * self.rows,), EXCLUDED)
        return excluded.index_copy(0, queue.owner * self.rows + queue.place, self.scores(queue)).view(-1, self.rows)


class AttentionNetwork(nn.Module):
    """Four heads of attention over the rows of a queue, then 16, 10 and 1 units on each row."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.machine = nn.Linear(layout.cluster, MACHINE_OUTPUTS) if layout.cluster else None
        self.embed = nn.Linear(len(layout.columns) + (MACHINE_OUTPUTS if self.machine else 0), ATTENTION_WIDTH)
        self.project = nn.Linear(ATTENTION_WIDTH, 3 * ATTENTION_WIDTH)
        self.join = nn.Linear(ATTENTION_WIDTH, ATTENTION_WIDTH)
        self.norm = nn.LayerNorm(ATTENTION_WIDTH)
        self.net = layers(ATTENTION_WIDTH, (16, 10), 1)

    def forward(self, queue: Queue) -> torch.Tensor:
        """Return the score of each real row (M,)."""
        embedded = functional.relu(self.embed(beside_machine(queue, self.machine)))
        number, longest = len(queue.flat), int(queue.place.max()) + 1 if len(queue.place) else 1
        at = queue.owner * longest + queue.place
        parts = embedded.new_zeros(number * longest, 3 * ATTENTION_WIDTH).index_copy(0, at, self.project(embedded))
        query, key, value = parts.view(number, longest, 3, ATTENTION_HEADS, -1).permute(2, 0, 3, 1, 4)
        real = torch.zeros(number * longest, dtype=torch.bool, device=at.device).index_fill(0, at, True)
        mask = real.view(number, 1, 1, longest)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = seen.transpose(1, 2).reshape(number * longest, ATTENTION_WIDTH)[at]
        return self.net(self.norm(embedded + self.join(mixed))).squeeze(1)


class LayeredPolicy(nn.Module):
    """Fully connected layers from the whole observation to the scores of all rows (B, 128)."""

    def __init__(self, layout: Layout, hidden: Sequence[int]) -> None:
        super().__init__()
        self.rows, self.net = layout.rows, layers(layout.size, hidden, layout.rows)

    def forward(self, queue: Queue) -> torch.Tensor:
        """Return the scores; those of rows without a job are lowered by -EXCLUDED."""
        at = queue.owner * self.rows + queue.place
        lowered = queue.flat.new_full((len(queue.flat) * self.rows,), EXCLUDED).index_fill(0, at, 0.0)
        return self.net(queue.flat) + lowered.view(-1, self.rows)


class RowsValue(nn.Module):
    """RLScheduler's value network: a small network on every row, padding too, then layers. Gives (B, 1)."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.register_buffer("padding", torch.from_numpy(layout.split(layout.padding)[0][0]), persistent=False)
        self.rows, self.row = layout.rows, layers(len(layout.columns), KERNEL_LAYERS, 1)
        self.net = layers(layout.rows, ROWS_VALUE_LAYERS, 1)

    def forward(self, queue: Queue) -> torch.Tensor:
        """Return the value of each queue; the row of padding is computed once."""
        scored = self.row(torch.cat([self.padding[None], queue.rows])).squeeze(1)
        padded, at = scored[:1].expand(len(queue.flat) * self.rows), queue.owner * self.rows + queue.place
        whole = padded.index_copy(0, at, scored[1:])
        return self.net(whole.view(-1, self.rows))


class FlatValue(nn.Module):
    """Fully connected layers from the whole observation to (B, 1)."""

    def __init__(self, layout: Layout, hidden: Sequence[int]) -> None:
        super().__init__()
        self.net = layers(layout.size, hidden, 1)

    def forward(self, queue: Queue) -> torch.Tensor:
        """Return the value of each queue."""
        return self.net(queue.flat)


class PooledValue(nn.Module):
    """Mean and maximum of a small network's outputs over the real rows, their number, and the machine; then two
    layers.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        width = KERNEL_LAYERS[1]
        self.rows = layout.rows
        self.row = nn.Sequential(layers(len(layout.columns), KERNEL_LAYERS[:1], width), nn.ReLU(inplace=True))
        self.net = layers(2 * width + 1 + layout.cluster, POOLED_LAYERS, 1)

    def forward(self, queue: Queue) -> torch.Tensor:
        """Return the value of each queue."""
        found = self.row(queue.rows)
        number, width = len(queue.flat), found.shape[1]
        count = torch.bincount(queue.owner, minlength=number).to(found.dtype)[:, None]
        mean = found.new_zeros(number, width).index_add(0, queue.owner, found) / count.clamp(min=1)
        most = found.new_zeros(number, width).scatter_reduce(0, queue.owner[:, None].expand_as(found), found, "amax")
        return self.net(torch.cat([mean, most, count / self.rows, queue.machine], dim=1))


def policy_network(name: str, layout: Layout) -> nn.Module:
    """Return the policy network of a name: queues to scores (B, 128)."""
    if name in MLP_LAYERS:
        return LayeredPolicy(layout, MLP_LAYERS[name])
    if name == "attention":
        return RowPolicy(layout, AttentionNetwork(layout))
    hidden = {"kernel": KERNEL_LAYERS, "actor_kernel": ACTOR_KERNEL_LAYERS}[name]
    return RowPolicy(layout, RowNetwork(layout, hidden, machine=name == "actor_kernel"))


def value_network(name: str, layout: Layout) -> nn.Module:
    """Return the value network of a name: queues to (B, 1)."""
    if name in VALUE_LAYERS:
        return FlatValue(layout, VALUE_LAYERS[name])
    return {"rows": RowsValue, "pooled": PooledValue}[name](layout)


def begin_orthogonal(network: nn.Module, output_gain: float) -> None:
    """Give a network orthogonal first weights, gain sqrt(2), its last layer `output_gain`; biases 0."""
    found = [part for part in network.modules() if isinstance(part, nn.Linear)]
    for part in found:
        nn.init.orthogonal_(part.weight, output_gain if part is found[-1] else math.sqrt(2))
        nn.init.zeros_(part.bias)


def beside_machine(queue: Queue, machine: nn.Linear | None) -> torch.Tensor:
    """Return the real rows (M, columns), followed by the numbers of their machine (10) if the layout has them."""
    if machine is None:
        return queue.rows
    return torch.cat([queue.rows, machine(queue.machine)[queue.owner]], dim=1)
