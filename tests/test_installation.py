"""`pip install .` alone gives the environments: beside what its dependencies need and nothing else, all are made and
stepped. `pip install .[hdeeprm]` gives HDeepRM's launcher as well.

Nothing is downloaded: the wheel is built from a copy of the checkout, and the packages that it asks for, with those
that they ask for, are linked from the interpreter that runs the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from small_launch import options, pair, write_case

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

# what a source distribution has beside what the wheel is made from
RECORDS = ("CHANGELOG.md", "CITATION.cff", "environment.yaml", "requirements.txt", "requirements-docs.txt")
OFFLINE = ("--no-deps", "--no-index", "--disable-pip-version-check", "--quiet")
# to compile every kernel for this place would take most of the tests' time
PLAIN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"NUMBA_DISABLE_JIT": "1"}


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
def project(repository: Path) -> dict[str, Any]:
    """What pyproject.toml says of the package."""
    return tomllib.loads((repository / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def dependencies(project: dict[str, Any]) -> dict[str, Distribution]:
    """What pyproject.toml asks for without an extra, and what that asks for."""
    return needed(project["dependencies"])


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("src", "conf", "profiles", "resources", "workflow"):
        left_out = ("data",) if name == "resources" else ("__pycache__", "*.egg-info")
        shutil.copytree(repository / name, source / name, ignore=shutil.ignore_patterns(*left_out))
    (source / "resources/data").mkdir()
    (source / "resources/data/of_others.swf").write_text("; no part of the wheel")
    (source / "tests").mkdir()
    shutil.copy(repository / "tests/test_installation.py", source / "tests")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "Snakefile", *RECORDS):
        shutil.copy(repository / name, source)
    run(sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, dependencies: dict[str, Distribution], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with schedlab and its dependencies alone."""
    return install(tmp_path_factory.mktemp("alone"), wheel, dependencies)


def install(venv: Path, wheel: Path, packages: dict[str, Distribution]) -> Path:
    """Make a virtual environment with the wheel and links to the packages; returns its interpreter."""
    run(sys.executable, "-m", "venv", "--without-pip", str(venv))
    python = venv / "bin/python"
    run(sys.executable, "-m", "pip", "--python", str(python), "install", *OFFLINE, str(wheel))
    folder = next(venv.glob("lib/python*/site-packages"))
    for package in packages.values():
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (folder / top).symlink_to(Path(str(package.locate_file(top))))
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
    run(str(installed), "-I", "-c", MAKE, *ENVIRONMENTS, cwd=tmp_path, env=PLAIN)


