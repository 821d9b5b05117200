"""The networks: sizes as published, no order of rows, the same results as the dense computation over all 128 rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from schedlab.studies.batch.env.env import example_task
from schedlab.studies.batch.env.layouts import Layout, layout_of, layout_seen
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.env.vector import BatchVectorEnv
from schedlab.studies.batch.jobs import Machine
from schedlab.studies.batch.learners.networks import (
    EXCLUDED,
    MLP_LAYERS,
    VALUE_LAYERS,
    begin_orthogonal,
    policy_network,
    read,
    value_network,
)

POLICIES = ("kernel", "actor_kernel", "attention", *MLP_LAYERS)
VALUES = ("rows", "pooled", *VALUE_LAYERS)
LAYOUTS = {
    "features": {},
    "features with run times": {"oracle_runtime": True, "quantiles": 1},
    "features with a no-op": {"noop": True},
    "rlscheduler": {"layout": "rlscheduler"},
    "rlscheduler with a no-op": {"layout": "rlscheduler", "noop": True},
    "rlscheduler with fairness": {"layout": "rlscheduler", "fairness": True},
    "dissertation": {"layout": "dissertation"},
    "shortlist": {"layout": "shortlist", "rows": 9},
}


def parameters(network: nn.Module) -> int:
    return sum(each.numel() for each in network.parameters())


@cache
def some(layout: str, decisions: int = 30) -> tuple[Layout, np.ndarray, np.ndarray]:
    """(layout, observations (n, size), masks (n, 128)) of windows under random rows."""
    task = example_task(EnvironmentSettings(**LAYOUTS[layout]), "none", 40)
    env, rng = BatchVectorEnv(task, 3, 1), np.random.default_rng(2)
    observed, _ = env.reset()
    found = []
    for _ in range(decisions):
        masks = env.action_masks()
        found += list(zip(observed, masks, strict=True))
        observed, *_ = env.step(np.array([rng.choice(np.flatnonzero(mask)) for mask in masks]))
    observations, masks = zip(*found, strict=True)
    return task.layout, np.stack(observations), np.stack(masks)


def published(layout: str, nodes: int = 240) -> Layout:
    return layout_of(EnvironmentSettings(layout=layout), Machine(nodes, nodes))


def test_sizes_are_those_that_were_published():
    assert parameters(policy_network("kernel", published("rlscheduler"))) == 961
    assert parameters(value_network("rows", published("rlscheduler"))) == 11_570
    machine, rows = 240 * 10 + 10, 20 * 64 + 64 + 64 * 32 + 32 + 32 * 16 + 16 + 16 * 10 + 10 + 10 + 1
    assert parameters(policy_network("actor_kernel", published("dissertation"))) == machine + rows
    assert published("dissertation").size == 1520
    sizes = {name: [1520, *hidden, 1] for name, hidden in VALUE_LAYERS.items()}
    assert sizes["small"][1:] == [64, 32, 16, 8, 10, 1] and sizes["deep"][1:] == [64, 32, 32, 32, 32, 10, 1]
    for name, each in sizes.items():
        expected = sum((before + 1) * after for before, after in pairwise(each))
        assert parameters(value_network(name, published("dissertation"))) == expected
    flat = {"mlp_v1": [128, 128, 128], "mlp_v2": [32, 16, 8], "mlp_v3": [32] * 5}
    for name, hidden in flat.items():
        each = [1024, *hidden, 128]
        expected = sum((before + 1) * after for before, after in pairwise(each))
        assert parameters(policy_network(name, published("rlscheduler"))) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_settings_and_size_tell_the_layout_and_observations_their_real_rows(layout):
    made, observations, masks = some(layout)
    assert layout_seen(EnvironmentSettings(**LAYOUTS[layout]), made.size) == made
    queue = read(made, torch.from_numpy(observations))
    real = np.zeros_like(masks)
    real[queue.owner, queue.place] = True
    assert np.array_equal(real, masks)
    rows, machine = made.split(observations)
    assert np.array_equal(queue.rows.numpy(), rows[masks]) and np.array_equal(queue.machine.numpy(), machine)


def test_a_size_that_the_settings_do_not_have_is_refused():
    for quantiles, oracle, plan in product((1, 5, 64), (False, True), (False, True)):
        settings = EnvironmentSettings(quantiles=quantiles, oracle_runtime=oracle, plan=plan)
        made = layout_of(settings, Machine(9, 9))
        assert layout_seen(settings, made.size) == made
        with pytest.raises(ValueError, match=f"features.* {made.size + 2} "):
            layout_seen(settings, made.size + 2)
    for name, size in (("rlscheduler", 128 * 8 + 1), ("dissertation", 128 * 10)):
        with pytest.raises(ValueError, match=f"{name}.* {size} "):
            layout_seen(EnvironmentSettings(layout=name), size)


def dense(name: str, network: nn.Module, layout: Layout, flat: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """What a policy or value network makes of all rows, padding too, as it was published."""
    rows, machine = layout.split(flat)
    if name in VALUE_LAYERS or name in MLP_LAYERS:
        return network.net(flat)
    if name == "rows":
        return network.net(network.row(rows).squeeze(2))
    if name == "pooled":
        found = network.row(rows)
        count = masks.sum(1, keepdim=True)
        mean = torch.where(masks[:, :, None], found, 0.0).sum(1) / count
        most = torch.where(masks[:, :, None], found, 0.0).max(1).values
        return network.net(torch.cat([mean, most, count / 128, machine], dim=1))
    part = network.scores
    if part.machine is not None:
        rows = torch.cat([rows, part.machine(machine)[:, None].expand(-1, 128, -1)], dim=2)
    if name != "attention":
        return part.net(rows).squeeze(2)
    embedded = functional.relu(part.embed(rows))
    query, key, value = part.project(embedded).chunk(3, dim=2)
    heads = []
    for head in range(4):
        at = slice(8 * head, 8 * head + 8)
        weights = (
            (query[..., at] @ key[..., at].transpose(1, 2) / np.sqrt(8))
            .masked_fill(~masks[:, None], -np.inf)
            .softmax(2)
        )
        heads.append(weights @ value[..., at])
    return part.net(part.norm(embedded + part.join(torch.cat(heads, dim=2)))).squeeze(2)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks so small are slower with more threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("layout", ["features", "rlscheduler with a no-op", "dissertation"])
@pytest.mark.parametrize("name", [*POLICIES, *VALUES])
def test_results_and_gradients_are_those_of_the_dense_computation(name, layout):
    made, observations, masks = some(layout)
    torch.manual_seed(3)
    network = (policy_network if name in POLICIES else value_network)(name, made)
    flat, real = torch.from_numpy(observations), torch.from_numpy(masks)
    wanted = dense(name, network, made, flat, real)
    found = network(read(made, flat))
    weights = torch.randn(wanted.shape)
    if name in POLICIES:
        assert (found[~real] < EXCLUDED / 2).all()
        found, wanted = (
            each.masked_fill(~real, -1e8).log_softmax(1).masked_fill(~real, 0.0) for each in (found, wanted)
        )
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    own, theirs = (torch.autograd.grad((each * weights).sum(), network.parameters()) for each in (found, wanted))
    for one, other in zip(own, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["kernel", "actor_kernel", "attention"])
def test_the_order_of_the_rows_does_not_count(name):
    made, observations, masks = some("features")
    most = int(masks.sum(1).argmax())
    count = int(masks[most].sum())
    assert count > 5
    order = np.random.default_rng(0).permutation(count)
    flat = np.stack([observations[most]] * 2)
    made.split(flat)[0][1, :count] = made.split(flat)[0][0, order]
    scores = policy_network(name, made)(read(made, torch.from_numpy(flat)))
    torch.testing.assert_close(scores[0, :count][torch.from_numpy(order)], scores[1, :count], rtol=1e-4, atol=1e-5)


def test_attention_looks_at_the_other_jobs_of_its_queue_alone():
    made, observations, masks = some("features")
    network = policy_network("attention", made)
    flat = torch.from_numpy(observations[masks.sum(1) > 2][:2])
    alone, together = network(read(made, flat[:1])), network(read(made, flat))
    torch.testing.assert_close(alone[0], together[0], rtol=1e-4, atol=1e-5)
    changed = flat[:1].clone()
    made.split(changed)[0][0, 1, :3] += 1.0
    assert abs((network(read(made, changed)) - alone)[0, 0].item()) > 1e-5


def test_a_queue_without_jobs_has_no_row_to_choose():
    made = published("rlscheduler")
    empty = torch.zeros(1, 128, 8)
    empty[..., 1:7] = 1.0
    for name in ("kernel", "attention"):
        assert (policy_network(name, made)(read(made, empty.view(1, -1))) == EXCLUDED).all()


def test_first_weights_are_orthogonal_with_the_published_gains():
    network = policy_network("actor_kernel", published("dissertation"))
    begin_orthogonal(network, 0.01)
    found = [part for part in network.modules() if isinstance(part, nn.Linear)]
    for part, gain in zip(found, [2**0.5] * (len(found) - 1) + [0.01], strict=True):
        weight = part.weight if part.weight.shape[0] <= part.weight.shape[1] else part.weight.T
        torch.testing.assert_close(weight @ weight.T, gain**2 * torch.eye(len(weight)), rtol=1e-4, atol=1e-5)
        assert (part.bias == 0).all()
