from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import (
    load_module,
    module_arrays,
    read_checkpoint,
    write_checkpoint,
)


def test_the_same_values_give_the_same_bytes_whatever_their_order(tmp_path: Path) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.float32(3)
    write_checkpoint(tmp_path / "one.zip", {"kind": "k", "x": 1}, {"a": a, "b": b})
    write_checkpoint(tmp_path / "two.zip", {"x": 1, "kind": "k"}, {"b": b, "a": a})
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_arrays_and_values_come_back_exactly(tmp_path: Path) -> None:
    arrays = {"a/b": np.arange(6).reshape(2, 3), "a/c": np.float64(0.1), "d": np.zeros((0, 2), dtype=np.float32)}
    write_checkpoint(tmp_path / "c.zip", {"kind": "k", "text": "ü", "list": [1, None]}, arrays)
    found = read_checkpoint(tmp_path / "c.zip", "k")
    assert found.meta == {"kind": "k", "text": "ü", "list": [1, None]}
    assert set(found.group("a")) == {"b", "c"}
    for name, array in arrays.items():
        assert found.arrays[name].dtype == np.asarray(array).dtype
        np.testing.assert_array_equal(found.arrays[name], array)


@pytest.mark.parametrize("keep", [0, 10, 100, -30])
def test_a_truncated_file_is_a_users_error(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "c.zip"
    write_checkpoint(path, {"kind": "k"}, {"a": np.arange(100)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"c\.zip.*cannot be read"):
        read_checkpoint(path)


def test_a_flipped_bit_in_an_array_is_found(tmp_path: Path) -> None:
    path = tmp_path / "c.zip"
    write_checkpoint(path, {"kind": "k"}, {"a": np.zeros(1000)})
    data = bytearray(path.read_bytes())
    data[3000] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match="cannot be read"):
        read_checkpoint(path)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("meta.json", '{"kind": "k"}')
        archive.writestr("a.npy", buffer.getvalue())
    with pytest.raises(UserError, match="cannot be read"):
        read_checkpoint(tmp_path / "c.zip")


def test_another_kind_and_a_missing_file_are_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c.zip", {"kind": "one"})
    with pytest.raises(UserError, match="kind 'one'; expected 'two'"):
        read_checkpoint(tmp_path / "c.zip", "two")
    with pytest.raises(UserError, match="no such checkpoint"):
        read_checkpoint(tmp_path / "absent.zip")
    with pytest.raises(UserError) as told:
        read_checkpoint(tmp_path)
    assert str(told.value).startswith(f"{tmp_path}: ") and "policy.zip" in str(told.value)


def test_parameters_of_another_shape_name_or_value_are_refused() -> None:
    module = torch.nn.Linear(3, 2)
    arrays = module_arrays(module)
    with pytest.raises(UserError, match=r"'weight' has shape \(2, 4\); expected \(2, 3\)"):
        load_module(module, {**arrays, "weight": np.zeros((2, 4), np.float32)}, "file")
    with pytest.raises(UserError, match="misses 'bias'"):
        load_module(module, {"weight": arrays["weight"]}, "file")
    with pytest.raises(UserError, match="'more'"):
        load_module(module, {**arrays, "more": np.zeros(1)}, "file")
    with pytest.raises(UserError, match="not finite"):
        load_module(module, {**arrays, "bias": np.array([np.nan, 0], np.float32)}, "file")
