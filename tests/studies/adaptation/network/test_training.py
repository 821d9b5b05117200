"""The training loop: against torch's own optimizer, states as bytes, growth in mid-training."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_models import NAMES, small
from small_scenarios import BATCH_NORM_MODEL, pictures

from schedlab.config.schema import validate
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture
from schedlab.studies.adaptation.network.growth import soft_target_loss
from schedlab.studies.adaptation.network.models import build
from schedlab.studies.adaptation.network.training import (
    Samples,
    SoftTargets,
    TrainState,
    evaluate,
    grow,
    pack,
    prepare_torch,
    restart,
    samples,
    shrink_back,
    train_epoch,
    unpack,
)
from schedlab.studies.adaptation.scenario import GrowthSettings, TrainingSettings

SETTINGS = TrainingSettings(batch_size=32)


@pytest.fixture(autouse=True, scope="module")
def _deterministic():
    prepare_torch("cpu")


@pytest.fixture
def data():
    return samples(pictures(), "cpu")


def state_of(name="tiny8", seed=3):
    model = small(name) if name in NAMES else validate(ModelSettings, BATCH_NORM_MODEL)
    return TrainState(build(architecture(model), seed), SETTINGS.learning_rate)


def order(epoch, count=96):
    return np.random.default_rng(epoch).permutation(count)


def train(state, data, epochs, settings=SETTINGS, **more):
    return [train_epoch(state, data["train"], order(state.epoch), settings, **more) for _ in range(epochs)]


def same(one, other):
    return pack(one) == pack(other)


@pytest.mark.parametrize("name", ["tiny8", "bn"])
def test_training_is_that_of_torch(data, name):
    state = state_of(name)
    network = copy.deepcopy(state.network).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=SETTINGS.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, SETTINGS.decay)
    found = train(state, data, 3)
    for epoch in range(3):
        losses, correct = 0.0, 0
        for rows in torch.from_numpy(order(epoch)).split(32):
            logits = network(data["train"].images[rows])
            loss = F.cross_entropy(logits, data["train"].labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += loss.item() * len(rows)
            correct += (logits.argmax(1) == data["train"].labels[rows]).sum().item()
        schedule.step()
        assert found[epoch]["train_loss"] == pytest.approx(losses / 96, rel=1e-12)
        assert found[epoch]["train_accuracy"] == correct / 96
    assert all(torch.equal(tensor, state.network.state_dict()[name]) for name, tensor in network.state_dict().items())
    assert state.learning_rate == pytest.approx(0.01 * 0.95**3) and state.epoch == 3


def test_training_lowers_the_loss(data):
    found = train(state_of(), data, 60)
    assert found[-1]["train_loss"] < 0.8 * found[0]["train_loss"]


def test_the_learning_rate_falls_to_its_minimum(data):
    state = state_of()
    train(state, data, 5, TrainingSettings(batch_size=32, learning_rate=0.1, decay=0.1, minimum_learning_rate=0.005))
    assert state.learning_rate == pytest.approx(0.001)  # 0.01 was above the minimum, 0.001 no more


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 65, 96])
def test_batches_hold_each_image_once(data, count):
    """A left-over image joins the last batch: batch norm cannot normalise one alone."""
    state = state_of("bn")
    few = Samples(data["train"].images[:count], data["train"].labels[:count])
    sizes = []
    state.network.register_forward_hook(lambda _m, arguments, _o: sizes.append(len(arguments[0])))
    train_epoch(state, few, order(0, count), SETTINGS)
    assert sum(sizes) == count and max(sizes) <= 33 and (min(sizes) > 1 or count == 1)


def test_many_batches_are_gathered_in_parts():
    images = torch.arange(1000, dtype=torch.float32).view(-1, 1, 1, 1).expand(-1, 1, 8, 8).contiguous()
    few = Samples(images, torch.zeros(1000, dtype=torch.int64))
    state, seen = state_of(), []
    state.network.register_forward_pre_hook(lambda _m, arguments: seen.extend(arguments[0][:, 0, 0, 0].tolist()))
    train_epoch(state, few, order(7, 1000), TrainingSettings(batch_size=7))
    assert seen == order(7, 1000).tolist()


def test_evaluation_changes_nothing_and_gives_the_mean_log_loss(data):
    state = state_of("bn")
    train(state, data, 1)
    before = pack(state)
    found = evaluate(state.network, data)
    assert pack(state) == before and state.network.training
    network = copy.deepcopy(state.network).train(False)
    for split in ("validation", "test"):
        logits = network(data[split].images).detach()
        assert found[f"{split}_loss"] == pytest.approx(F.cross_entropy(logits, data[split].labels).item(), rel=1e-5)
        assert found[f"{split}_accuracy"] == (logits.argmax(1) == data[split].labels).double().mean().item()


def test_empty_splits_are_left_out():
    dataset = pictures()
    empty = type(dataset)(
        **{**vars(dataset), "validation_images": dataset.validation_images[:0], "validation_labels": np.zeros(0, int)}
    )
    assert set(evaluate(state_of().network, samples(empty, "cpu"))) == {"test_loss", "test_accuracy"}


@pytest.mark.parametrize("name", ["bn", *NAMES])
def test_a_state_comes_back_from_its_bytes(name):
    state = state_of(name)
    random = np.random.default_rng(0)
    images = torch.from_numpy(random.random((40, *state.network.architecture.input), dtype=np.float32))
    data = {"train": Samples(images, torch.from_numpy(random.integers(0, 10, 40)))}
    train_epoch(state, data["train"], order(0, 40), SETTINGS)
    again = unpack(pack(state), state.network.architecture)
    assert same(state, again)
    assert (again.learning_rate, again.epoch) == (state.learning_rate, 1)
    for trained in (state, again):
        train_epoch(trained, data["train"], order(1, 40), SETTINGS)
    assert same(state, again)


def test_an_unpacked_state_shares_no_memory(data):
    state = state_of()
    train(state, data, 1)
    packed = pack(state)
    one, other = (unpack(packed, state.network.architecture) for _ in range(2))
    train(one, data, 2)
    assert pack(other) == packed == pack(state)


def test_bytes_of_another_architecture_or_length_are_refused():
    state = state_of()
    with pytest.raises(ValueError, match="another architecture"):
        unpack(pack(state), state.network.architecture.deepened(0))
    with pytest.raises(ValueError, match=r"bytes|buffer"):
        unpack(pack(state)[:-4], state.network.architecture)
    with pytest.raises(ValueError, match="bytes"):
        unpack(pack(state) + b"\0", state.network.architecture)


@pytest.mark.parametrize("name", ["tiny8", "bn"])
@pytest.mark.parametrize(("kind", "block"), [("deepen", 0), ("deepen", 1), ("widen", 0)])
def test_growth_keeps_the_moments_of_what_survives(data, name, kind, block):
    state = state_of(name)
    train(state, data, 2)
    before = pack(state)
    wide = grow(state, kind, block, GrowthSettings(), data["train"].images, seed=5)
    assert pack(state) == before
    expected = (
        state.network.architecture.widened(0, 2.0) if kind == "widen" else state.network.architecture.deepened(block)
    )
    assert wide.network.architecture == expected
    assert set(wide.moments) == set(state.moments)
    parameters = dict(wide.network.named_parameters())
    for key, found in wide.moments.items():
        assert found.mean.shape == found.square.shape == parameters[key].shape
        assert found.updates == 6
        if kind == "deepen":
            assert torch.equal(found.mean, state.moments[key].mean)
    again = unpack(pack(wide), expected)
    for grown in (wide, again):
        train(grown, data, 2)
    assert same(wide, again)
    new = [key for key in parameters if "insert" in key]
    assert all(wide.moments[key].updates == 6 for key in new) and bool(new) == (kind == "deepen")


def test_widened_moments_are_those_of_the_same_function(data):
    """Training goes on as if nothing had happened, but for rounding: copies of a channel share its gradient."""
    state = state_of()
    train(state, data, 2)
    wide = grow(
        unpack(pack(state), state.network.architecture), "widen", 0, GrowthSettings(), data["train"].images, seed=5
    )
    first = "block0.conv.weight"
    count = state.moments[first].mean.shape[0]
    assert torch.allclose(
        wide.moments[first].mean[count:].abs().amax(), wide.moments[first].mean.abs().amax(), rtol=1.0
    )
    totals = [found.mean.flatten(1).sum().item() for found in (state.moments[first], wide.moments[first])]
    assert totals[0] == pytest.approx(totals[1], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("optimizer", ["keep", "fresh", "fresh_every_decision"])
@pytest.mark.parametrize("lr", ["continue", "restart"])
def test_a_restart_does_what_the_settings_say(data, optimizer, lr):
    state = state_of()
    train(state, data, 2)
    weights = {name: tensor.clone() for name, tensor in state.network.state_dict().items()}
    restart(state, GrowthSettings(optimizer=optimizer, lr_on_growth=lr, noop="reset"), SETTINGS)
    assert bool(state.moments) == (optimizer == "keep")
    assert state.learning_rate == (0.01 if lr == "restart" else pytest.approx(0.01 * 0.95**2))
    assert all(torch.equal(tensor, weights[name]) for name, tensor in state.network.state_dict().items())


def test_the_way_back_takes_weights_and_moments_of_the_original_layers(data):
    small_state = state_of()
    train(small_state, data, 1)
    kept = unpack(pack(small_state), small_state.network.architecture)
    large = grow(small_state, "deepen", 0, GrowthSettings(), data["train"].images, seed=1)
    train(large, data, 2)
    back = shrink_back(large, kept.network)
    assert back.network.architecture == kept.network.architecture and back.epoch == 3
    original = set(kept.network.state_dict())
    for name, tensor in back.network.state_dict().items():
        assert torch.equal(tensor, large.network.state_dict()[name])
        assert torch.equal(back.moments[name].mean, large.moments[name].mean)
    assert set(back.moments) == original


def test_soft_targets_reach_the_loss(data):
    teacher, students = state_of(seed=9), [state_of() for _ in range(3)]
    train(teacher, data, 3)
    before = pack(teacher)
    plain = train(students[0], data, 1)[0]
    none = train(students[1], data, 1, soft=SoftTargets(teacher.network, 0.0, 2.0))[0]
    much = train(students[2], data, 1, soft=SoftTargets(teacher.network, 0.75, 2.0))[0]
    assert same(students[0], students[1]) and plain == none
    assert not same(students[0], students[2]) and much["train_loss"] != plain["train_loss"]
    assert pack(teacher) == before


def test_a_student_of_soft_targets_comes_nearer_to_its_teacher(data):
    teacher = state_of(seed=9)
    train(teacher, data, 20)
    images = data["validation"].images
    gaps = []
    for weight in (0.0, 1.0):
        student = state_of(seed=1)
        train(student, data, 8, soft=SoftTargets(teacher.network, weight, 2.0))
        with torch.no_grad():
            labels = data["validation"].labels
            gaps.append(soft_target_loss(student.network(images), teacher.network(images), labels, 1.0).item())
    assert gaps[1] < gaps[0]


def test_cuda_gives_what_the_processor_gives_within_the_stated_tolerance():
    """docs/notebook/performance.md: losses of a network within 1e-4, after two epochs of training within 1 %."""
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    found = {}
    for device in ("cpu", "cuda"):
        prepare_torch(device)
        data, state = samples(pictures(), device), state_of()
        state = TrainState(state.network.to(device), SETTINGS.learning_rate)
        found[device] = [evaluate(state.network, data), *train(state, data, 2), evaluate(state.network, data)]
    for number, (one, other) in enumerate(zip(found["cpu"], found["cuda"], strict=True)):
        losses = {name: value for name, value in one.items() if "loss" in name}
        assert losses
        assert {name: other[name] for name in losses} == pytest.approx(losses, rel=1e-2 if number else 1e-4)
