"""Architectures: published counts, where growth puts its layers, and models that do not fit."""

from __future__ import annotations

import itertools

import pytest
from small_models import NAMES, small
from small_models import settings as model

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture

IMAGE = {"channels": 1, "height": 8, "width": 8}
CONV, POOL, HEAD = (
    {"kind": "conv", "out": 4, "kernel": 3},
    {"kind": "global_average_pool"},
    {"kind": "linear", "out": 3},
)


def make(*blocks, head_relu=False, image=IMAGE):
    return architecture(
        validate(ModelSettings, {"name": "mine", "input": image, "blocks": list(blocks), "head_relu": head_relu})
    )


@pytest.mark.parametrize(
    ("name", "parameters"), [("convnet2", 10_602), ("convnet3", 20_778), ("convnet", 19_914), ("tiny8", 754)]
)
def test_parameter_counts(name, parameters):
    assert architecture(model(name)).parameters == parameters


@pytest.mark.parametrize(
    ("name", "head_relu", "added"),
    [
        ("convnet2", True, [9_312, 9_312, 110]),  # published
        ("convnet3", True, [37_056, 9_312, 110]),  # published
        ("convnet2", False, [9_312, 9_312, 32 * 32 + 32]),  # in front of the head
        ("convnet3", False, [37_056, 9_312, 32 * 32 + 32]),
        ("tiny8", False, [584, 584, 72]),
        ("tiny8", True, [584, 584, 72]),
    ],
)
def test_added_parameters(name, head_relu, added):
    base = architecture(model(name, head_relu=head_relu))
    assert [base.deepened(block).parameters - base.parameters for block in range(base.deepenable_blocks)] == added
    for order in itertools.product(range(3), repeat=3):
        grown = base
        for block in order:
            grown = grown.deepened(block)
        assert grown.parameters == base.parameters + sum(added[block] for block in order)
        assert grown.insertions == tuple(order.count(block) for block in range(3))


@pytest.mark.parametrize(
    ("name", "published", "repaired"),
    [
        ("convnet", 4, 4),
        ("large_convnet", 8, 7),
        ("batch_norm_convolution", 2, 2),
        ("feed_forward_net", 1, 0),
        ("feed_forward_net2", 2, 1),
        ("feed_forward_net3", 3, 2),
    ],
)
def test_deepenable_blocks(name, published, repaired):
    assert architecture(model(name, head_relu=True)).deepenable_blocks == published
    assert architecture(model(name)).deepenable_blocks == repaired


def test_head_relu_decides_on_which_side_of_the_head_layers_are_inserted():
    def names(head_relu):
        return [layer.name for layer in architecture(small("convnet2", head_relu)).deepened(2).layers][-5:]

    assert names(True) == [
        "global_average_pool3",
        "head.linear",
        "head.relu",
        "block2.insert1.linear",
        "block2.insert1.relu",
    ]
    assert names(False) == [
        "block1.relu",
        "global_average_pool3",
        "block2.insert1.linear",
        "block2.insert1.relu",
        "head.linear",
    ]


@pytest.mark.parametrize("name", ["tiny8", "convnet2"])
def test_a_later_insertion_stands_directly_behind_its_block(name):
    grown = architecture(model(name)).deepened(0).deepened(1).deepened(0).deepened(0)
    assert [layer.name for layer in grown.layers if layer.kind == "conv"] == [
        "block0.conv",
        "block0.insert3.conv",
        "block0.insert2.conv",
        "block0.insert1.conv",
        "block1.conv",
        "block1.insert1.conv",
    ]
    assert grown.insertions == (3, 1, 0)


def test_equal_insertions_in_any_order_give_equal_architectures_and_keys():
    base = architecture(model("convnet2"))
    one, other = base.deepened(0).deepened(2).deepened(0), base.deepened(2).deepened(0).deepened(0)
    assert one == other and one.key == other.key and hash(one) == hash(other)
    keys = {
        base.key,
        one.key,
        base.deepened(0).key,
        base.deepened(1).key,
        base.deepened(0, bn=False).key,
        base.widened(0, 2).key,
    }
    assert len(keys) == 6


def test_shapes_and_macs_of_tiny8():
    base = architecture(model("tiny8"))
    assert base.shapes == ((8, 6, 6), (8, 6, 6), (8, 3, 3), (8, 1, 1), (8, 1, 1), (8,), (10,))
    assert base.macs == 36 * 8 * 9 + 8 * 8 * 9 + 80
    assert base.deepened(0).macs - base.macs == 36 * 8 * 8 * 9
    assert base.classes == 10


