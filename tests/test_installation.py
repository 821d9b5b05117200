"""`pip install .` alone gives the environments: beside what its dependencies need and nothing else, all are made and
stepped.

Nothing is downloaded: the wheel is built from a copy of the checkout, and the packages that it asks for, with those
that they ask for, are linked from the interpreter that runs the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from schedlab.environments import ENVIRONMENTS

LEFT_OUT = ("torch", "snakemake", "hydra", "stable_baselines3", "sklearn", "matplotlib")
MAKE = f"""
import importlib.util, sys
import gymnasium, schedlab

assert schedlab.__file__.startswith(sys.prefix), schedlab.__file__
assert not [name for name in {LEFT_OUT} if importlib.util.find_spec(name)]
for name in sys.argv[1:]:
    env = gymnasium.make(name)
    if "Live" not in name:  # a step of which trains the example, which takes PyTorch
        env.reset(seed=0)
        env.action_space.seed(0)
        numbered = isinstance(env.action_space, gymnasium.spaces.Discrete)
        env.step(int(env.unwrapped.action_masks().argmax()) if numbered else env.action_space.sample())
    env.close()
"""


def needed(names: list[str]) -> dict[str, Distribution]:
    """The installed distributions of some requirements and of all that they require here, without extras."""
    found: dict[str, Distribution] = {}
    left = [Requirement(name) for name in names]
    while left:
        requirement = left.pop()
        name = requirement.name.lower().replace("_", "-")
        if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found[name] = distribution(requirement.name)
            left += [Requirement(text) for text in found[name].requires or ()]
    return found


@pytest.fixture(scope="module")
def dependencies(repository: Path) -> dict[str, Distribution]:
    """What pyproject.toml asks for without an extra, and what that asks for."""
    return needed(tomllib.loads((repository / "pyproject.toml").read_text())["project"]["dependencies"])


@pytest.fixture(scope="module")
def installed(
    repository: Path, dependencies: dict[str, Distribution], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The interpreter of a virtual environment with schedlab and its dependencies alone."""
    folder = tmp_path_factory.mktemp("installation")
    source, venv = folder / "source", folder / "venv"
    for name, left_out in (("src", ("__pycache__", "*.egg-info")), ("resources", ("data",))):
        shutil.copytree(repository / name, source / name, ignore=shutil.ignore_patterns(*left_out))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(repository / name, source)
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    run(sys.executable, "-m", "venv", "--without-pip", str(venv))
    python = venv / "bin/python"
    run(sys.executable, "-m", "pip", "--python", str(python), "install", *offline, *map(str, folder.glob("*.whl")))
    packages = next(venv.glob("lib/python*/site-packages"))
    for package in dependencies.values():
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (packages / top).symlink_to(Path(str(package.locate_file(top))))
    run(sys.executable, "-m", "pip", "--python", str(python), "check")
    return python


def run(*command: str, **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_dependencies_without_extras_hold_neither_torch_nor_snakemake(
    dependencies: dict[str, Distribution],
) -> None:
    assert {"numpy", "numba", "gymnasium", "pandas"} <= set(dependencies)
    assert not {"torch", "snakemake", "hydra-core", "stable-baselines3", "matplotlib"} & set(dependencies)


def test_every_environment_is_made_and_stepped_after_an_installation_without_extras(
    installed: Path, tmp_path: Path
) -> None:
    plain = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
    }  # to compile every kernel anew for this place would take most of the test's time
    run(str(installed), "-I", "-c", MAKE, *ENVIRONMENTS, cwd=tmp_path, env=plain)
