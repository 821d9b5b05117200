"""The inputs of a policy network for a decision: layers as features or words, and the time left as a code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.config.files import write_json
from schedlab.config.readers import read_json
from schedlab.config.seeds import generator
from schedlab.studies.adaptation.decisions import Decision, GrowthAction
from schedlab.studies.adaptation.network.architecture import Architecture, Layer

_PLAIN = ("avg_pool", "max_pool", "global_average_pool", "flatten")
KINDS = ("conv", "linear", "batch_norm", "relu", "tanh", "sigmoid", *_PLAIN)
LAYER_FEATURES = len(KINDS) + 6
PLACE_FEATURES = 4
SHIPPED_VOCABULARY = "resources/vocabularies/layers.json"
_UNKNOWN = 0


def layer_features(architecture: Architecture) -> np.ndarray:
    """Return (layers, LAYER_FEATURES): kind one-hot, log2 of channels / 8, kernel, stride, padding / 4, position."""
    last = max(len(architecture.layers) - 1, 1)
    rows = np.zeros((len(architecture.layers), LAYER_FEATURES), dtype=np.float32)
    for i, layer in enumerate(architecture.layers):
        rows[i, KINDS.index(layer.kind)] = 1
        channels = (np.log2(layer.inputs) / 8, np.log2(layer.outputs) / 8)
        rows[i, len(KINDS) :] = (*channels, layer.kernel / 4, layer.stride / 4, layer.padding / 4, i / last)
    return rows


def describe(layer: Layer) -> str:
    """Return the text of a layer in the vocabulary. No library formats it, so no library version can change it."""
    place = f"kernel {layer.kernel} stride {layer.stride} padding {layer.padding}"
    return f"{layer.kind} {layer.inputs}->{layer.outputs} {place}"


@dataclass(frozen=True)
class Vocabulary:
    """Layer descriptions with their ids, from 1 on; id 0 stands for every layer that is not listed.

    Layers are only appended, so existing ids, and the embeddings that are derived from them, do not change.
    """

    layers: tuple[str, ...]
    version: int = 1
    seed: int = 42

    def ids(self, architecture: Architecture) -> np.ndarray:
        """Return the id of each layer, in order."""
        position = {text: number for number, text in enumerate(self.layers, 1)}
        return np.array([position.get(describe(layer), _UNKNOWN) for layer in architecture.layers], dtype=np.int64)

    def embedding(self, size: int) -> np.ndarray:
        """Return the frozen embedding (ids, size): standard normal numbers, each row drawn from a stream named by its
        id.
        """
        return np.stack(
            [generator(self.seed, "embedding", i).standard_normal(size) for i in range(len(self.layers) + 1)]
        ).astype(np.float32)

    def extended(self, architectures: Iterable[Architecture]) -> Vocabulary:
        """Return the vocabulary with unlisted layers appended in the order in which they occur."""
        words = dict.fromkeys(self.layers)
        words |= dict.fromkeys(describe(layer) for architecture in architectures for layer in architecture.layers)
        return Vocabulary(tuple(words), self.version, self.seed)

    def write(self, path: Path | str) -> None:
        """Write the vocabulary as JSON."""
        write_json(path, {"version": self.version, "seed": self.seed, "layers": list(self.layers)})


def vocabulary_of(values: Any, where: str) -> Vocabulary:
    """Return the vocabulary in a JSON object. Raises UserError if it is none."""
    values = values if isinstance(values, dict) else {}
    layers, seed = values.get("layers"), values.get("seed")
    texts = layers if isinstance(layers, list) and all(isinstance(text, str) for text in layers) else [""] * 2
    if len(set(texts)) < len(texts) or values.get("version") != 1 or not isinstance(seed, int):
        expected = "version 1, a seed, and a list of different layer descriptions"
        what = "this is no vocabulary of layers"
        raise UserError(what, where=where, expected=expected, remedy="make one with `vocab`")
    return Vocabulary(tuple(texts), 1, seed)


def read_vocabulary(path: Path | str = SHIPPED_VOCABULARY) -> Vocabulary:
    """Read the vocabulary that `find_resource` finds for a path. Raises UserError if there is none."""
    file = find_resource(path)
    if not file.is_file():
        what = "there is no such vocabulary"
        raise UserError(what, where=str(file), remedy=f"use {SHIPPED_VOCABULARY}, or make one with `vocab`")
    return vocabulary_of(read_json(file, "a vocabulary of layers"), str(file))


def reachable(original: Architecture, depth: int = 1) -> list[Architecture]:
    """Return an architecture and those within `depth` insertions of it, with and without batch norm."""
    found = {original: None}
    frontier = [original]
    for _ in range(depth):
        frontier = [
            a.deepened(block, bn) for a in frontier for block in range(a.deepenable_blocks) for bn in (False, True)
        ]
        found |= dict.fromkeys(frontier)
    return list(found)


def time_code(time_left: np.ndarray, total_time: np.ndarray, kind: str, frequencies: int) -> np.ndarray:
    """Return the code of the time left (states, columns).

    sine         5 sin(2 pi i t / T) for i = 1 .. frequencies, as in the published system; equal for t = 0 and t = T
    sine_cosine  sines and cosines of the same angles, and t / T itself
    """
    part = np.asarray(time_left, dtype=float)[:, None] / np.asarray(total_time, dtype=float)[:, None]
    angles = 2 * np.pi * part * np.arange(1, frequencies + 1)
    if kind == "sine":
        return (5 * np.sin(angles)).astype(np.float32)
    return np.concatenate([np.sin(angles), np.cos(angles), part], axis=1).astype(np.float32)


def time_columns(kind: str, frequencies: int) -> int:
    """Return the number of columns of `time_code`."""
    return frequencies if kind == "sine" else 2 * frequencies + 1


@dataclass(frozen=True)
class StateInputs:
    """Decisions as arrays; each distinct architecture is stored once.

    layers    (architectures, longest, LAYER_FEATURES) features, or (architectures, longest) ids; zero after the last
    lengths   (architectures,) number of layers
    members   (architectures, actions - 1, longest): 1 where the layer belongs to the block that the action grows
    places    (architectures, actions, PLACE_FEATURES): insertions so far, place of the block 0..1, widens, does nothing
    which     (states,) index of the state's architecture
    clock     (states, columns): time code, and the slope if the encoding includes it
    """

    layers: np.ndarray
    lengths: np.ndarray
    members: np.ndarray
    places: np.ndarray
    which: np.ndarray
    clock: np.ndarray


@dataclass(frozen=True)
class Encoding:
    """The encoding of decisions as arrays: layers, time code and slope. Without a vocabulary, layers are encoded as
    features.
    """

    time_code: str
    frequencies: int
    slope: bool
    vocabulary: Vocabulary | None

    def __call__(self, decisions: Sequence[Decision]) -> StateInputs:
        """Return the arrays of decisions with the same number of actions."""
        counts = {len(decision.actions) for decision in decisions}
        if len(counts) != 1:
            what = f"scenarios with {sorted(counts)} growth actions are mixed"
            raise UserError(what, expected="the same number in each")
        kinds = list(dict.fromkeys((decision.architecture, decision.actions) for decision in decisions))
        position = {kind: number for number, kind in enumerate(kinds)}
        coded = [self._layers(architecture) for architecture, _ in kinds]
        lengths = np.array([len(rows) for rows in coded])
        layers = np.zeros((len(kinds), lengths.max(), *coded[0].shape[1:]), dtype=coded[0].dtype)
        members = np.zeros((len(kinds), counts.pop(), lengths.max()), dtype=np.float32)
        for i, (architecture, actions) in enumerate(kinds):
            layers[i, : lengths[i]] = coded[i]
            for j, action in enumerate(actions):
                members[i, j, : lengths[i]] = [layer.block == action.block for layer in architecture.layers]
        places = np.stack([_places(architecture, actions) for architecture, actions in kinds])
        which = np.array([position[decision.architecture, decision.actions] for decision in decisions])
        return StateInputs(layers, lengths, members, places, which, self._clock(decisions))

    def _layers(self, architecture: Architecture) -> np.ndarray:
        return layer_features(architecture) if self.vocabulary is None else self.vocabulary.ids(architecture)

    def _clock(self, decisions: Sequence[Decision]) -> np.ndarray:
        left = np.array([decision.time_left for decision in decisions])
        total = np.array([decision.total_time for decision in decisions])
        code = time_code(left, total, self.time_code, self.frequencies)
        if not self.slope:
            return code
        slopes = [decision.slope for decision in decisions if decision.slope is not None]
        if len(slopes) < len(decisions):
            remedy = "set slope: false, or curves: true in the scenario"
            raise UserError("the table holds no slope of the validation accuracy", where="learner.slope", remedy=remedy)
        return np.concatenate([code, np.array([[100 * slope] for slope in slopes], dtype=np.float32)], axis=1)


def _places(architecture: Architecture, actions: Sequence[GrowthAction]) -> np.ndarray:
    blocks = max(architecture.deepenable_blocks, 1)
    rows = [(architecture.insertions[a.block], a.block / blocks, a.operation == "widen", 0.0) for a in actions]
    return np.array([*rows, (0.0, 0.0, 0.0, 1.0)], dtype=np.float32)
