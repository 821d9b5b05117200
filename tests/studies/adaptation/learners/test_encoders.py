from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_tables import MODELS, model

from schedlab.cli.main import main
from schedlab.config import data_paths
from schedlab.config.errors import UserError
from schedlab.studies.adaptation.commands.listing import architectures_of
from schedlab.studies.adaptation.decisions import Decision, GrowthAction, architectures
from schedlab.studies.adaptation.learners.encoders import (
    LAYER_FEATURES,
    SHIPPED_VOCABULARY,
    Encoding,
    Vocabulary,
    describe,
    layer_features,
    read_vocabulary,
    time_code,
    time_columns,
)
from schedlab.studies.adaptation.problem import deepening_actions
from schedlab.studies.adaptation.simulator.table import DecisionTree

ALL_MODELS = sorted(path.stem for path in MODELS.glob("*.yaml"))


@pytest.mark.parametrize("name", ALL_MODELS)
@pytest.mark.parametrize("head_relu", [False, True])
def test_the_shipped_vocabulary_knows_every_layer_that_deepening_reaches(name: str, head_relu: bool) -> None:
    known = read_vocabulary()
    original = model(name, head_relu)
    if not original.deepenable_blocks:
        assert (known.ids(original) > 0).all()
        return
    for bn in (None, False):
        actions = deepening_actions(original, bn)
        for reached in architectures(DecisionTree(len(actions) + 1, 4), original, actions):
            assert (known.ids(reached) > 0).all()


def test_the_shipped_vocabulary_is_what_the_command_makes_of_the_models() -> None:
    made = Vocabulary(()).extended(architectures_of([str(path) for path in MODELS.glob("*.yaml")]))
    assert made == read_vocabulary()


def test_words_are_appended_and_old_ones_keep_id_and_embedding() -> None:
    old = Vocabulary(()).extended([model("convnet2")])
    new = old.extended([model("convnet3"), model("convnet2")])
    assert new.layers[: len(old.layers)] == old.layers and len(new.layers) > len(old.layers)
    assert new.ids(model("convnet2")).tolist() == old.ids(model("convnet2")).tolist()
    np.testing.assert_array_equal(new.embedding(16)[: len(old.layers) + 1], old.embedding(16))


def test_different_layers_have_different_words_and_unknown_ones_the_reserved_id() -> None:
    known = Vocabulary(()).extended([model("convnet2", head_relu=True)])
    ids = known.ids(model("convnet2", head_relu=True))
    words = [describe(layer) for layer in model("convnet2", head_relu=True).layers]
    assert len(set(ids.tolist())) == len(set(words))
    strange = replace(model("convnet2").layers[0], kernel=7)
    assert known.ids(replace(model("convnet2"), layers=(strange,))).tolist() == [0]


def test_an_embedding_is_standard_normal() -> None:
    numbers = Vocabulary(tuple(f"layer {i}" for i in range(500))).embedding(16)
    assert numbers.mean() == pytest.approx(0, abs=0.05) and numbers.std() == pytest.approx(1, abs=0.05)
    assert len(np.unique(numbers)) == numbers.size


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"version": 1, "seed": 1, "layers": ["a", "a"]}', '{"version": 2, "seed": 1, "layers": []}'),
        *("[" * 100_000, f'{{"version": 1, "seed": {"1" * 5000}, "layers": []}}'),
    ],
    ids=["cut", "list", "twice", "version", "nested", "digits"],
)
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(UserError, match=r"v\.json"):
        read_vocabulary(tmp_path / "v.json")
    with pytest.raises(UserError, match="json"):
        read_vocabulary(tmp_path / "absent.json")


def test_a_vocabulary_comes_back_from_its_file(tmp_path: Path) -> None:
    known = Vocabulary(("b", "a"), seed=7)
    known.write(tmp_path / "v.json")
    assert read_vocabulary(tmp_path / "v.json") == known


def test_the_shipped_vocabulary_is_the_checkout_s_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    Vocabulary(("mine",)).write(elsewhere / SHIPPED_VOCABULARY)
    Vocabulary(("own",)).write(elsewhere / "resources/vocabularies/own.json")
    here = read_vocabulary()
    monkeypatch.chdir(elsewhere)
    assert read_vocabulary() == here
    assert read_vocabulary("resources/vocabularies/own.json").layers == ("own",)


