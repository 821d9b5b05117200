"""`schedlab adaptation predict` and `weights`: a run's network read, judged and carried between layouts."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import h5py
import numpy as np
import pytest

from schedlab.studies.adaptation.network.files import (
    LAYOUTS,
    SavedNetwork,
    architecture_of,
    read_network,
    write_network,
)


@pytest.mark.parametrize("ending", ["npz", "h5"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_trained_network_predicts_what_its_run_reported(run, tmp_path: Path, ending: str, layout: str) -> None:
    weights = tmp_path / f"trained.{ending}"
    _, trained, _ = run("run", "--scenario", "tiny", "--sequence", "12", "--weights", weights, "--layout", layout)
    last = trained["epochs"][-1]
    for split in ("test", "validation"):
        status, told, _ = run("predict", weights, "--split", split)
        assert status == 0
        assert (told["accuracy"], told["log_loss"]) == (last[f"{split}_accuracy"], last[f"{split}_loss"])
    assert told["insertions"] == [0, 1, 1]
    assert told["parameters"] == trained["outcome"]["parameters"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_weights_that_are_no_numbers_are_refused_by_name(run, tmp_path: Path, ending: str, value: float) -> None:
    good, bad = tmp_path / f"good.{ending}", tmp_path / f"bad.{ending}"
    run("run", "--scenario", "tiny", "--sequence", "33", "--weights", good)
    network = read_network(good)
    name = next(iter(network.state))
    spoilt = network.state[name].copy()
    spoilt.flat[0] = value
    write_network(
        bad, SavedNetwork(network.architecture, {**network.state, name: spoilt}, network.layout, network.about)
    )
    for arguments in (("predict", bad), ("weights", "convert", bad, tmp_path / "out.npz")):
        status, document, log = run(*arguments)
        assert (status, document) == (2, {})
        assert log.count("error: ") == 1 and f"{bad}: {name} holds values that are no finite numbers" in log
    assert not (tmp_path / "out.npz").exists()


def test_the_table_of_predictions(run, tmp_path: Path) -> None:
    weights, output = tmp_path / "trained.npz", tmp_path / "predictions.csv"
    run("run", "--scenario", "tiny", "--sequence", "33", "--weights", weights)
    _, told, _ = run("predict", weights, "--output", output)
    rows = list(csv.DictReader(output.open()))
    counts = told["counts"]
    assert counts["images"] == len(rows) == 30
    assert (
        counts["correct"] == sum(row["label"] == row["prediction"] for row in rows) == sum(counts["correct_by_label"])
    )
    assert counts["labels"] == [sum(row["label"] == str(label) for row in rows) for label in range(10)]
    assert counts["predictions"] == [sum(row["prediction"] == str(label) for row in rows) for label in range(10)]
    chances = np.array([[float(row[f"probability_{label}"]) for label in range(10)] for row in rows])
    assert np.allclose(chances.sum(1), 1)
    assert chances.argmax(1).tolist() == [int(row["prediction"]) for row in rows]
    loss = -np.log([chances[i, int(row["label"])] for i, row in enumerate(rows)]).mean()
    assert math.isclose(loss, told["log_loss"], rel_tol=1e-12)


def test_predict_with_a_named_data_set(run, tmp_path: Path) -> None:
    weights = tmp_path / "trained.npz"
    run("run", "--scenario", "tiny", "--sequence", "33", "--weights", weights)
    _, told, _ = run("predict", weights, "--data", "digits", "--split", "train")
    assert told["counts"]["images"] == 1200
    for arguments, text in (
        (("predict", weights, "--data", "digts"), "did you mean 'digits'"),
        (("predict", "none.npz"), "no such file"),
        (("predict", weights, "--data", "cifar10"), "lacks"),
        (("predict", weights, "--device", "abacus"), "no device"),
    ):
        status, document, log = run(*arguments)
        assert (status, document) == (2, {})
        assert text in log
    weights.write_bytes(weights.read_bytes()[:-40])
    status, _, log = run("predict", weights)
    assert status == 2
    assert "cannot be read" in log


def test_weights_there_and_back(run, tmp_path: Path) -> None:
    first, there, back = tmp_path / "first.npz", tmp_path / "there.h5", tmp_path / "back.npz"
    run("run", "--scenario", "tiny", "--sequence", "02", "--weights", first)
    status, document, _ = run("weights", "convert", first, there)
    assert (status, document["from"], document["to"]) == (0, "torch", "tensorflow")
    with h5py.File(there) as file:
        assert file["block0.insert1.conv/block0.insert1.conv/kernel:0"].shape == (3, 3, 8, 8)
        assert "schedlab" not in file.attrs["layer_names"].astype(str)
    assert run("weights", "convert", there, back)[1]["to"] == "torch"
    assert back.read_bytes() == first.read_bytes()
    assert run("weights", "convert", first, tmp_path / "same.h5", "--layout", "torch")[1]["to"] == "torch"


def test_a_file_of_another_program_needs_its_model_named(run, tmp_path: Path) -> None:
    first, bare, back = tmp_path / "first.npz", tmp_path / "bare.npz", tmp_path / "back.npz"
    run("run", "--scenario", "tiny", "--sequence", "02", "--weights", first, "--layout", "tensorflow")
    with np.load(first) as file:
        np.savez(bare, **{name: file[name] for name in file.files if name != "schedlab.json"})
    status, _, log = run("weights", "convert", bare, back)
    assert status == 2
    assert "--model" in log
    assert run("weights", "convert", bare, back, "--model", "tiny8", "--deepen", "0,2")[0] == 0
    assert all((read_network(back).state[name] == array).all() for name, array in read_network(first).state.items())
    for options, told in (
        (("--model", "tiny8"), "unknown: block0.insert1"),
        (("--model", "tiny9"), "did you mean 'tiny8'"),
        (("--model", "tiny8", "--deepen", "x"), "--deepen"),
        (("--model", "tiny8", "--deepen", "7"), "no deepenable block 7"),
        (("--deepen", "0"), "--model"),
    ):
        status, _, log = run("weights", "convert", bare, back, *options)
        assert status == 2
        assert told in log


def test_a_damaged_description_of_the_architecture(tmp_path: Path, run) -> None:
    weights = tmp_path / "w.npz"
    run("run", "--scenario", "tiny", "--sequence", "33", "--weights", weights)
    network = read_network(weights)
    values = json.loads(network.architecture.key)
    assert architecture_of(values, "w") == network.architecture
    for change in (
        {"layers": []},
        {"layers": None},
        {"input": [1, 2, 2]},
        {"input": [3, 8, 8]},
        {"model": 3},
        {"layers": [*values["layers"][::-1]]},
        {"layers": [{**values["layers"][0], "kind": "os.system"}, *values["layers"][1:]]},
        {"layers": [{**values["layers"][0], "stride": 0}, *values["layers"][1:]]},
    ):
        with pytest.raises(Exception, match="description of the architecture is damaged"):
            architecture_of({**values, **change}, "w")
    write_network(weights, SavedNetwork(network.architecture, network.state))
    status, _, log = run("predict", weights)
    assert status == 2
    assert "--data" in log
