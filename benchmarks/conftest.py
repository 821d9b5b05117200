"""What every benchmark uses: a measurement of some rounds after one that is not counted, of CPU time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

QUICK_ROUNDS = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --quick."""
    parser.addoption("--quick", action="store_true", help="smaller sizes and fewer rounds")


@pytest.fixture(scope="session")
def quick(request: pytest.FixtureRequest) -> bool:
    """Whether sizes shall be small."""
    return request.config.getoption("--quick")


@pytest.fixture(scope="session")
def records() -> Path:
    """The workflow's cache of composed files, which spares half a minute where the workflow has run."""
    return Path(".schedlab/records-small.json")


@pytest.fixture
def measure(benchmark, request: pytest.FixtureRequest, quick: bool) -> Callable[..., None]:
    """Time some work that returns how much of `unit` it did; the first line of the benchmark's docstring says what
    that is.

    unit   jobs, steps, ...: a rate is told; s: the time of one
    setup  called before each round, not counted; what it returns is given to the work
    """

    def run(work: Callable[..., int], unit: str, *, rounds: int = 5, setup: Callable[[], object] | None = None) -> None:
        prepared = (lambda: ((setup(),), {})) if setup else None
        count = work(setup()) if setup else work()  # loads compiled code and fills caches
        benchmark.extra_info.update(unit=unit, count=count, what=request.function.__doc__.splitlines()[0].rstrip("."))
        benchmark.pedantic(work, setup=prepared, rounds=min(rounds, QUICK_ROUNDS) if quick else rounds, iterations=1)

    return run
