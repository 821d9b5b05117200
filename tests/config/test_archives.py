"""Archives that are damaged, lie about their size, or hold what is no array: one sentence each, and no memory."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from schedlab.config import readers as archives
from schedlab.config.errors import UserError
from schedlab.config.readers import read_array, read_members


def archive(path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> Path:
    """Write an archive with these members, also with one name twice."""
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "w", compression) as made:
        for name, content in members:
            made.writestr(name, content)
    return path


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_inside_a_packed_member_is_a_users_error(tmp_path: Path, compression: int) -> None:
    path = archive(tmp_path / "a.zip", [("a.txt", bytes(range(256)) * 20)], compression)
    data = bytearray(path.read_bytes())
    data[45:75] = bytes(255 - value for value in data[45:75])
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"a\.zip: cannot be read: .*expected an archive; make it again"):
        read_members(path, "an archive", "make it again")


def test_an_archive_of_a_later_version_is_a_users_error(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", [("a.txt", b"a")])
    data = path.read_bytes()
    at = data.index(b"PK\x01\x02") + 6  # version needed, in the central directory
    path.write_bytes(data[:at] + b"\x7d" + data[at + 1 :])
    with pytest.raises(UserError, match=r"zip file version 12\.5"):
        read_members(path, "an archive", "")


def test_a_member_that_unpacks_to_more_than_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "a.zip", [("a.txt", b"0" * 100_000)], zipfile.ZIP_DEFLATED)
    assert read_members(path, "an archive", "") == {"a.txt": b"0" * 100_000}
    monkeypatch.setattr(archives, "MAX_BYTES", 50_000)
    with pytest.raises(UserError, match="it unpacks to 100000 bytes"):
        read_members(path, "an archive", "")
    assert read_members(path, "an archive", "", lambda name: name == "b.txt") == {}


def test_a_name_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", [("a.txt", b"1"), ("a.txt", b"2")])
    with pytest.raises(UserError, match=r"it holds 'a\.txt' twice"):
        read_members(path, "an archive", "")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "((((",
    ],
)
def test_a_header_that_is_no_header_is_a_value_error(header: str) -> None:
    text = f"{header:<117}\n".encode()
    with pytest.raises(ValueError, match="no array"):
        read_array(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)


def test_arrays_come_back_and_pickles_do_not() -> None:
    for values, well in ((np.arange(6).reshape(2, 3), True), (np.array([{}], dtype=object), False)):
        made = io.BytesIO()
        np.lib.format.write_array(made, values)
        if well:
            assert (read_array(made.getvalue()) == values).all()
        else:
            with pytest.raises(ValueError, match="no array"):
                read_array(made.getvalue())
