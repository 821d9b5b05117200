"""The origin of a result: code, packages, machine, seeds and inputs, written next to the data and never into it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import schedlab
from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, file_hash, write_json
from schedlab.config.readers import read_json
from schedlab.config.runtime.accepted import same_code
from schedlab.config.runtime.code import Code
from schedlab.config.runtime.instructions import PINS
from schedlab.config.runtime.parts import MADE_BY, configuration_hash, read_part

# Matches a package that another one requires only with an extra, or only on Windows.
OPTIONAL = r"""extra\s*==|;\s*(platform_system|sys_platform|os_name)\s*==\s*["'](Windows|win32|nt)["']$"""

PLANNED_SOURCE = ".schedlab/source"  # the hash of all sources when the parts were frozen

# Files and folders of a checkout that decide results.
DECIDING = ("src", "conf", "workflow", "resources", "Snakefile", "requirements.txt")

# Names of files and folders that no manifest lists: they differ from run to run, or only save time.
NOT_OUTPUTS = ("*provenance.json", "manifest.json", ".*", "progress", "store", "logs", "benchmarks", "*.log", "*.tsv")


def provenance(
    config: Path | str, seeds: Sequence[int] = (), inputs: Mapping[str, Path | str] | None = None
) -> dict[str, Any]:
    """Return the origin of one job's outputs: its frozen part, the hashes of that part's configuration and code, seeds,
    hashes of the input files by name, and `environment()`.

    If other code was accepted in place of the part's (`schedlab accept`), `accepted` contains the hashes of that code,
    which may be the code that ran; the source and the commit show which one did.
    """
    part = read_part(config)
    named = part.get(MADE_BY, {})
    made = named.get("code", "")
    accepted = sorted(later for later, earlier in same_code(run_of(config)).items() if earlier == made)
    require_planned_code(part, accepted)
    origin = {"config": str(config), "config_hash": configuration_hash(part), "code_hash": made}
    origin["computed_with"] = named.get("packages", {})
    origin |= {"accepted": accepted} if accepted else {}
    hashes = {name: file_hash(path) for name, path in sorted((inputs or {}).items())}
    return {**origin, "seeds": list(seeds), "inputs": hashes, **environment()}


def require_made_by(part: Mapping[str, Any], tables: Iterable[Path]) -> None:
    """Raise UserError if the provenance of a table shows that other code than that in a part's `upon` made it."""
    expected = set(part.get(MADE_BY, {}).get("upon", ()))
    for table in tables if expected else ():
        file = table.with_suffix(".provenance.json")
        origin = read_json(file, "the provenance of a job") if file.is_file() else {}
        if made_mark(origin.get("code_hash", ""), origin.get("computed_with", {})) not in expected:
            remedy = "delete it and run snakemake again"
            raise UserError("other code than today's made these scores", where=str(table), remedy=remedy)


def require_made_by_their_parts(results: Iterable[Path]) -> None:
    """Raise UserError for a result made by other code than its frozen part now names. The provenance.json in the folder
    of the result names the code and the part.
    """
    for result in results:
        origin = read_json(result.with_name("provenance.json"), "the provenance of a job")
        made = read_part(origin["config"]).get(MADE_BY) if origin.get("config") else None
        if not made or not was_made_by(made, origin):
            what, remedy = "other code than today's made this", "delete it and run snakemake again"
            raise UserError(what, where=str(result), remedy=remedy)


def was_made_by(made: Mapping[str, Any], origin: Mapping[str, Any]) -> bool:
    """Return whether a job's provenance names the code and the packages that its part names under MADE_BY."""
    return (made["code"], made["packages"]) == (origin.get("code_hash"), origin.get("computed_with"))


def made_mark(code: str, packages: Mapping[str, str]) -> str:
    """Return the hash by which a part refers, under `upon`, to an input that was made by this code with these
    packages.
    """
    return content_hash([code, packages])


def run_of(path: Path | str) -> Path:
    """Return the results folder of the run to which a path below results/ or plots/ belongs."""
    return Path("results", *Path(path).parts[1:2])


def require_planned_code(part: Mapping[str, Any], accepted: Iterable[str] = ()) -> None:
    """Raise UserError if this process may have run other code than its part names, because modules that the part's
    stage reaches were edited after the run was planned.

    accepted: hashes of code that counts as the part's
    """
    made, planned = part.get(MADE_BY), Path(PLANNED_SOURCE)
    if not made or not planned.is_file() or not all(root.startswith("schedlab.") for root in made["of"]):
        return
    source = planned.read_text(encoding="utf-8")
    undone = source_hash() != source == source_now()
    edited = not source_hash() == source == source_now()
    if undone or (edited and Code().hash(made["of"], made["upon"])["code"] not in (made["code"], *accepted)):
        what, remedy = "the code that makes this result was edited after the run was planned", "start the run again"
        raise UserError(what, where=made["of"][0], remedy=remedy)


def write_provenance(
    path: Path,
    config: Path | str,
    seeds: Sequence[int] = (),
    inputs: Mapping[str, Path | str] | None = None,
    **also: Any,
) -> None:
    """Write `provenance`, with further facts of the job, as a JSON file next to the job's outputs."""
    write_json(path, provenance(config, seeds, inputs) | also)


def write_origin(job: Any, path: Path, outputs: Iterable[str] = (), **also: Any) -> None:
    """Write the origin of a workflow job's outputs: their names, `provenance()`, and the frozen part from which they
    were made.

    job      Snakemake's object in a script; its paths are relative to the folder of the run, and `job.input.config` is
             the frozen part
    path     the JSON file to write next to the outputs, named provenance.json or <output>.provenance.json
    outputs  names of the described outputs; empty: all
    also     further facts of the job

    Inputs are named by their paths. Files outside of the results are left out, because the frozen part contains their
    hashes. The provenance files of inputs are left out, because they name the machine.
    """
    config = Path(job.input.config)
    files = {
        file: Path(file)
        for name in job.input
        for file in _files_below(name)
        if file != str(config) and file.startswith("results/") and not file.endswith("provenance.json")
    }
    made = sorted(file for name in outputs or job.output for file in _files_below(name))
    write_json(path, {"outputs": made, **provenance(config, inputs=files), **also})


def _files_below(path: str) -> list[str]:
    """Return a file, or the outputs in a folder."""
    return [f"{path}/{name}" for name in output_names(path)] if Path(path).is_dir() else [path]


def environment() -> dict[str, Any]:
    """Return the versions of code and packages and the kind of machine (never its name).

    `source` is the hash of the source when this process began. `source_at_end` is added only if files were edited
    since.
    """
    code = {"version": schedlab.__version__, "source": source_hash(), **_git_state()}
    if edited := edited_source():
        code["source_at_end"] = edited
    return {
        "schedlab": code,
        "packages": package_versions(),
        "instructions": {name: os.environ[name] for name in PINS if name in os.environ},
        "python": platform.python_version(),
        "c_library": " ".join(platform.libc_ver()).strip(),
        "machine": {"processor": processor_name(), "cores": os.cpu_count(), "platform": platform.platform()},
    }


@cache
def source_hash() -> str:
    """Return the value of `source_now()` at the first call in this process; a workflow job makes this call at its start
    (job_log).
    """
    return source_now()


def source_now() -> str:
    """Return 16 hexadecimal digits over the names and bytes of all Python files of the package."""
    return _digest(_source_files())


@cache
def room_hash(study: str) -> str:
    """Return 16 hexadecimal digits over the files on which the reading of a study's configuration depends: all except
    the other studies, the stages, the command line and config/runtime. They are read once, at the first call in this
    process.
    """
    others = ("cli/", "stages/", "config/runtime/")
    return _digest(
        {
            name: content
            for name, content in _first_files().items()
            if not name.startswith(others) and (not name.startswith("studies/") or name.split("/")[1] == study)
        }
    )


def study_code(settings: Mapping[str, Any]) -> str:
    """Return a hash of the Python files of a study outside of the package, which `room_hash` does not include; '' for a
    study in the package.
    """
    place = study_folder(settings)
    if place is None:
        return ""
    return content_hash([[file.relative_to(place).as_posix(), file_hash(file)] for file in sorted(place.rglob("*.py"))])


def study_folder(settings: Mapping[str, Any]) -> Path | None:
    """Return the folder of the Python package of a study outside of schedlab; None for a study in schedlab."""
    if not settings["module"] and (Path(schedlab.__file__).parent / "studies" / settings["name"]).is_dir():
        return None
    installed = () if settings["module"] else metadata.entry_points(group="schedlab.studies", name=settings["name"])
    top = (settings["module"] or next((point.module for point in installed), "")).partition(".")[0]
    if not top:  # no package to search for; the working directory itself is not a study
        return None
    place = Path(settings["path"], top)
    if not (settings["path"] and place.is_dir()):
        spec = importlib.util.find_spec(top) if top else None
        place = Path(spec.origin).parent if spec and spec.origin else place
    return place


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(name.encode() + b"\0")
        digest.update(content)
    return digest.hexdigest()[:16]


def _source_files() -> dict[str, bytes]:
    """Return the Python files of the package by name, sorted, with their SHA-256. A file that vanishes during the call,
    for example because the checkout changes, counts as empty.
    """
    root = Path(schedlab.__file__).parent
    found = [
        Path(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")
    ]  # os.walk tolerates vanishing folders
    files = {}
    for path in sorted(found):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            content = b""
        files[path.relative_to(root).as_posix()] = hashlib.sha256(content).digest()
    return files


_first_files = cache(_source_files)


def edited_source() -> str | None:
    """Return `source_now()` if it has changed since this process began, else None."""
    now = source_now()
    return now if now != source_hash() else None


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of all installed packages that schedlab requires, directly or indirectly, including its
    extras.

    These are the packages that requirements.txt pins, without those needed only for development, on which no result
    depends.
    """
    versions: dict[str, str] = {}
    open_names = _required("schedlab", without=r"""extra\s*==\s*["'](dev|docs)["']""")
    while open_names:
        name = open_names.pop()
        if name in versions or name == "schedlab":
            continue
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # an extra that is not installed, or a package for another system
            continue
        open_names |= _required(name, without=OPTIONAL)
    return dict(sorted(versions.items()))


def _required(package: str, without: str) -> set[str]:
    """Return the names of the packages that a package's metadata requires, normalised as in
    https://packaging.python.org/specifications/name-normalization.
    """
    named = "\n".join(line for line in metadata.requires(package) or () if not re.search(without, line))
    return {re.sub(r"[-_.]+", "-", name).lower() for name in re.findall(r"^[A-Za-z0-9._-]+", named, flags=re.M)}


def output_names(folder: Path | str, skip: Sequence[str] = NOT_OUTPUTS) -> list[str]:
    """Return the relative path of every output below a folder, sorted, without the names that match `skip`."""
    folder = Path(folder)
    found = [(path.relative_to(folder), path) for path in sorted(folder.rglob("*"))]
    skipped = {
        relative for relative, _ in found if any(fnmatch(name, pattern) for name in relative.parts for pattern in skip)
    }
    return [relative.as_posix() for relative, path in found if relative not in skipped and path.is_file()]


def output_hashes(folder: Path | str, skip: Sequence[str] = NOT_OUTPUTS) -> dict[str, str]:
    """Return the SHA-256 of every output below a folder by relative path, without the names that match `skip`."""
    return {name: file_hash(Path(folder) / name) for name in output_names(folder, skip)}


def code_and_packages(made: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the part of an environment (the present one, or that of a provenance) that a manifest keeps: code, Python,
    packages and the pinned instructions, the C library, but not the machine.
    """
    made = made or environment()
    code = made["schedlab"]
    known = {name: code.get(name) for name in ("commit", "modified", "version")}
    source = " to ".join(code[name] for name in ("source", "source_at_end") if name in code)
    return {
        "code": source,
        **known,
        "python": made["python"],
        **{name: made[name] for name in ("packages", "instructions", "c_library") if name in made},
    }


def keep_code() -> None:
    """Compute the hash of the source and the commit now; later calls in this process return these values."""
    source_hash()
    _git_state()


@cache
def _git_state() -> dict[str, Any]:
    """Return the commit of the repository that tracks the package, and whether tracked files differ; the commit is None
    if no repository does.
    """
    root = Path(schedlab.__file__).parent
    if _git(root, "ls-files", "--error-unmatch", "__init__.py") is None:
        return {"commit": None}
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"commit": _git(root, "rev-parse", "HEAD"), "modified": bool(changes)}


def uncommitted_files() -> list[str]:
    """Return the files below DECIDING that are changed or new since the commit of the checkout; empty if the package is
    not in a checkout.
    """
    root = _git(Path(schedlab.__file__).parent, "rev-parse", "--show-toplevel") if _git_state()["commit"] else None
    status = _git(Path(root), "status", "--porcelain", "--", *DECIDING) if root else None
    return sorted(line[2:].split(" -> ")[-1].strip() for line in (status or "").splitlines())


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@cache
def processor_name() -> str:
    """Return the model of the processor that the operating system reports; "" if it reports none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    named = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.M)
    return named.group(1).strip() if named else platform.processor() or platform.machine()
