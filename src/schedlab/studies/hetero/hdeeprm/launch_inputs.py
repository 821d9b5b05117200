"""The inputs that a launch generates: platform, resources, workload and job limits, stored in the working directory.

`inputs.json` holds a hash of the sources of these files and a hash of each file. Files that are up to date are used
again; others are replaced. Of the replaced files, those that a launch did not write are kept as NAME.old.
See docs/reference/hetero_launch.md.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schedlab.batsim.files.workload import parse_workload, read_workload
from schedlab.config.errors import UserError, nearest
from schedlab.config.files import content_hash, file_hash, write_json
from schedlab.config.readers import read_json
from schedlab.config.schema import validate
from schedlab.platforms import settings as platforms
from schedlab.platforms.batsim_xml import read_platform
from schedlab.platforms.description import LIBRARIES, LibraryFiles, find_platform, shipped_folder, shipped_platforms
from schedlab.platforms.generate import generate_platform, hierarchy_of
from schedlab.platforms.hierarchy import Hierarchy, read_hierarchy
from schedlab.studies.hetero.hdeeprm.options import LaunchOptions
from schedlab.studies.hetero.scenario import RESULTS_VERSION
from schedlab.studies.hetero.simulator.episode import Cluster, Jobs
from schedlab.workloads import to_batsim as conversion
from schedlab.workloads.batsim_file import BatsimWorkload, batsim_text, job_limits, read_batsim, set_work, write_batsim
from schedlab.workloads.clean import CleaningSettings, clean
from schedlab.workloads.swf import read_swf

log = logging.getLogger("schedlab.hetero.launch")
PLATFORM, RESOURCES, WORKLOAD, LIMITS = "platform.xml", "resources.json", "workload.json", "job_limits.json"
GENERATED = (PLATFORM, RESOURCES, WORKLOAD, LIMITS)
STAMP = "inputs.json"
SHORTEST = 1e-6  # s, the resolution of the simulator's dates
DEMANDS = {
    "req_time": (SHORTEST, "the requested time in s, above 0"),
    "mem": (0, "the memory of each core in MB, 0 or more"),
    "mem_bw": (0, "the memory bandwidth of each core in GB/s, 0 or more"),
}


@dataclass(frozen=True)
class Sources:
    """The sources of the inputs: the options, their path for messages, the user's workload and types, and the mode."""

    options: LaunchOptions
    file: Path
    custom_workload: Path | None = None
    compat: bool = False
    libraries: LibraryFiles = field(default_factory=LibraryFiles)


def prepare_inputs(sources: Sources, folder: Path) -> tuple[Cluster, Jobs]:
    """Return cluster and jobs from the files in a folder, which are generated if they are missing or out of date.
    Raises UserError(s).
    """
    platform = _platform_file(sources)
    sources = replace(sources, libraries=_libraries(sources, platform))
    made_from = content_hash(_origin(sources, platform), 64)
    if not _are_fresh(folder, made_from):
        _generate(sources, platform, folder)
        files = {name: file_hash(folder / name) for name in GENERATED}
        write_json(folder / STAMP, {"made_from": made_from, "files": files})
    else:
        log.info("platform and workload: those of the last run, made from the same options and files")
    limits = read_json(folder / LIMITS, "job limits")
    cluster = Cluster(read_hierarchy(folder / RESOURCES), read_platform(folder / PLATFORM))
    return cluster, Jobs(read_workload(folder / WORKLOAD, "w0"), limits)


def _origin(sources: Sources, platform: Path) -> dict[str, Any]:
    """Return everything on which the generated files depend, as plain values."""
    options = sources.options
    types = sorted((shipped_folder() / "types").glob("*.json"))
    own = sources.libraries.model_dump()
    return {
        "version": RESULTS_VERSION,
        "compat": sources.compat,
        **{key: getattr(options, key) for key in ("seed", "nb_jobs", "nb_resources")},
        "platform": [platform.stem, file_hash(platform)],
        "types": [file_hash(path) for path in types],
        "own_types": {what: file_hash(Path(path)) for what, path in own.items() if path},
        "workload": [sources.custom_workload is not None, file_hash(_workload_file(sources))],
    }


def _platform_file(sources: Sources) -> Path:
    name = sources.options.platform_file_path
    where = f"{sources.file}: platform_file_path"
    try:
        path = find_platform(name)
    except UserError as error:
        raise UserError(error.what, where=where, remedy=error.remedy) from None
    if not path.is_file():
        near = nearest(path.stem, shipped_platforms())
        remedy = (
            f'the shipped platform is "{near}", without a path' if near else "give a path from the working directory"
        )
        expected = "a platform description (JSON)"
        raise UserError(f"there is no file {name}", where=where, expected=expected, remedy=remedy)
    return path


def _libraries(sources: Sources, platform: Path) -> LibraryFiles:
    """Return the user's type libraries: those given, otherwise node_types.json and the like in the folder of the
    platform file.
    """
    given: dict[str, str] = {}
    for what in LIBRARIES:
        beside = platform.parent / f"{what.removesuffix('s')}_types.json"  # processors: processor_types.json
        path = getattr(sources.libraries, what)
        if path and not Path(path).is_file():
            expected = f"a library of {what} by name (JSON)"
            raise UserError(f"there is no file {path}", where=f"--{what}", expected=expected)
        if path or beside.is_file():
            given[what] = path or str(beside)
    if beside_used := [path for what, path in given.items() if not getattr(sources.libraries, what)]:
        log.info("types beside the platform: %s", ", ".join(beside_used))
    return LibraryFiles(**given)


