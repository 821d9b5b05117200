"""Jobs hold numerical libraries to the same instructions, whatever their environment asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from processors import ASKED
from schedlab.config.runtime import instructions

CPUINFO = "processor\t: 0\nflags\t\t: fpu sse2 {}\n\nprocessor\t: 1\nflags\t\t: fpu sse2 {}\n"
V3 = " ".join(sorted(instructions.NEEDED))


@pytest.fixture
def processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Give this machine another processor: processor("x86_64", flags)."""

    def pretend(machine: str, flags: str) -> None:
        (tmp_path / "cpuinfo").write_text(CPUINFO.format(flags, flags))
        monkeypatch.setattr(instructions, "CPUINFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(instructions.platform, "machine", lambda: machine)
        instructions.pins.cache_clear()

    yield pretend
    monkeypatch.undo()
    instructions.pins.cache_clear()


def test_a_processor_that_has_the_level_is_held_to_it_whatever_was_set(processor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "environ", {"MKL_CBWR": "AVX512", "NPY_DISABLE_CPU_FEATURES": "X86_V3", "HOME": "/h"})
    processor("x86_64", f"{V3} avx512f")
    instructions.begin_job()
    assert os.environ.items() >= instructions.PINS.items()
    assert os.environ["OMP_NUM_THREADS"] == "1" and os.environ["HOME"] == "/h"
    assert not os.environ.keys() & set(instructions.CLEARED)
    assert instructions.pinned().startswith(instructions.LEVEL)


@pytest.mark.parametrize(("machine", "flags"), [("x86_64", "avx"), ("aarch64", V3)])
def test_another_processor_is_left_as_it_is_and_says_so(processor, monkeypatch, machine: str, flags: str):
    monkeypatch.setattr(os, "environ", {"MKL_CBWR": "AVX512"})
    processor(machine, flags)
    instructions.pin()
    assert os.environ == {"MKL_CBWR": "AVX512"}
    assert machine in instructions.pinned()


def test_a_changed_pin_changes_the_name_of_what_is_pinned(processor, monkeypatch: pytest.MonkeyPatch):
    processor("x86_64", V3)
    before = instructions.pinned()
    monkeypatch.setattr(instructions, "PINS", {**instructions.PINS, "MKL_CBWR": "AVX2"})
    instructions.pins.cache_clear()
    assert instructions.pinned() != before


def test_nothing_numerical_is_loaded_before_libraries_are_pinned():
    heavy = "{'numpy', 'pandas', 'torch', 'numba', 'scipy', 'pyarrow'}"
    for module in ("schedlab.config.runtime.instructions", "schedlab.config.runtime.job_log", "schedlab.cli.main"):
        code = f"import sys, {module}; sys.exit(' '.join({heavy} & sys.modules.keys()) or None)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{module} loads {done.stderr}"


@pytest.mark.slow
def test_numerical_functions_have_the_same_bytes_whatever_was_asked_for(repository: Path):
    job = "import subprocess, sys; from schedlab.config.runtime import instructions; instructions.begin_job(); "
    job += "sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"
    program = str(repository / "tests/config/numerical_functions.py")
    made = {
        name: subprocess.run(
            [sys.executable, "-c", job, program],
            env={**os.environ, **asked},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for name, asked in {"nothing": {}, **ASKED}.items()
    }
    assert len(made["nothing"]) > 100
    for name, lines in made.items():
        assert set(lines) ^ set(made["nothing"]) == set(), name
