"""The jobs and profiles of a simulation: live jobs, final states of ended jobs, and profiles for dynamic jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.files.profiles import Profile, link_profiles, parse_profile, used_profiles
from schedlab.batsim.files.workload import SEPARATOR, Job, Workload, parse_job
from schedlab.batsim.simulator.live_job import RUNNING, SUBMITTED, LiveJob
from schedlab.config.errors import UserError, did_you_mean


class Registry:
    """The jobs by full identifier, and the profiles. Of an ended job only the final state is stored."""

    def __init__(self, workloads: Sequence[Workload], drop_unused_profiles: bool) -> None:
        self._live: dict[str, LiveJob] = {}
        self._ended: dict[str, str] = {}
        self._profiles = {workload.name: dict(workload.profiles) for workload in workloads}
        self._static_ids = (
            frozenset(job.id for workload in workloads for job in workload.jobs) if drop_unused_profiles else None
        )
        self._workloads = workloads
        self._users: Counter[tuple[str, str]] | None = None
        if drop_unused_profiles:
            self._users = Counter((workload.name, job.profile.name) for workload in workloads for job in workload.jobs)
        self.unfinished = 0  # submitted jobs whose end has not been reported to the scheduler

    def submit(self, job: Job, submission: float) -> LiveJob:
        """Add and return a job that is submitted now; `submission` is the date in the outputs (s)."""
        live = self._live[job.id] = LiveJob(job, submission)
        self.unfinished += 1
        return live

    def live(self, identifier: Any, event: Any) -> LiveJob:
        """Return a submitted or running job. Raises ProtocolError if there is none with this identifier."""
        job = self._live.get(identifier) if isinstance(identifier, str) else None
        if job is None:
            raise self._unknown(identifier, event)
        return job

    def live_or_ended(self, identifier: Any, event: Any) -> LiveJob | None:
        """Return a live job; None for a job that has ended. Raises ProtocolError for the identifier of no submitted
        job.
        """
        if isinstance(identifier, str) and identifier in self._ended:
            return None
        return self.live(identifier, event)

    def submitted(self, identifier: Any, event: Any) -> LiveJob:
        """Return a waiting job. Raises ProtocolError for any other."""
        job = self._live.get(identifier) if isinstance(identifier, str) else None
        if job is None:
            raise self._unknown(identifier, event)
        if job.state != SUBMITTED:
            raise ProtocolError(f"job '{identifier}' is {job.state}", event, expected="a job that is SUBMITTED")
        return job

    def forget(self, job: LiveJob) -> None:
        """Remove a job that has ended, and its profile if no other job uses it and reuse is off."""
        identifier = job.job.id
        del self._live[identifier]
        self._ended[identifier] = job.state
        if self._users is not None:
            key = (identifier.partition(SEPARATOR)[0], job.job.profile.name)
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key]
                self._profiles[key[0]].pop(key[1], None)

    def with_state(self, state: str) -> Iterator[LiveJob]:
        """Return live jobs in a state, in order of submission."""
        return (job for job in self._live.values() if job.state == state)

    def running(self) -> Iterator[LiveJob]:
        """Return running jobs."""
        return self.with_state(RUNNING)

    def profile_named(self, job: LiveJob, name: str) -> Profile:
        """Return a profile of the job's workload. Raises ProtocolError if it is unknown or no longer kept."""
        profiles = self._profiles[job.job.id.partition(SEPARATOR)[0]]
        if name not in profiles:
            raise ProtocolError(
                f"job '{job.job.id}' runs profile '{name}', which is unknown or no longer kept",
                remedy=did_you_mean(name, profiles),
            )
        return profiles[name]

    def any_profile(self, name: Any, job: LiveJob, event: Any) -> Profile:
        """Return a profile by `workload!name`, or by its name in the job's workload. Raises ProtocolError if it is
        unknown.
        """
        workload, separator, short = str(name).partition(SEPARATOR)
        if not separator:
            workload, short = job.job.id.partition(SEPARATOR)[0], str(name)
        profiles = self._profiles.get(workload, {})
        if short not in profiles:
            raise ProtocolError(f"unknown profile '{name}'", event, remedy=did_you_mean(short, profiles))
        with _told_of(event):
            _link(profiles, short)
        return profiles[short]

    def register_profile(self, workload: Any, name: Any, data: Any, event: Any) -> None:
        """Add a profile, and its workload if that is new. Raises ProtocolError for a wrong name or description, and for
        a name that another profile has.
        """
        if (
            not isinstance(workload, str)
            or not workload
            or SEPARATOR in workload
            or not isinstance(name, str)
            or not name
        ):
            raise ProtocolError(
                "names no workload and profile", event, expected="workload_name and profile_name, texts"
            )
        profiles = self._profiles.setdefault(workload, {})
        if name in profiles:
            if profiles[name].json == data:
                return
            raise ProtocolError(
                f"profile '{name}' of workload '{workload}' exists already, with other contents",
                event,
                expected="a new name",
            )
        with _told_of(event):
            profiles[name] = parse_profile(name, data, f"profile '{name}'")

    def register_job(self, identifier: Any, data: Any, event: Any) -> Job:
        """Return the job that the scheduler describes. Raises ProtocolError if the identifier is taken or the
        description is wrong.
        """
        workload, separator, number = identifier.partition(SEPARATOR) if isinstance(identifier, str) else ("", "", "")
        if not separator or not workload or not number:
            raise ProtocolError(
                f"'{identifier}' is no identifier of a job", event, expected=f"workload{SEPARATOR}number"
            )
        if identifier in self._live or identifier in self._ended or self._is_static(identifier):
            raise ProtocolError(f"a second job '{identifier}'", event, expected="an identifier that no job had before")
        profiles = self._profiles.get(workload, {})
        if isinstance(data, dict) and isinstance(data.get("profile"), str) and data["profile"] not in profiles:
            raise ProtocolError(
                f"unknown profile '{data['profile']}' in workload '{workload}'",
                event,
                expected="a profile that was registered or that the workload has",
                remedy="register it first, or set profile_reuse where its last job has ended",
            )
        with _told_of(event):
            if isinstance(data, dict) and isinstance(data.get("profile"), str):
                _link(profiles, data["profile"])
            job = parse_job(
                {"subtime": 0, **data, "id": identifier} if isinstance(data, dict) else data, workload, profiles, "job"
            )
        shown = {**data, "id": identifier}
        job.keys, job.values = tuple(shown), tuple(shown.values())
        if self._users is not None:
            self._users[workload, job.profile.name] += 1
        return job

    def _is_static(self, identifier: str) -> bool:
        if self._static_ids is None:
            self._static_ids = frozenset(job.id for workload in self._workloads for job in workload.jobs)
        return identifier in self._static_ids

    def _unknown(self, identifier: Any, event: Any) -> ProtocolError:
        if isinstance(identifier, str) and identifier in self._ended:
            return ProtocolError(
                f"job '{identifier}' has ended ({self._ended[identifier]})", event, expected="a job that is not over"
            )
        return ProtocolError(
            f"no job '{identifier}' was submitted", event, expected="the identifier of a JOB_SUBMITTED"
        )


def _link(profiles: dict[str, Profile], first: str) -> None:
    """Link a profile and all profiles that it may run. Raises UserError if one is unknown or no longer kept."""
    used = {name: profiles[name] for name in sorted(used_profiles(profiles, first)) if name in profiles}
    link_profiles(used, lambda name: f"profile '{name}'")


class _told_of:
    """Turns a UserError about an entry into a ProtocolError about its event."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, UserError) and not isinstance(error, ProtocolError):
            raise ProtocolError(
                f"{error.where}: {error.what}" if error.where else error.what,
                self._event,
                expected=error.expected,
                remedy=error.remedy,
            ) from None
