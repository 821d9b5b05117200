"""The policy networks: that of the published system (recurrent, fixed actions), and one that scores each action."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from schedlab.learning.seeding import torch_stream
from schedlab.studies.adaptation.learners.encoders import (
    LAYER_FEATURES,
    PLACE_FEATURES,
    Encoding,
    StateInputs,
    Vocabulary,
    read_vocabulary,
    time_columns,
)
from schedlab.studies.adaptation.learners.settings import NetworkSettings


def encoding_of(settings: NetworkSettings, vocabulary: Vocabulary | None = None) -> Encoding:
    """Return the encoding of decisions; if no vocabulary is given, it is read from its file."""
    if settings.encoder == "features":
        vocabulary = None
    elif vocabulary is None:
        vocabulary = read_vocabulary(settings.vocabulary)
    return Encoding(settings.time_code, settings.frequencies, settings.slope, vocabulary)


class Inputs:
    """`StateInputs` as tensors, with gather indices for the variable lengths."""

    def __init__(self, arrays: StateInputs) -> None:
        self.layers = torch.from_numpy(arrays.layers)
        self.members = torch.from_numpy(arrays.members)
        self.places = torch.from_numpy(arrays.places)
        self.which = torch.from_numpy(arrays.which)
        self.clock = torch.from_numpy(arrays.clock)
        steps = np.arange(arrays.layers.shape[1])
        inside = steps[None, :] < arrays.lengths[:, None]
        self.mask = torch.from_numpy(inside.astype(np.float32))
        backwards = np.where(inside, arrays.lengths[:, None] - 1 - steps[None, :], steps[None, :])
        self.rows = torch.arange(len(arrays.lengths))[:, None]
        self.backwards = torch.from_numpy(backwards)
        self.last = torch.from_numpy(arrays.lengths - 1)


class RecurrentEncoder(nn.Module):
    """Reads the embedded layers in both directions, then reads the results in order; returns a code for each layer and
    one for the model.
    """

    def __init__(self, embedding: np.ndarray, recurrent: int, code: int) -> None:
        super().__init__()
        self.register_buffer("embedding", torch.from_numpy(embedding), persistent=False)
        self.forwards = nn.LSTM(embedding.shape[1], recurrent, batch_first=True)
        self.backwards = nn.LSTM(embedding.shape[1], recurrent, batch_first=True)
        self.reader = nn.LSTM(2 * recurrent, code, batch_first=True)

    def forward(self, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (architectures, longest, code) and (architectures, code)."""
        # Padded at the end and reversed by index: much faster on a CPU than packed sequences, with the same result.
        words = self.embedding[inputs.layers]
        onward, _ = self.forwards(words)
        back, _ = self.backwards(words[inputs.rows, inputs.backwards])
        codes, _ = self.reader(torch.cat([onward, back[inputs.rows, inputs.backwards]], dim=-1))
        return codes, codes[inputs.rows[:, 0], inputs.last]


class PooledEncoder(nn.Module):
    """Reads each layer's features separately; the model's code is the mean over its layers."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.Linear(LAYER_FEATURES, code), nn.Tanh(), nn.Linear(code, code), nn.Tanh())

    def forward(self, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (architectures, longest, code) and (architectures, code)."""
        codes = self.read(inputs.layers)
        mask = inputs.mask[..., None]
        return codes, (codes * mask).sum(1) / mask.sum(1)


class PolicyNetwork(nn.Module):
    """Scores (logits) of the actions in each state of `Inputs`.

    The published network has 54,980 trained parameters with four actions; its embedding is frozen.
    """

    def __init__(self, settings: NetworkSettings, actions: int, encoding: Encoding) -> None:
        super().__init__()
        self.head_kind = settings.head
        if encoding.vocabulary is None:
            self.encoder: nn.Module = PooledEncoder(settings.code)
        else:
            self.encoder = RecurrentEncoder(
                encoding.vocabulary.embedding(settings.embedding), settings.recurrent, settings.code
            )
        clock = time_columns(settings.time_code, settings.frequencies) + settings.slope
        fixed = settings.head == "fixed"
        columns = clock + settings.code + (0 if fixed else settings.code + PLACE_FEATURES)
        width = settings.linear
        outputs = actions if fixed else 1
        self.decider = nn.Sequential(
            nn.Linear(columns, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
        )

    def forward(self, inputs: Inputs) -> torch.Tensor:
        """Return the logits (states, actions)."""
        layer_codes, model_codes = self.encoder(inputs)
        of_state = torch.cat([inputs.clock, model_codes[inputs.which]], dim=-1)
        if self.head_kind == "fixed":
            return self.decider(of_state)
        blocks = inputs.members @ layer_codes
        nothing = torch.zeros_like(blocks[:, :1])
        of_action = torch.cat([torch.cat([blocks, nothing], dim=1), inputs.places], dim=-1)[inputs.which]
        spread = of_state[:, None, :].expand(-1, of_action.shape[1], -1)
        return self.decider(torch.cat([of_action, spread], dim=-1)).squeeze(-1)


def build_network(settings: NetworkSettings, actions: int, encoding: Encoding, seed: int) -> PolicyNetwork:
    """Return a network with torch's default initial values, drawn from a separate stream of the seed."""
    with torch_stream(seed, "policy-init"):
        return PolicyNetwork(settings, actions, encoding)
