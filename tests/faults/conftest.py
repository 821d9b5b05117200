"""A checkout to disturb runs in, made once for each file of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults import Bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The toy study with one seed; the space in its path is on purpose."""
    return Bench(Path(tmp_path_factory.mktemp("faults"), "a bench"))
