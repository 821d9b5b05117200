"""A small checkout that `schedlab check` knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.cli.main import main
from small_conf import write_conf


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small conf/ and the records that checking it leaves: a copy's check reads what was edited."""
    checkout = tmp_path_factory.mktemp("checked")
    write_conf(checkout)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(checkout)
        assert main(["check"]) == 0
    return checkout
