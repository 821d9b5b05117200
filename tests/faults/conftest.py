"""Checkouts to disturb runs in: the toy study's once for each file of tests, that of the five studies once for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults import Bench, five_study_checkout
from processors import requesting


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The toy study with one seed; the space in its path is on purpose."""
    return Bench(Path(tmp_path_factory.mktemp("faults"), "a bench"))


@pytest.fixture(scope="session")
def five_studies(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The smoke run of the five studies, undisturbed on one core, in an environment that requests AVX-512. Its tests
    share a worker (`pytestmark`).
    """
    made = Bench(tmp_path_factory.mktemp("five_studies"), five_study_checkout, ("--config", "scale=smoke"))
    with requesting("AVX-512"):
        made.reference("all", cores=1)
    return made
