"""The two lists of versions are one list, and hold nothing but versions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

PIN = re.compile(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.]+")


def test_conda_and_pip_name_the_same_versions(repository: Path) -> None:
    pins = (repository / "requirements.txt").read_text().split()
    environment = yaml.safe_load((repository / "environment.yaml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert pins and sorted(pins) == sorted(pip)
    assert all(PIN.fullmatch(pin) for pin in pins), "versions only: no hosts, no local builds, no hashes"
    assert "pip install --no-deps pybatsim==3.2.1" in (repository / "environment.yaml").read_text()
    assert "--no-deps pybatsim==3.2.1" in (repository / "Makefile").read_text()


def test_what_the_site_needs_beside_the_rest_is_pinned_too(repository: Path) -> None:
    pins = (repository / "requirements-docs.txt").read_text().split()
    assert pins and all(PIN.fullmatch(pin) for pin in pins)
    names, others = (
        {name_of(pin) for pin in (repository / file).read_text().split()}
        for file in ("requirements-docs.txt", "requirements.txt")
    )
    assert len(names) == len(pins) and not names & others
    wanted = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    assert {name_of(Requirement(text).name) for text in wanted} <= names


def test_the_ranges_begin_at_the_pinned_minor_versions(repository: Path) -> None:
    """With which the tests run; an older version is not promised."""
    files = (repository / name for name in ("requirements.txt", "requirements-docs.txt"))
    pinned = dict(pin.split("==") for file in files for pin in file.read_text().split())
    pinned = {name_of(name): Version(version) for name, version in pinned.items()}
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    ranges = [Requirement(text) for each in lists for text in each if not text.startswith("schedlab")]
    assert ranges
    for each in ranges:
        version = pinned[name_of(each.name)]
        promised = f">={version.major}.{version.minor},<{version.major + 1}"
        assert each.specifier == SpecifierSet(promised), f"{each.name}: {promised}"


def name_of(pin: str) -> str:
    return re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower()


def test_the_images_are_built_by_the_steps_of_the_makefile(repository: Path) -> None:
    """Neither can be built in a test, which has no network for images; so the steps and the files that they copy are
    compared.
    """

    def steps(text: str) -> list[str]:
        found = re.findall(
            r"-m pip install (?:--(?:quiet|disable-pip-version-check|no-cache-dir) )*(.*?)(?: \\)?$", text, flags=re.M
        )
        return [step.replace("$$", "$").replace("--editable ", "") for step in found]

    docker, apptainer = ((repository / f"workflow/envs/{name}").read_text() for name in ("Dockerfile", "schedlab.def"))
    assert steps(docker)
    assert steps(docker) == steps(apptainer) == steps((repository / "Makefile").read_text())
    copied = " ".join(re.findall(r"^COPY (.*) \S+$", docker, flags=re.M)).split()
    assert copied == re.findall(r"^ +(\S+) /opt/schedlab/\1$", apptainer, flags=re.M)
    assert copied and all((repository / name).exists() for name in copied)
    base = re.search(r"^FROM (\S+)$", docker, flags=re.M)[1]
    assert f"From: {base}\n" in apptainer and base.startswith("python:3.11-")
    assert 'container: "schedlab.sif"' in (repository / "Snakefile").read_text() and "build schedlab.sif" in apptainer
