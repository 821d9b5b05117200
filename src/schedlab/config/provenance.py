"""What a result came from: code, packages, machine, seeds and inputs, kept beside the data and never inside it."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import schedlab
from schedlab.config.files import write_json
from schedlab.config.hashes import file_hash

# Names of files and folders that no manifest lists: what differs from run to run, and what is only kept to save time.
NOT_OUTPUTS = ("*provenance.json", "manifest.json", ".*", "progress", "store", "logs", "benchmarks", "*.log", "*.tsv")


def provenance(part_hash: str, seeds: Sequence[int] = (), inputs: Mapping[str, Path | str] | None = None) -> dict[str, Any]:
    """Return the origin of one job's outputs: its part's hash, seeds, hashes of the input files by name, and `environment()`."""
    hashes = {name: file_hash(path) for name, path in sorted((inputs or {}).items())}
    return {"config_hash": part_hash, "seeds": list(seeds), "inputs": hashes, **environment()}


def write_provenance(path: Path, part_hash: str, seeds: Sequence[int] = (), inputs: Mapping[str, Path | str] | None = None) -> None:
    """Write `provenance` as the JSON file that stands beside a job's outputs."""
    write_json(path, provenance(part_hash, seeds, inputs))


def environment() -> dict[str, Any]:
    """Return code and package versions and the kind of machine (never its name)."""
    return {
        "schedlab": {"version": schedlab.__version__, "source": source_hash(), **_git_state()},
        "packages": package_versions(),
        "python": platform.python_version(),
        "machine": {"processor": processor_name(), "cores": os.cpu_count(), "platform": platform.platform()},
    }


@cache
def source_hash() -> str:
    """Return 16 hexadecimal digits over the names and bytes of all Python files of the package."""
    root = Path(schedlab.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


@cache
def package_versions() -> dict[str, str]:
    """Return the installed version of every package that schedlab names as a dependency, extras included."""
    versions = {}
    for requirement in metadata.requires("schedlab") or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement).group()
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    versions.pop("schedlab", None)
    return dict(sorted(versions.items()))


def output_hashes(folder: Path | str, skip: Sequence[str] = NOT_OUTPUTS) -> dict[str, str]:
    """Return the SHA-256 of every output below a folder by relative path, without the names that match `skip`."""
    folder = Path(folder)
    hashes = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and not any(fnmatch(name, pattern) for name in relative.parts for pattern in skip):
            hashes[relative.as_posix()] = file_hash(path)
    return hashes


def code_and_packages(made: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what a manifest keeps of an environment (that of this moment, or of a provenance): code, Python and packages, no machine."""
    made = made or environment()
    code = made["schedlab"]
    packages = {name: version for name, version in made["packages"].items() if name not in development_packages()}
    return {"code": code["source"], "commit": code["commit"], "version": code["version"], "python": made["python"], "packages": packages}


@cache
def development_packages() -> frozenset[str]:
    """Return the packages that only work on the code itself needs; no result depends on them."""
    named = [line for line in metadata.requires("schedlab") or () if re.search(r"""extra\s*==\s*["']dev["']""", line)]
    return frozenset(re.match(r"[A-Za-z0-9._-]+", line).group() for line in named)


@cache
def _git_state() -> dict[str, Any]:
    """Commit of the repository that tracks the package, and whether its tracked files differ; nothing where none does."""
    root = Path(schedlab.__file__).parent
    if _git(root, "ls-files", "--error-unmatch", "__init__.py") is None:
        return {"commit": None}
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"commit": _git(root, "rev-parse", "HEAD"), "modified": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@cache
def processor_name() -> str:
    """Return the model of the processor as the operating system tells it; "" where it does not."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    named = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.M)
    return named.group(1).strip() if named else platform.processor() or platform.machine()
