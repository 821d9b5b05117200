"""The prepare rules, which make the platform and its workloads; each reads its frozen part and writes its outputs."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab.config.contract import Part
from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path, write_json
from schedlab.config.readers import read_members
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import validate
from schedlab.platforms import generate
from schedlab.platforms.hierarchy import read_hierarchy
from schedlab.platforms.settings import PlatformSettings
from schedlab.studies.hetero.scenario import HeteroScenario, ReplicateSettings, settings_of, units
from schedlab.workloads.batsim_file import batsim_text
from schedlab.workloads.prepare import make_batsim
from schedlab.workloads.settings import WorkloadSettings

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold


def write_workloads(path: Path | str, texts: Mapping[str, str]) -> None:
    """Write an archive (zip) of workload files atomically; texts: replicate's name -> text of its workload file."""
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(texts):
            member = zipfile.ZipInfo(f"{name}.json", _EPOCH)
            member.external_attr = 0o644 << 16
            archive.writestr(member, texts[name])


def extract_workload(path: Path | str, name: str, folder: Path | str) -> Path:
    """Write a replicate's workload file into a folder and return its path. Raises UserError if the archive lacks it."""
    member = f"{name}.json"
    remedy = "delete the file and run the job that makes it again"
    found = read_members(path, "an archive of workloads", remedy, lambda held: held == member)
    if member not in found:
        raise UserError(f"holds no workload '{name}'", where=str(path), remedy=remedy)
    path = Path(folder, member)
    path.write_bytes(found[member])
    return path


log = logging.getLogger(__name__)
TYPE_LIBRARIES = tuple(f"resources/platforms/types/{name}.json" for name in ("networks", "nodes", "processors"))
PROBLEM: tuple[str, ...] = ("platform", "workload", "replicates", "decisions", "simulator", "batsim", "scheduler_limit")
PROBLEM = (*PROBLEM, "energy", "network", "bounded_slowdown_threshold", "physics")


def generate_platform(part: Path, xml: Path, resources: Path) -> None:
    """Write the platform for the simulator (XML) and its resources as JSON."""
    generate.generate_platform(validate(PlatformSettings, read_part(part)["platform"]), xml, resources)


def trim_workload(part: Path, resources: Path, workloads: Path, report: Path) -> None:
    """Write the workloads of all replicates for the platform's resources (zip), and a report on how each was made
    (JSON).

    Raises UserError if a trace has fewer jobs than its replicates need.
    """
    values = read_part(part)
    workload = validate(WorkloadSettings, values["workload"])
    replicates = validate(ReplicateSettings, values["replicates"])
    hierarchy = read_hierarchy(resources)
    texts, reports = {}, {}
    for unit in units(workload, replicates):
        settings = settings_of(workload, replicates, unit)
        made, reports[unit.id] = make_batsim(settings, hierarchy)
        _require_whole_piece(settings, reports[unit.id], replicates.total)
        texts[unit.id] = batsim_text(made)
        _log_left_out(unit.id, reports[unit.id])
    write_workloads(workloads, texts)
    write_json(report, reports)


def _log_left_out(unit: str, report: Mapping[str, Any]) -> None:
    """Log how many jobs of a workload were left out, and why."""
    conversion = report.get("conversion", {"reasons": {}})
    reasons = {reason: jobs for reason, jobs in conversion["reasons"].items() if jobs}
    if reasons:
        log.warning("%s: %d of %d jobs taken; %s", unit, conversion["written"], conversion["read"], reasons)
    if reasons.get("too_large"):
        log.warning("hint: jobs that do not fit the platform can be cut to its size (workload.batsim.infeasible: clip)")


def _require_whole_piece(settings: WorkloadSettings, report: Mapping[str, Any], replicates: int) -> None:
    wanted = (
        settings.trim.count if settings.source == "swf" and settings.trim and settings.batsim.jobs is None else None
    )
    found = report["conversion"]["read"] if wanted else 0
    if wanted and found < wanted:
        what, expected = f"the trace ends after {found} of {wanted} jobs", f"enough for {replicates} replicates"
        remedy = "take fewer or shorter ones (replicates, trim.count)"
        raise UserError(what, where=f"workload {settings.name}", expected=expected, remedy=remedy)


def parts(scenario: HeteroScenario) -> dict[str, Part]:
    """Return the part of a scenario that each prepare rule reads; scenarios with the same platform and workload share
    the products.
    """
    values = scenario.model_dump(mode="json")
    platform = {"platform": values["platform"]}
    workload = {**platform, "workload": values["workload"], "replicates": values["replicates"]}
    of_platform = _platform_files(scenario.platform)
    of_workload = (scenario.workload.file,) if scenario.workload.file else ()
    return {
        "generate_platform": Part(platform, shared=True, files=of_platform, made_by=f"{__name__}:generate_platform"),
        "trim_workload": Part(
            workload,
            shared=True,
            needs=("generate_platform",),
            files=(*of_platform, *of_workload),
            made_by=f"{__name__}:trim_workload",
        ),
    }


def _platform_files(platform: PlatformSettings) -> tuple[str, ...]:
    """Return the files from which a described platform is made; a synthetic one needs none."""
    if not platform.file:
        return ()
    libraries = platform.libraries
    own = tuple(path for path in (libraries.networks, libraries.nodes, libraries.processors) if path)
    shipped = not Path(platform.file).suffix
    return (f"resources/platforms/{platform.file}.json" if shipped else platform.file, *TYPE_LIBRARIES, *own)


def problem_values(scenario: HeteroScenario) -> dict[str, Any]:
    """Return the settings on which scores depend, besides the prepared files of platform and workloads."""
    values = scenario.model_dump(mode="json")
    return {key: values[key] for key in PROBLEM}


def scenario_of(problem: Mapping[str, Any]) -> HeteroScenario:
    """Return the typed scenario of a frozen problem part."""
    return validate(HeteroScenario, {key: value for key, value in problem.items() if key != "upstream"})
