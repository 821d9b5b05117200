"""Workload files of Batsim: jobs that refer to profiles by name. They are always written in the same form, with one
line for each job and each profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.files import canonical_json, write_text
from schedlab.config.readers import read_json
from schedlab.workloads.trace import LARGEST

LEVEL = 99  # percentile of the job limits


@dataclass(frozen=True)
class BatsimWorkload:
    """A workload: resources, jobs ({id, subtime in s, res, profile, ...}) in order, profiles by name."""

    nb_res: int
    jobs: list[dict[str, Any]]
    profiles: dict[str, dict[str, Any]]

    def profile_of(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return the profile of a job."""
        return self.profiles[job["profile"]]


def write_batsim(path: Path | str, workload: BatsimWorkload) -> None:
    """Write a workload as JSON, atomically; profiles are sorted by name, jobs keep their order."""
    write_text(path, batsim_text(workload))


def batsim_text(workload: BatsimWorkload) -> str:
    """Return the JSON text of a workload."""
    jobs = ",\n".join(canonical_json(job) for job in workload.jobs)
    profiles = ",\n".join(
        f"{canonical_json(name)}:{canonical_json(profile)}" for name, profile in sorted(workload.profiles.items())
    )
    return f'{{"nb_res":{workload.nb_res},\n"jobs":[\n{jobs}],\n"profiles":{{\n{profiles}}}}}\n'


def read_batsim(path: Path | str) -> BatsimWorkload:
    """Read a workload file. The values that every reader needs are checked here; the simulator checks the profiles'
    other keys.

    Raises UserError for missing keys, wrong types, negative times and sizes, duplicate ids, and jobs whose profile is
    missing.
    """
    values = read_json(path, "a workload of Batsim")
    where = str(path)
    if not isinstance(values, dict):
        raise UserError("is no mapping", where=where, expected="the keys nb_res, jobs and profiles")
    resources, jobs, profiles = (values.get(key) for key in ("nb_res", "jobs", "profiles"))
    if resources is None or not _is_count(resources) or resources < 1:
        raise UserError(f"nb_res is {resources!r}", where=where, expected="a whole number above 0")
    if not isinstance(profiles, dict) or not all(isinstance(profile, dict) for profile in profiles.values()):
        raise UserError("profiles are no mapping of mappings", where=where, expected="profiles by name")
    if not isinstance(jobs, list):
        raise UserError("jobs are no list", where=where, expected="a list of jobs")
    seen: set[str] = set()
    for number, job in enumerate(jobs):
        _check_job(job, profiles, f"{where}: jobs[{number}]")
        if str(job["id"]) in seen:
            raise UserError(f"id {job['id']!r} occurs twice", where=f"{where}: jobs[{number}]", expected="each id once")
        seen.add(str(job["id"]))
    return BatsimWorkload(resources, jobs, profiles)


def _check_job(job: Any, profiles: dict[str, Any], where: str) -> None:
    if not isinstance(job, dict):
        raise UserError("is no mapping", where=where, expected="a job with id, subtime, res and profile")
    if not (isinstance(job.get("id"), str) or _is_count(job.get("id"))):
        raise UserError(f"id is {job.get('id')!r}", where=where, expected="a whole number or a text")
    if not _is_number(job.get("subtime")) or job["subtime"] < 0:
        raise UserError(f"subtime is {job.get('subtime')!r}", where=where, expected="a number of seconds, 0 or more")
    if not _is_count(job.get("res")):
        raise UserError(f"res is {job.get('res')!r}", where=where, expected="a whole number, 0 or more")
    if not isinstance(job.get("profile"), str) or job["profile"] not in profiles:
        raise UserError(
            f"profile {job.get('profile')!r} is not there", where=where, expected="the name of one of the profiles"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def set_work(workload: BatsimWorkload, reference_speed: float) -> BatsimWorkload:
    """Return a hand-written workload in which `req_ops` and `cpu` of each profile are the flop of `req_time` s at a
    speed in Gflop/s.

    Raises UserError for a profile without a requested time. Source: HDeepRM's custom workloads.
    """
    profiles = {}
    for name, profile in workload.profiles.items():
        if not _is_number(profile.get("req_time")) or profile["req_time"] < 0:
            raise UserError(
                f"req_time is {profile.get('req_time')!r}", where=f"profile {name}", expected="seconds, 0 or more"
            )
        work = reference_speed * profile["req_time"] * 1e9
        profiles[name] = {**profile, "req_ops": work, "cpu": work}
    return BatsimWorkload(workload.nb_res, workload.jobs, profiles)


def job_limits(workload: BatsimWorkload, *, legacy_zero_limits: bool = False) -> dict[str, float]:
    """Return the 99th percentiles over the jobs, by which a study divides its observations: max_time (s), max_core,
    max_mem (MB), max_mem_bw (GB/s per core).

    A limit of 0 is replaced by 1, unless legacy_zero_limits, because observations are divided by it. Raises UserError
    if there is no job, or if a profile lacks one of the values.
    """
    if not workload.jobs:
        raise UserError("the workload has no job", where="job limits", expected="at least one")
    found = {"max_time": [], "max_core": [job["res"] for job in workload.jobs], "max_mem": [], "max_mem_bw": []}
    for limit, key in (("max_time", "req_time"), ("max_mem", "mem"), ("max_mem_bw", "mem_bw")):
        for job in workload.jobs:
            value = workload.profile_of(job).get(key)
            if not _is_number(value):
                raise UserError(f"{key} is {value!r}", where=f"profile {job['profile']}", expected="a number")
            found[limit].append(value)
    limits = {limit: float(np.percentile(values, LEVEL)) for limit, values in found.items()}
    return limits if legacy_zero_limits else {limit: value or 1.0 for limit, value in limits.items()}