def _workload_file(sources: Sources) -> Path:
    if sources.custom_workload is not None:
        path, where, expected = sources.custom_workload, "-cw", "a workload of Batsim (JSON)"
    else:
        path, where = Path(sources.options.workload_file_path), f"{sources.file}: workload_file_path"
        expected = "a trace in the Standard Workload Format, or a workload of Batsim by -cw"
    if not path.is_file():
        what = f"there is no file {path}" if str(path) != "." else "no trace is named"
        raise UserError(what, where=where, expected=expected)
    return path


def _are_fresh(folder: Path, made_from: str) -> bool:
    """Return whether the folder holds files made from these sources that have not been changed since."""
    try:
        stamp = read_json(folder / STAMP, "the hashes of generated inputs")
        fresh = all(stamp["files"][name] == file_hash(folder / name) for name in GENERATED)
        return fresh and stamp["made_from"] == made_from
    except (UserError, OSError, KeyError, TypeError):
        return False


def _generate(sources: Sources, platform: Path, folder: Path) -> None:
    if sources.custom_workload is not None and sources.custom_workload.resolve() == (folder / WORKLOAD).resolve():
        what = f"the generated workload is written to {WORKLOAD} of this directory"
        raise UserError(what, where="-cw", remedy="give your file another name")
    changes = platforms.REFERENCE if sources.compat else {}
    described = {"name": platform.stem, "file": str(platform), "libraries": sources.libraries.model_dump(), **changes}
    settings = validate(platforms.PlatformSettings, described)
    hierarchy = hierarchy_of(settings)
    asked = sources.options.nb_resources
    if asked and asked > hierarchy.cores and not sources.compat:
        expected = f"at most {hierarchy.cores}, the cores of platform {hierarchy.name}"
        raise UserError(f"nb_resources is {asked}", where=f"{sources.file}: nb_resources", expected=expected)
    workload, limits = _make_workload(sources, hierarchy)
    _keep_what_is_not_ours(folder)
    (folder / STAMP).unlink(missing_ok=True)  # so that files left by an interruption do not count as up to date
    generate_platform(settings, folder / PLATFORM, folder / RESOURCES)
    write_json(folder / LIMITS, limits)
    write_batsim(folder / WORKLOAD, workload)


def _make_workload(sources: Sources, hierarchy: Hierarchy) -> tuple[BatsimWorkload, dict[str, float]]:
    """Return the jobs of the trace or of the user's workload, and their limits."""
    options = sources.options
    changes = conversion.REFERENCE if sources.compat else {}
    settings = conversion.BatsimSettings(jobs=options.nb_jobs, nb_res=options.nb_resources, **changes)
    path = _workload_file(sources)
    if sources.custom_workload is not None:
        workload = set_work(_custom_workload(path), hierarchy.reference_speed)
        parse_workload(batsim_text(workload), "w0", str(path))  # so that errors name the user's file
    else:
        trace = read_swf(path)
        if not trace.processors:
            trace = trace.with_processors(hierarchy.cores)  # for the cleaning; HDeepRM's generator needs no size
        cleaned, _ = clean(trace, CleaningSettings(profile="none" if sources.compat else "default"))
        try:
            workload, report = conversion.to_batsim(cleaned, hierarchy, settings, options.seed)
        except UserError as error:
            expected = "jobs with a requested time, processors and a memory (requested or used) that the platform has"
            remedy = "see `schedlab trace to-batsim` with --missing-memory, whose output -cw takes"
            raise UserError(error.what, where=str(path), expected=expected, remedy=remedy) from None
        left_out = ", ".join(f"{reason} {count}" for reason, count in report.reasons.items() if count)
        log.info("workload: %d of %d jobs read%s", report.written, report.read, f" ({left_out})" if left_out else "")
    return workload, job_limits(workload, legacy_zero_limits=settings.legacy_zero_limits)


def _custom_workload(path: Path) -> BatsimWorkload:
    """Read a user's workload, whose profiles need all DEMANDS. Raises UserError naming file and profile."""
    workload = read_batsim(path)
    if not workload.jobs:
        raise UserError("has no job", where=str(path), expected="at least one")
    for name in dict.fromkeys(job["profile"] for job in workload.jobs):
        for key, (least, expected) in DEMANDS.items():
            value = workload.profiles[name].get(key)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
                raise UserError(f"{key} is {value!r}", where=f"{path}: profiles.{name}", expected=expected)
    return workload


def _keep_what_is_not_ours(folder: Path) -> None:
    """Rename files that no launch wrote or that were changed since; the others are replaced without a copy."""
    try:
        stamp = read_json(folder / STAMP, "the hashes of generated inputs")
        written = dict(stamp["files"])
    except (UserError, KeyError, TypeError, ValueError):
        written = {}
    for name in GENERATED:
        path = folder / name
        if path.is_file() and file_hash(path) != written.get(name):
            path.replace(path.with_name(f"{name}.old"))
            log.warning("%s was not made by a launch: it is replaced, and kept as %s.old", name, name)
        elif path.is_file():
            log.info("%s was made from other options or files: it is replaced", name)
