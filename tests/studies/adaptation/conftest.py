"""Fixtures of the tests of the adaptation study."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from small_figures import study_tables

from schedlab.config.contract import StudyTables
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme


@pytest.fixture
def themed() -> Iterator[None]:
    """The default theme while a test draws."""
    with theme.applied(ThemeSettings()):
        yield


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> StudyTables:
    """All that figures are drawn from."""
    return study_tables(tmp_path_factory.mktemp("figures"))