@pytest.mark.parametrize("name", NAMES)
def test_insertion_keeps_every_original_layer_and_shape(name):
    base = architecture(small(name))
    for block in range(base.deepenable_blocks):
        grown = base.deepened(block)
        kept = [(layer, shape) for layer, shape in zip(grown.layers, grown.shapes, strict=True) if not layer.inserted]
        assert kept == list(zip(base.layers, base.shapes, strict=True))
        assert grown.deepenable_blocks == base.deepenable_blocks


def test_widening_reaches_the_next_weights_through_batch_norm_pool_and_flatten():
    base = make({**CONV, "batch_norm": True}, {"kind": "avg_pool", "kernel": 2}, {"kind": "flatten"}, HEAD)
    wide = base.widened(0, 1.5)
    assert [(layer.inputs, layer.outputs) for layer in wide.layers] == [
        (1, 6),
        (6, 6),
        (6, 6),
        (6, 6),
        (6, 54),
        (54, 3),
    ]
    assert wide.shapes[-2:] == ((54,), (3,))


@pytest.mark.parametrize(
    ("name", "block", "factor", "text"),
    [
        ("tiny8", 2, 2.0, "insertion point"),
        ("feed_forward_net", 0, 2.0, "the head"),
        ("tiny8", 0, 1.01, "1.01"),
    ],
)
def test_widening_that_is_impossible(name, block, factor, text):
    with pytest.raises(UserError, match=text):
        architecture(small(name, head_relu=name != "tiny8")).widened(block, factor)


@pytest.mark.parametrize("block", [-1, 3])
def test_an_unknown_block_is_named_with_the_range(block):
    with pytest.raises(UserError, match=rf"{block}.*0 to 2"):
        architecture(model("tiny8")).deepened(block)


def test_a_model_without_deepenable_block_says_so():
    with pytest.raises(
        UserError,
        match="model/feed_forward_net",
    ):
        architecture(model("feed_forward_net")).deepened(0)


@pytest.mark.parametrize(
    ("blocks", "position", "text"),
    [
        ([{**CONV, "kernel": 9}, POOL, HEAD], 0, "kernel 9 does not fit the image .*at most 8"),
        ([CONV, {"kind": "avg_pool", "kernel": 4}, CONV, POOL, HEAD], 2, "kernel 3 does not fit the image"),
        ([{**CONV, "kernel": 2}, POOL, HEAD], 0, "kernel 2 is even.*expected an odd kernel; or set deepen: false"),
        (
            [{**CONV, "activation": "tanh"}, POOL, HEAD],
            0,
            "activation tanh.*activation: relu; or set deepen: false",
        ),
        ([{**CONV, "activation": "sigmoid"}, POOL, HEAD], 0, "activation sigmoid is not idempotent"),
        ([{**CONV, "activation": "none"}, POOL, HEAD], 0, "no activation"),
        ([CONV, HEAD], 1, ""),
        ([{"kind": "flatten"}, CONV, HEAD], 1, ""),
        ([CONV, POOL, {"kind": "flatten"}, HEAD], 2, ""),
        ([CONV, POOL], 1, ""),
        ([CONV, {"kind": "insertion_point"}, POOL, HEAD], 1, ""),
        ([{"kind": "flatten"}, {"kind": "insertion_point"}, HEAD], 1, ""),
        ([{"kind": "flatten"}, HEAD, {"kind": "insertion_point"}, HEAD], 2, ""),
        (
            [CONV, POOL, {"kind": "insertion_point"}, {"kind": "insertion_point"}, HEAD],
            3,
            "",
        ),
        ([{"kind": "conv", "out": 4}, POOL, HEAD], 0, "'kernel'"),
        ([CONV, {**POOL, "kernel": 3}, HEAD], 1, "'kernel'"),
    ],
)
def test_a_block_that_does_not_fit_is_named(blocks, position, text):
    with pytest.raises(UserError, match=rf"model/mine: blocks\.{position} \({blocks[position]['kind']}\): .*{text}"):
        make(*blocks)


def test_what_cannot_be_deepened_may_stand_in_a_model_that_does_not_deepen_it():
    fixed = {**CONV, "kernel": 2, "activation": "tanh", "deepen": False}
    built = make(fixed, CONV, POOL, HEAD)
    assert built.deepenable_blocks == 2  # the second convolution, and the features in front of the head
    assert make(CONV, fixed, POOL, HEAD).deepenable_blocks == 1  # tanh features can be negative


def test_published_head_with_another_activation_is_refused():
    with pytest.raises(UserError, match=r"blocks\.2 \(linear\): activation tanh"):
        make(CONV, POOL, {**HEAD, "activation": "tanh"}, head_relu=True)


def test_unknown_keys_and_kinds_are_refused():
    with pytest.raises(UserError, match="'kernel'"):
        make({**CONV, "kernal": 3}, POOL, HEAD)
    with pytest.raises(UserError, match="kind"):
        make({"kind": "lstm"}, HEAD)
