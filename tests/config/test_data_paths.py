"""Where data is looked for, and where it should be put."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.config.data_paths import find_data


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """A working directory beside the shared folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCHEDLAB_DATA", str(tmp_path / "shared"))


def put(name: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_shared_folder_comes_before_resources_and_those_before_the_working_directory(tmp_path):
    assert find_data("traces/a.swf") == Path("resources/data/traces/a.swf")  # where it should be put
    own = put("traces/a.swf")
    assert find_data("traces/a.swf") == own
    local = put("resources/data/traces/a.swf")
    assert find_data("traces/a.swf") == local
    put("shared/traces/a.swf")
    assert find_data("traces/a.swf") == tmp_path / "shared/traces/a.swf"


def test_what_is_shipped_is_found_from_any_working_directory(repository):
    name = "resources/workloads/learning.json"
    assert find_data(name) == repository / name
    assert find_data(put(name)) == Path(name)  # of the working directory first


def test_an_absolute_path_stays(tmp_path):
    assert find_data(tmp_path / "nowhere") == tmp_path / "nowhere"
