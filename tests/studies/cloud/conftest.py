"""What all tests of the cloud study share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """As the commands and the jobs run: the optimiser's small matrices are slower on several threads."""
    import scipy.optimize  # noqa: F401  (so that its library is there to be limited)

    with threadpool_limits(1):
        yield
