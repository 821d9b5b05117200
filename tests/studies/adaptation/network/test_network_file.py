"""Trained networks as files: every model, grown, in both layouts and kinds of file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_models import NAMES, small

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.network import files as weights
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.network.files import LAYOUTS, SavedNetwork, deepened, read_network, write_network
from schedlab.studies.adaptation.network.models import build


def network(name: str, layout: str = "torch") -> SavedNetwork:
    """A small network with a layer inserted behind every block, and two behind the first."""
    start = architecture(small(name))
    grown = deepened(start, [*range(start.deepenable_blocks), 0]) if start.deepenable_blocks else start
    state = {key: tensor.detach().numpy() for key, tensor in build(grown, 1).state_dict().items()}
    return SavedNetwork(grown, state, layout, {"data": {"name": "digits"}, "note": "größer"})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", ["npz", "h5"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back_gives_the_same_bits(tmp_path: Path, name: str, ending: str, layout: str) -> None:
    saved, path = network(name, layout), tmp_path / f"network.{ending}"
    write_network(path, saved)
    first = path.read_bytes()
    found = read_network(path)
    assert (found.architecture, found.layout, found.about) == (saved.architecture, layout, saved.about)
    assert found.state.keys() == saved.state.keys()
    assert all(found.state[key].tobytes() == array.tobytes() for key, array in saved.state.items())
    write_network(path, found)
    assert path.read_bytes() == first


def test_a_widened_network_is_kept_too(tmp_path: Path) -> None:
    grown = architecture(small("convnet2")).widened(0, 2.0)
    state = {key: tensor.detach().numpy() for key, tensor in build(grown, 1).state_dict().items()}
    write_network(tmp_path / "wide.npz", SavedNetwork(grown, state))
    assert read_network(tmp_path / "wide.npz").architecture == grown


def test_what_a_file_tells_of_itself_does_not_disturb_other_readers(tmp_path: Path) -> None:
    saved = network("convnet2", "tensorflow")
    for ending in ("npz", "h5"):
        write_network(tmp_path / f"network.{ending}", saved)
        arrays = weights.load(tmp_path / f"network.{ending}")
        assert arrays.keys() == weights.to_tensorflow(saved.architecture, saved.state).keys()
        weights.save(tmp_path / f"bare.{ending}", arrays)
        assert weights.load_with_meta(tmp_path / f"bare.{ending}")[1] is None


@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_another_network_than_the_one_named(tmp_path: Path, ending: str) -> None:
    saved, path = network("convnet2"), tmp_path / f"network.{ending}"
    write_network(path, saved)
    assert read_network(path, saved.architecture).architecture == saved.architecture
    with pytest.raises(UserError, match="another network"):
        read_network(path, architecture(small("convnet3")))


def test_tensors_that_are_missing_or_of_another_shape(tmp_path: Path) -> None:
    saved = network("tiny8")
    (name, array), *rest = saved.state.items()
    for wrong in (dict(rest), {name: array[:1], **dict(rest)}, {**saved.state, "more": np.zeros(3, np.float32)}):
        with pytest.raises(UserError):
            write_network(tmp_path / "wrong.npz", SavedNetwork(saved.architecture, wrong))
    assert not (tmp_path / "wrong.npz").exists()
    write_network(tmp_path / "right.npz", saved)
    arrays, meta = weights.load_with_meta(tmp_path / "right.npz")
    for change in ({"version": 2}, {"layout": "keras"}, {"architecture": {}}):
        weights.save(tmp_path / "changed.npz", arrays, {**meta, **change})
        with pytest.raises(UserError):
            read_network(tmp_path / "changed.npz")
