"""The graph policy's network in torch: message passing over ops and deps, and a module for the vector of features.

Source: PAC-ML, arXiv 2301.13799; messages are passed by torch-geometric.

A round gives every op v, from ops u with a dep (u, v) of features e,
    message(u, v) = reduce([node(h_u), edge(e)])        own(v) = reduce([node(h_v), 0])
    h_v' = mean of own(v) and all message(u, v)
where node, edge and reduce are each a normalisation, a linear map and an activation. The layer norm of an edge's two
features keeps little more than their order, so the published network cannot read the sizes of deps; it can do so with
`norm: ops` and `norm: none`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing, global_mean_pool
from torch_geometric.utils import add_self_loops, degree

from schedlab.learning.networks import ACTIVATIONS
from schedlab.studies.ramp.env.observation import GraphFeatures
from schedlab.studies.ramp.learners.settings import GraphNetworkSettings

NODE_FEATURES, EDGE_FEATURES = 5, 2


def network(
    size: int, out: int, settings: GraphNetworkSettings, normed: bool, last_active: bool = True
) -> nn.Sequential:
    """Return a normalisation (if `normed`) and `depth` linear maps, each followed by an activation. Without
    `last_active`, the first linear map has no activation.
    """
    active = ACTIVATIONS[settings.graph_activation]
    layers: list[nn.Module] = [nn.LayerNorm(size) if normed else nn.Identity(), nn.Linear(size, out)]
    layers += [active()] if last_active else []
    for _ in range(settings.depth - 1):
        layers += [nn.Linear(out, out), active()]
    return nn.Sequential(*layers)


class Round(MessagePassing):
    """One round of messages: (ops, size) -> (ops, out)."""

    def __init__(self, size: int, out: int, settings: GraphNetworkSettings) -> None:
        super().__init__(aggr="mean")
        half, normed = settings.message // 2, settings.norm != "none"
        self.node = network(size, half, settings, normed)
        self.edge = network(EDGE_FEATURES, half, settings, normed=settings.norm == "layer")
        self.reduce = network(2 * half, out, settings, normed)
        self._zero_sources = settings.zero_sources

    def forward(self, ops: torch.Tensor, deps: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Return the ops after the round; deps int64[2, deps] from and to, edges (deps, 2)."""
        received = degree(deps[1], len(ops)) > 0
        deps, edges = add_self_loops(deps, self.edge(edges), fill_value=0.0, num_nodes=len(ops))
        found = self.propagate(deps, x=self.node(ops), edges=edges)
        return torch.where(received[:, None], found, found.new_zeros(())) if self._zero_sources else found

    def message(self, x_j: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Return the message of each edge, including an op's edge to itself."""
        return self.reduce(torch.cat([x_j, edges], dim=1))


class GraphEmbedding(nn.Module):
    """The mean of the ops of each graph after all rounds: graphs -> (graphs, node_out)."""

    def __init__(self, settings: GraphNetworkSettings) -> None:
        super().__init__()
        sizes = [NODE_FEATURES, *[settings.hidden] * (settings.rounds - 1), settings.node_out]
        self.rounds = nn.ModuleList(Round(size, out, settings) for size, out in pairwise(sizes))

    def forward(self, graphs: Sequence[Data]) -> torch.Tensor:
        """Return the embedding of each graph, float32 (graphs, node_out). Graphs may be on another device than the
        parameters.
        """
        batch = Batch.from_data_list(list(graphs)).to(next(self.parameters()).device)
        ops = batch.x
        for one in self.rounds:
            ops = one(ops, batch.edge_index, batch.edge_attr)
        return global_mean_pool(ops, batch.batch, len(graphs))


class GraphReader(BaseFeaturesExtractor):
    """Embeds a graph, given by number (`graph_id`) or padded (`published`), and the vector, and concatenates both.

    Each distinct graph of a minibatch is embedded once; without gradients, once until the parameters change.
    """

    def __init__(self, observation_space: gym.spaces.Dict, settings: GraphNetworkSettings) -> None:
        super().__init__(observation_space, settings.node_out + settings.graph_out)
        spaces: dict[str, Any] = dict(observation_space.spaces)
        self.numbered = "graph" in spaces
        vector = spaces["features" if self.numbered else "graph_features"].shape[0]
        self.embedding = GraphEmbedding(settings)
        self.vector = network(vector, settings.graph_out, settings, settings.norm != "none", last_active=False)
        self._graphs = [data(graph) for graph in spaces["graph"].graphs] if self.numbered else []
        self._known: dict[int, torch.Tensor] = {}  # embeddings without gradients, of the parameters in `_known_for`
        self._known_for = torch.zeros(0)

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return (decisions, node_out + graph_out)."""
        if not self.numbered:
            graphs = self.embedding(_unpadded(observations))
            return torch.cat([graphs, self.vector(observations["graph_features"])], dim=1)
        numbers, places = torch.unique(observations["graph"].long().view(-1), return_inverse=True)
        graphs = self._embedded(numbers.tolist())[places]
        return torch.cat([graphs, self.vector(observations["features"])], dim=1)

    def _embedded(self, numbers: list[int]) -> torch.Tensor:
        if torch.is_grad_enabled():
            return self.embedding([self._graphs[number] for number in numbers])
        parameters = nn.utils.parameters_to_vector(self.embedding.parameters())
        if parameters.device != self._known_for.device or not torch.equal(parameters, self._known_for):
            self._known, self._known_for = {}, parameters
        for number in numbers:
            if number not in self._known:  # one by one, so that sums do not depend on the graphs of earlier calls
                self._known[number] = self.embedding([self._graphs[number]])[0]
        return torch.stack([self._known[number] for number in numbers])


def data(graph: GraphFeatures) -> Data:
    """Return a graph's features in the form of torch-geometric."""
    ends = torch.stack([torch.from_numpy(graph.sources), torch.from_numpy(graph.destinations)]).long()
    return Data(x=torch.from_numpy(graph.nodes), edge_index=ends, edge_attr=torch.from_numpy(graph.edges))


def _unpadded(observations: Mapping[str, torch.Tensor]) -> list[Data]:
    """Return the graphs of padded observations."""
    found = []
    for row in range(len(observations["node_split"])):
        ops, deps = int(observations["node_split"][row]), int(observations["edge_split"][row])
        ends = torch.stack([observations["edges_src"][row, :deps], observations["edges_dst"][row, :deps]]).long()
        nodes, edges = observations["node_features"][row, :ops], observations["edge_features"][row, :deps]
        found.append(Data(x=nodes, edge_index=ends, edge_attr=edges))
    return found
