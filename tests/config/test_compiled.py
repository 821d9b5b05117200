"""Compiled kernels: kept in files, and compiled again after an edit of any module that they depend on."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import schedlab
from schedlab.config.runtime.compiled import sources_hash

PACKAGE = Path(schedlab.__file__).parent

CONSTANT = "STEP = {step}\n"
INNER = """
from schedlab.config.runtime.compiled import compiled
from schedlab.probe.constant import STEP


@compiled
def inner(x):
    return x + STEP
"""
OUTER = """
from schedlab.config.runtime.compiled import compiled
from schedlab.probe.inner import inner


@compiled(error_model="numpy")
def outer(x):
    return 2 * inner(x)
"""
PROGRAM = "from schedlab.probe.outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path):
    """A schedlab of one kernel that calls another, which takes a constant from a third module."""
    folder = tmp_path / "schedlab"
    for part in ("config", "config/runtime", "probe"):
        (folder / part).mkdir(parents=True)
        (folder / part / "__init__.py").touch()
    (folder / "__init__.py").touch()
    for name in ("runtime/compiled", "files", "errors"):
        shutil.copy(PACKAGE / "config" / f"{name}.py", folder / "config" / f"{name}.py")
    for name, text in (("constant", CONSTANT.format(step=1)), ("inner", INNER), ("outer", OUTER)):
        (folder / "probe" / f"{name}.py").write_text(text)
    return folder


def start(package: Path, **variables: str) -> subprocess.Popen:
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(package.parent), **variables}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=package
    )


def ended(process: subprocess.Popen) -> tuple[int, int]:
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    result, hits = output.split()
    return int(result), int(hits)


def call(package: Path, **variables: str) -> tuple[int, int]:
    """Result of the outer kernel in a process of its own, and whether its machine code came from a file."""
    return ended(start(package, **variables))


def test_unchanged_sources_are_not_compiled_again_and_an_edit_at_second_hand_is_seen(package):
    assert call(package) == (4, 0)
    assert call(package) == (4, 1)
    assert list((package / "probe" / "__pycache__").glob("outer.outer-*.nbc"))
    (package / "probe" / "constant.py").write_text(CONSTANT.format(step=7))
    assert call(package) == (16, 0)


def test_checkouts_with_the_same_sources_share_the_folder_of_the_user(package, tmp_path):
    """And nobody waits where no lock can lie."""
    kept = tmp_path / "kept"
    assert call(package, NUMBA_CACHE_DIR=str(kept)) == (4, 0)
    assert list(kept.rglob("*.nbc")) and not list(package.rglob("*.nbc"))
    other = tmp_path / "other" / "schedlab"
    shutil.copytree(package, other)
    assert call(other, NUMBA_CACHE_DIR=str(kept)) == (4, 1)
    (other / "probe" / "constant.py").write_text(CONSTANT.format(step=7))
    assert call(other, NUMBA_CACHE_DIR=str(kept)) == (16, 0)
    for lock in kept.rglob("*.lock"):
        lock.unlink()
        lock.mkdir()
    assert call(package, NUMBA_CACHE_DIR=str(kept)) == (4, 1)


def test_the_hash_is_that_of_the_module_and_what_it_imports():
    kernel = PACKAGE / "studies" / "batch" / "simulator" / "simulate.py"
    assert re.fullmatch(r"[0-9a-f]{64}", sources_hash(kernel))
    assert sources_hash(kernel) == sources_hash(kernel) != sources_hash(kernel.with_name("decision_kernel.py"))


def test_no_kernel_is_compiled_without_it():
    """numba's own cache would go on with old machine code after an edit elsewhere."""
    other = [path for path in PACKAGE.rglob("*.py") if path.name != "compiled.py"]
    assert [path for path in other if re.search(r"\bn?jit\(|import n?jit", path.read_text())] == []


def test_of_processes_that_begin_together_one_compiles(package):
    processes = [start(package) for _ in range(3)]
    assert sorted(ended(process) for process in processes) == [(4, 0), (4, 1), (4, 1)]


def test_plain_python_runs_where_compiling_is_switched_off(package):
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from schedlab.probe.outer import outer; print(outer(1))"],
        env=environment,
        capture_output=True,
    )
    assert (done.stdout.split(), done.returncode) == ([b"4"], 0), done.stderr
