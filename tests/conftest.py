"""Fixtures that all tests share."""

from __future__ import annotations

import functools
import gc
import gettext
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

import data_dependence
from schedlab.config.runtime import instructions

# Before anything numerical is imported: values in tests are those of the workflow, and the same on every processor that
# can be held to its instructions.
instructions.pin()

# argparse looks for translations in the file system at each argument of each command; tests build a thousand parsers.
gettext.find = functools.cache(gettext.find)

# The same examples every time, so that a commit passes or fails whoever tests it; --hypothesis-profile=default looks
# for new ones.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options with which .ci/run tests with the reference data what it has not tested without."""
    data_dependence.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Do what they ask for."""
    data_dependence.configure(config)


# Finished runs, each made once a session: the files whose tests use one of them share a worker of pytest-xdist.
FINISHED_RUNS = {"finished_toy", "finished_smoke"}
# Folders whose tests compile the same kernels, which take longer than the tests: one worker compiles each once.
SHARED_KERNELS = ("studies/hetero/learners", "studies/batch/env")
# Where the longest groups of tests lie, the longest first: they begin first, so that no worker waits for a last one.
LONGEST = ("faults/test_five_studies.py", "faults/test_slurm.py", "workflow", "faults", *SHARED_KERNELS, "docs")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist asks each test for its group
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a worker of pytest-xdist whole files, and one worker all files that share finished runs of the workflow, or
    kernels.

    Files that share something else name a group themselves. The longest groups begin first (the Makefile has
    pytest-xdist keep the order).
    """
    here = Path(__file__).parent
    sharing = {item.path for item in items if FINISHED_RUNS & set(getattr(item, "fixturenames", ()))}

    def group(path: Path) -> str:
        folder = next((place for place in SHARED_KERNELS if path.is_relative_to(here / place)), str(path))
        return "finished runs" if path in sharing else folder

    ranks = {
        path: next((rank for rank, place in enumerate(LONGEST) if path.is_relative_to(here / place)), len(LONGEST))
        for path in {item.path for item in items}
    }
    items.sort(key=lambda item: (ranks[item.path], item.path not in sharing))
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group(item.path)))


def pytest_collection_finish() -> None:
    """Exempt all that the test files have loaded from garbage collection, which would look at it again and again."""
    gc.freeze()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where SCHEDLAB_REQUIRED is set, as in .ci/run, fail what is skipped for want of Slurm, a browser or a mount."""
    report = (yield).get_result()
    if report.skipped and os.environ.get("SCHEDLAB_REQUIRED") and item.get_closest_marker("needs_system"):
        report.outcome, report.longrepr = "failed", f"must not be skipped here: {report.longrepr}"


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of other people's data (never committed); tests that need it are skipped, visibly, where it is
    absent.
    """
    folder = os.environ.get("SCHEDLAB_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the reference data: set SCHEDLAB_DATA to its folder")
    return Path(folder)


@pytest.fixture(scope="session")
def load_program(repository: Path) -> Callable[[str], ModuleType]:
    """Load a program that is no module of the package, by its path in the checkout without `.py`:
    load_program("benchmarks/scale").
    """

    def load(path: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(Path(path).name, repository / f"{path}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
