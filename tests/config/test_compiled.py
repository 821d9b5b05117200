"""Compiled kernels: kept in files, and compiled again after an edit of any module that they depend on."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import schedlab
from schedlab.config.compiled import sources_hash

PACKAGE = Path(schedlab.__file__).parent

CONSTANT = "STEP = {step}\n"
INNER = """
from schedlab.config.compiled import compiled
from schedlab.probe.constant import STEP


@compiled
def inner(x):
    return x + STEP
"""
OUTER = """
from schedlab.config.compiled import compiled
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
    for part in ("config", "probe"):
        (folder / part).mkdir(parents=True)
        (folder / part / "__init__.py").touch()
    (folder / "__init__.py").touch()
    shutil.copy(PACKAGE / "config" / "compiled.py", folder / "config")
    for name, text in (("constant", CONSTANT.format(step=1)), ("inner", INNER), ("outer", OUTER)):
        (folder / "probe" / f"{name}.py").write_text(text)
    return folder


def call(package: Path, **variables: str) -> tuple[int, int]:
    """Result of the outer kernel in a process of its own, and whether its machine code came from a file."""
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(package.parent), **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, cwd=package, check=False)
    assert done.returncode == 0, done.stderr
    result, hits = done.stdout.split()
    return int(result), int(hits)


def test_unchanged_sources_are_not_compiled_again(package):
    assert call(package) == (4, 0)
    assert call(package) == (4, 1)
    assert list((package / "probe" / "__pycache__").glob("outer.outer-*.nbc"))


def test_an_edit_at_second_hand_is_seen(package):
    assert call(package) == (4, 0)
    (package / "probe" / "constant.py").write_text(CONSTANT.format(step=7))
    assert call(package) == (16, 0)


def test_the_folder_of_the_user_is_used(package, tmp_path):
    kept = tmp_path / "kept"
    assert call(package, NUMBA_CACHE_DIR=str(kept)) == (4, 0)
    assert call(package, NUMBA_CACHE_DIR=str(kept)) == (4, 1)
    assert list(kept.rglob("*.nbc")) and not list(package.rglob("*.nbc"))


def test_the_hash_is_that_of_the_module_and_what_it_imports():
    kernel = PACKAGE / "studies" / "batch" / "kernel_episode.py"
    assert re.fullmatch(r"[0-9a-f]{64}", sources_hash(kernel))
    assert sources_hash(kernel) == sources_hash(kernel) != sources_hash(kernel.with_name("kernel_steps.py"))


def test_no_kernel_is_compiled_without_it():
    """numba's own cache would go on with old machine code after an edit elsewhere."""
    other = [path for path in PACKAGE.rglob("*.py") if path.name != "compiled.py"]
    assert [path for path in other if re.search(r"\bn?jit\(|import n?jit", path.read_text())] == []