def test_hdeeprm_launch_names_what_an_installation_without_extras_lacks(installed: Path, tmp_path: Path) -> None:
    write_case(tmp_path, pair("shortest-high_flops"))
    command = [str(installed.with_name("hdeeprm-launch")), "options.json", "-cw", "custom.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=PLAIN)
    assert done.returncode == 2 and "torch" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_extra_hdeeprm_runs_the_options_of_its_versions_and_draws(
    wheel: Path, dependencies: dict[str, Distribution], project: dict[str, Any], tmp_path: Path
) -> None:
    extra = needed(project["optional-dependencies"]["hdeeprm"])
    bin = install(tmp_path / "venv", wheel, dependencies | extra).parent
    assert not {"pybatsim", "snakemake", "hydra-core"} & {*dependencies, *extra}
    launch = [str(bin / "hdeeprm-launch"), "options.json", "-cw", "custom.json"]
    for values, more in ((pair("shortest-high_flops"), []), (options(), ["-a", "reinforce", "-om", "model.pt"])):
        folder = tmp_path / str(len(more))
        write_case(folder, values)
        assert "makespan" in run(*launch, *more, cwd=folder, env=PLAIN)
        run(str(bin / "schedlab"), "hetero", "visual", "gantt", "-s", "gantt.png", cwd=folder, env=PLAIN)
        assert (folder / "gantt.png").stat().st_size and (folder / "model.pt").is_file() == bool(more)


@pytest.mark.slow
def test_the_wheel_runs_the_workflow_without_a_checkout(
    wheel: Path, dependencies: dict[str, Distribution], project: dict[str, Any], tmp_path: Path
) -> None:
    extras = needed([*project["optional-dependencies"]["learn"], *project["optional-dependencies"]["workflow"]])
    schedlab = str(install(tmp_path / "venv", wheel, dependencies | extras).with_name("schedlab"))
    run(schedlab, "new", "study", "ordering", cwd=tmp_path, env=PLAIN)
    run(schedlab, "run", "--config", "scale=smoke", cwd=tmp_path / "ordering", env=PLAIN)
    assert (tmp_path / "ordering/plots/smoke/ordering/scores.png").stat().st_size > 5000
    (tmp_path / "empty").mkdir()  # where there is no conf/, the shipped one is run
    planned = run(schedlab, "run", "--dry-run", "ramp", "--config", "scale=smoke", cwd=tmp_path / "empty", env=PLAIN)
    assert "draw_ramp" in planned


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "used"),
    [
        ("learn", "from schedlab.learning.stock.learner import StableBaselinesLearner as Learner; Learner('ppo')"),
        ("workflow", "import schedlab.stages.draw, schedlab.stages.summarise, snakemake"),
        ("batsim", "import schedlab.batsim.backends.json_socket, docopt, procset, sortedcontainers, zmq"),
    ],
)
def test_each_extra_is_enough_for_what_it_is_for(
    wheel: Path,
    dependencies: dict[str, Distribution],
    project: dict[str, Any],
    tmp_path: Path,
    extra: str,
    used: str,
) -> None:
    packages = needed(project["optional-dependencies"][extra])
    python = install(tmp_path / "venv", wheel, dependencies | packages)
    run(str(python), "-I", "-c", used, cwd=tmp_path, env=PLAIN)


@pytest.fixture(scope="module")
def packed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of the checkout."""
    folder = tmp_path_factory.mktemp("packed")
    build = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, str(folder), cwd=wheel.parent / "source")
    return next(folder.glob("*.tar.gz"))


def test_the_source_distribution_has_the_records_of_the_release_and_no_tests(packed: Path) -> None:
    with tarfile.open(packed) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {*RECORDS, "MANIFEST.in", "pyproject.toml", "setup.py", "LICENSE", "Snakefile"} <= {*names}
    assert "src/schedlab/__init__.py" in names
    assert not [name for name in names if name.startswith(("tests", "resources/data", "conf/claims"))]


def test_a_release_publishes_the_wheel_and_the_source_distribution(repository: Path) -> None:
    steps = yaml.safe_load((repository / ".github/workflows/release.yml").read_text())["jobs"]["release"]["steps"]
    (command,) = [step["run"] for step in steps if "gh release create" in step.get("run", "")]
    assert {"dist/*.whl", "dist/*.tar.gz"} <= {*command.split()}


@pytest.mark.slow
def test_the_source_distribution_makes_the_same_wheel(wheel: Path, packed: Path, tmp_path: Path) -> None:
    again = [sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    run(*again, str(packed))
    contents = []
    for file in (wheel, next(tmp_path.glob("*.whl"))):
        with zipfile.ZipFile(file) as archive:
            contents.append({info.filename: info.CRC for info in archive.infolist()})
    assert contents[0] == contents[1] and len(contents[0]) > 500


def test_the_wheel_holds_no_data_of_others_and_stays_small(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = [name.partition("/share/schedlab/")[2] for name in archive.namelist()]
    assert {"Snakefile", "workflow/rules/library.smk", "profiles/default/config.yaml", "conf/data/digits.yaml"} <= {
        *shipped
    }
    assert not [name for name in shipped if name.startswith(("resources/data", "conf/claims"))]
    assert wheel.stat().st_size < 2_500_000