def test_extending_from_another_directory_appends_to_the_shipped_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    shipped, elsewhere = tmp_path / "checkout" / SHIPPED_VOCABULARY, tmp_path / "elsewhere"
    Vocabulary(("first", "second")).write(shipped)
    elsewhere.mkdir()
    monkeypatch.setattr(data_paths, "CHECKOUT", tmp_path / "checkout")
    monkeypatch.chdir(elsewhere)
    assert main(["adaptation", "vocab", "--extend", str(MODELS / "tiny8.yaml")]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == ["1 first", "2 second"]
    assert read_vocabulary(shipped).layers[:2] == ("first", "second") and len(read_vocabulary(shipped).layers) > 2
    assert list(elsewhere.iterdir()) == []
    shipped.write_text("{")
    assert main(["adaptation", "vocab", "--extend", str(MODELS / "tiny8.yaml")]) == 2
    assert str(shipped) in capsys.readouterr().err
    assert shipped.read_text() == "{"


def test_a_model_that_cannot_be_read_is_named_by_its_file(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "mine.yaml").write_text((MODELS / "tiny8.yaml").read_text().replace("channels", "chanels"))
    assert (
        main(["adaptation", "vocab", "--file", str(tmp_path / "v.json"), "--extend", str(tmp_path / "mine.yaml")]) == 2
    )
    assert f"{tmp_path / 'mine.yaml'}: input.chanels" in capsys.readouterr().err


def test_features_tell_kind_channels_kernel_padding_and_position() -> None:
    original = model("convnet2")
    rows = layer_features(original)
    assert rows.shape == (len(original.layers), LAYER_FEATURES)
    assert rows[0].tolist()[:10] == [1] + [0] * 9
    np.testing.assert_allclose(rows[0, 10:], [np.log2(3) / 8, 5 / 8, 3 / 4, 1 / 4, 0, 0], rtol=1e-6)
    inserted = layer_features(original.deepened(0))[3]
    np.testing.assert_allclose(
        inserted[10:], [5 / 8, 5 / 8, 3 / 4, 1 / 4, 1 / 4, 3 / (len(original.layers) + 2)], rtol=1e-6
    )


def test_the_published_time_code_is_five_sines_and_the_default_tells_start_from_end() -> None:
    code = time_code(np.array([0.0, 100.0, 330.0]), np.array([400.0] * 3), "sine", 8)
    np.testing.assert_allclose(code[2], [5 * np.sin(2 * np.pi * i * 330 / 400) for i in range(1, 9)], atol=1e-5)
    np.testing.assert_allclose(code[1, :4], [5, 0, -5, 0], atol=1e-5)
    ends = np.array([0.0, 400.0]), np.array([400.0, 400.0])
    np.testing.assert_allclose(*time_code(*ends, "sine", 8), atol=1e-5)
    first, last = time_code(*ends, "sine_cosine", 4)
    assert len(first) == time_columns("sine_cosine", 4) == 9
    assert np.abs(first - last).max() == 1


def test_equal_architectures_are_read_once() -> None:
    original = model("convnet2", head_relu=True)
    actions = deepening_actions(original)
    tree = DecisionTree(4, 3)
    decisions = [Decision(a, 100.0, 400.0, actions) for a in architectures(tree, original, actions)]
    arrays = Encoding("sine", 8, False, None)(decisions)
    assert len(arrays.which) == 21 and len(arrays.lengths) == 10  # insertions (n0, n1, n2) with a sum of at most two
    for which, decision in zip(arrays.which, decisions, strict=True):
        assert arrays.lengths[which] == len(decision.architecture.layers)
        counts = arrays.members[which].sum(1)
        assert counts.tolist() == [sum(layer.block == b for layer in decision.architecture.layers) for b in range(3)]
        assert arrays.places[which, :3, 0].tolist() == list(decision.architecture.insertions)


def test_scenarios_with_different_numbers_of_actions_are_not_one_batch() -> None:
    original = model("convnet2")
    one, two = (Decision(original, 1.0, 2.0, tuple(GrowthAction(b) for b in range(n))) for n in (1, 2))
    with pytest.raises(UserError, match="growth actions are mixed"):
        Encoding("sine", 8, False, None)([one, two])


def test_a_slope_that_the_table_lacks_is_told() -> None:
    decision = Decision(model("convnet2"), 1.0, 2.0, (GrowthAction(0),))
    with pytest.raises(UserError, match=r"learner\.slope"):
        Encoding("sine", 8, True, None)([decision])
    arrays = Encoding("sine", 8, True, None)([replace(decision, slope=0.02)])
    assert arrays.clock.shape == (1, 9) and arrays.clock[0, 8] == pytest.approx(2)
