"""Which tests need not run a second time with the reference data: those that passed without it and looked at nothing.

    pytest --note-passed FILE      in a checkout without the data; FILE: a line for each such test
    pytest --leave-out FILE        with the data: all tests but those

A test looked where it, a fixture that it uses or the import of its file asked the environment for SCHEDLAB_DATA, or
where it started a process, which may have asked. Runs of the toy study alone are the exception, as its configuration
names no data, and the processes of FILES_ALONE. If one test of a file asked, all tests of that file run again, as they
may share what was read.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
VARIABLE = "SCHEDLAB_DATA"
TOY_ALONE = {"toy", "fresh_toy", "finished_toy"}  # fixtures whose processes read the toy study and nothing else
# files, below tests/, whose processes read no scenario and no trace
FILES_ALONE = {
    *("test_start_up.py", "test_parallel_workers.py", "test_data_dependence.py", "test_required_tests.py"),
    *("config/test_compiled.py", "config/test_run_lock.py"),
    *("figures/test_drawing.py", "learning/test_adam.py", "batsim/test_real_batsim.py"),
    *("studies/cloud/live/test_cloud_live_process.py", "studies/cloud/live/test_cloud_live.py"),
}
PROCESSES = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system")
ASKED, STARTED = "asked for the data", "started a process"


class _Watch:
    """Counts how often this process asked for the data and how often it started another."""

    def __init__(self) -> None:
        self.seen = {ASKED: 0, STARTED: 0}
        watch, usual = self.seen, type(os.environ)

        class Watched(usual):  # type: ignore[misc, valid-type]
            def __getitem__(self, key: str) -> str:
                watch[ASKED] += key == VARIABLE
                return super().__getitem__(key)

        os.environ.__class__ = Watched
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _arguments: tuple) -> None:
        self.seen[STARTED] += event in PROCESSES

    def since(self, before: dict[str, int]) -> set[str]:
        return {what for what, count in self.seen.items() if count > before[what]}


class NotePassed:
    """Writes the tests that need not run again to a file."""

    def __init__(self, file: Path) -> None:
        self.file, self.watch = file, _Watch()
        self.of_files: dict[Path, set[str]] = {}
        self.of_fixtures: dict[str, set[str]] = {}
        self.before: dict[str, int] = {}
        self.outcomes: dict[str, list[str]] = {}
        self.looked: dict[str, set[str]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        before = dict(self.watch.seen)
        yield
        if isinstance(collector, pytest.Module):
            self.of_files[collector.path] = self.watch.since(before)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Iterator[None]:
        before = dict(self.watch.seen)
        yield
        if fixturedef.argname not in TOY_ALONE:
            self.of_fixtures.setdefault(fixturedef.argname, set()).update(self.watch.since(before))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
        if call.when == "setup":
            self.before = self.before or dict(self.watch.seen)
        report = (yield).get_result()
        if call.when == "teardown":
            names = set(getattr(item, "fixturenames", ()))
            alone = names & TOY_ALONE or any(item.path == HERE / name for name in FILES_ALONE)
            looked = self.watch.since(self.before) - ({STARTED} if alone else set())
            looked |= self.of_files.get(item.path, set()).union(*(self.of_fixtures.get(name, ()) for name in names))
            report.user_properties += [("looked", what) for what in sorted(looked)]

    def pytest_runtest_logstart(self) -> None:
        self.before = dict(self.watch.seen)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = without_group(report.nodeid)
        self.outcomes.setdefault(name, []).append(report.outcome)
        self.looked.setdefault(name, set()).update(v for k, v in report.user_properties if k == "looked")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return
        asking = {test.partition("::")[0] for test, what in self.looked.items() if ASKED in what}
        passed = sorted(
            test
            for test, outcomes in self.outcomes.items()
            if set(outcomes) == {"passed"} and not self.looked[test] and test.partition("::")[0] not in asking
        )
        self.file.write_text("\n".join([*passed, ""]))


class LeaveOut:
    """Leaves out the tests that a file names."""

    def __init__(self, file: Path) -> None:
        self.names = set(file.read_text().splitlines())

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if without_group(item.nodeid) in self.names]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def without_group(name: str) -> str:
    """Return the name of a test without the group that pytest-xdist appends."""
    return re.sub(r"@[^\]@]*$", "", name)


def add_options(parser: pytest.Parser) -> None:
    """Add both options."""
    parser.addoption("--note-passed", type=Path, metavar="FILE", help="write the tests that no data can change")
    parser.addoption("--leave-out", type=Path, metavar="FILE", help="leave out the tests that a file names")


def configure(config: pytest.Config) -> None:
    """Do what the options ask for."""
    for option, plugin in (("note_passed", NotePassed), ("leave_out", LeaveOut)):
        if file := config.getoption(option):
            config.pluginmanager.register(plugin(file.absolute()))
