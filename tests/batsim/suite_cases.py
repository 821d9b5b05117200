"""What Batsim 4.2.1's own tests ask of a `batsim` command, as runs and what is expected of each.

python tests/batsim/suite_cases.py prints the table of docs/reference/batsim_suite.md.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

SMALL, CLUSTER, PROPERTIES = "small_platform", "cluster512", "properties_example"
ENERGY = ("energy_platform_homogeneous_no_net_128", "cluster_energy_128")
USAGE, USAGE_TRACES = "small_platform_usage_replay", "test_usage_trace"
SEVEN = (SMALL, USAGE, CLUSTER, "cluster512_pfs", *ENERGY, PROPERTIES)
DELAY, COMPUTATION, TOTAL = "test_one_delay_job", "test_one_computation_job", "test_one_computation_job_tot"
ONE_JOB = (DELAY, COMPUTATION, TOTAL)
VARIOUS, SEQUENCE, DELAYS = "test_various_profile_types", "test_sequence_delay", "test_delays"
SMALL_ONES = (DELAYS, SEQUENCE, VARIOUS)
BASIC = ("fcfs", "easy", "filler", "easyBackfill")
FORWARD, DYNAMIC = "--forward-profiles-on-submission", "--enable-dynamic-jobs"


@dataclass(frozen=True)
class Run:
    """A platform and a workload by name, a scheduler and its options, further arguments of `batsim`.

    fails   part of the sentence with which `batsim` has to end; empty: it has to end well
    """

    platform: str
    workload: str
    scheduler: str | None = "fcfs"
    options: dict[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    fails: str = ""

    @property
    def name(self) -> str:
        """What the run is called among tests."""
        options = ",".join(f"{name}={value}" for name, value in self.options.items())
        parts = [self.platform, self.workload, self.scheduler or "none", options, *self.arguments]
        return "/".join(part.rpartition("/")[2] for part in parts if part).replace(" ", "_")


@dataclass(frozen=True)
class Case:
    """A case of Batsim's tests: its runs, the scheduler in words, and what is `expected` besides success.

    check     name of a function of the test file that looks at each run that ends well
    instead   how `batsim` answers where it cannot do what is asked
    """

    runs: tuple[Run, ...]
    schedulers: str
    expected: str
    check: str = ""
    instead: str = ""


def runs(
    platforms: Any, workloads: Any, schedulers: Any = ("fcfs",), options: Any = ({},), **more: Any
) -> tuple[Run, ...]:
    """Every combination."""
    return tuple(Run(*drawn, **more) for drawn in itertools.product(platforms, workloads, schedulers, options))


def _dynamic(acknowledge: bool, reuse: bool) -> tuple[str, ...]:
    more = (("--acknowledge-dynamic-jobs", acknowledge), ("--enable-profile-reuse", reuse))
    return (DYNAMIC, *(flag for flag, wanted in more if wanted))


def _submitting() -> tuple[Run, ...]:
    modes = ({"longer": True, "again": True}, {"longer": False, "again": False})
    drawn = itertools.product((DELAY, VARIOUS), (0, 1, 10), modes, (True, False))
    return tuple(
        Run(SMALL, workload, "submitter", {"count": count, **mode}, _dynamic(acknowledge, not mode["longer"]))
        for workload, count, mode, acknowledge in drawn
    )


KILLS = tuple({"delay": delay, "times": times} for delay in (0, 1, 5, 10, 15) for times in (1, 2))
NO_ENERGY = "a simulation with energy"
CASES: dict[str, Case] = {
    "basic 1": Case(runs([SMALL], SMALL_ONES, BASIC), "ours, PyBatsim's easyBackfill", ""),
    "basic 2": Case(runs(SEVEN, ONE_JOB, BASIC), "ours, PyBatsim's easyBackfill", ""),
    "no scheduler": Case(runs(SEVEN, SMALL_ONES, [None], arguments=("--no-sched",)), "none", ""),
    "dynamic submission": Case(
        _submitting(), "small one", "every registered job is in the table", "all_registered_jobs_ran"
    ),
    "energy": Case(
        runs(ENERGY, SMALL_ONES, ("sleeper",), ({"after": 0},), arguments=("--energy",))
        + runs(ENERGY, SMALL_ONES, ("energy watcher",), arguments=("--energy",))
        + runs(ENERGY, SMALL_ONES, ("sleeper",), ({"after": 0},), fails=NO_ENERGY)
        + runs(ENERGY, SMALL_ONES, ("energy watcher",), fails=NO_ENERGY),
        "small ones",
        "failure without `--energy`",
        "energy_was_consumed",
    ),
    "energy, minimal": Case(
        runs(ENERGY, [f"test_energy_minimal_load{load}" for load in (0, 50, 100)], ("sleeper",), ({"after": 30},),
             arguments=("--energy",)),
        "small one",
        "6.1 s to sleep, 151.52 s to wake",
        "hosts_slept_and_woke",
    ),
    "external events": Case(
        runs([SMALL], [VARIOUS], ("filler", "fillerSchedWithEvents"), arguments=("--events", "test_events_4hosts")),
        "ours, PyBatsim's fillerSchedWithEvents", "",
    ),
    "generic events": Case(
        runs([SMALL], [VARIOUS], ("fillerSchedWithEvents",),
             arguments=("--events", "test_generic_event", "--forward-unknown-events"))
        + runs([SMALL], [VARIOUS], ("fillerSchedWithEvents",), arguments=("--events", "test_generic_event"),
               fails="some_generic_event"),
        "PyBatsim's fillerSchedWithEvents", "failure without `--forward-unknown-events`",
    ),
    "kill after a delay": Case(
        runs([SMALL], SMALL_ONES, ("killer",), KILLS, arguments=(FORWARD,)), "small one",
        "no execution time above the delay", "killed_in_time",
    ),
    "kill on submission": Case(
        runs([SMALL], SMALL_ONES, ("killer on submission",), arguments=(FORWARD,)), "small one", "",
    ),
    "kill, progress": Case(
        runs([SMALL], ONE_JOB, ("killer",), KILLS[::2], arguments=(FORWARD,)), "small one",
        "progress in JOB_KILLED is delay / total", "progress_agrees",
    ),
    "fewer machines": Case(
        runs([SMALL], (COMPUTATION, TOTAL), ("fraction",), [{"share": share} for share in (0.25, 0.5, 0.75, 1)]),
        "small one", "execution times, to 1e-4 s", "slower_on_fewer",
    ),
    "platform properties": Case(
        runs([PROPERTIES], [VARIOUS], ("fillerSched", "seeing")), "PyBatsim's fillerSched, small one",
        "properties of the zones",
    ),
    "compute sharing": Case(
        runs([CLUSTER], ["example_workload_hpc_seed1_jobs250"], ("randomSched",),
             arguments=("--enable-compute-sharing",)),
        "PyBatsim's randomSched", "success, on another workload",
    ),
    "metadata": Case(
        runs([SMALL], SMALL_ONES, ("filling",), ({}, {"metadata": "of a job"}))
        + runs([SMALL], SMALL_ONES, ("submitter",), tuple({"count": 3, "longer": True, "again": True, **more}
               for more in ({}, {"metadata": "of a job"})), arguments=_dynamic(True, False)),
        "small ones", "column metadata filled for all jobs or for none", "metadata_everywhere_or_nowhere",
    ),
    "submission order": Case(
        runs([SMALL], (*SMALL_ONES, "test_same_submit_time")), "ours",
        "JOB_SUBMITTED in the order of date and identifier", "submitted_in_order",
    ),
    "stencil tutorial": Case(
        runs(["cluster512_pfs"], ["test_tuto_stencil"]), "ours", "order of execution times", "stencil_times"
    ),
    "usage traces": Case(
        runs([USAGE], [USAGE_TRACES], arguments=("--energy",)), "ours",
        "execution times and energies equal the calculated ones", "usage_as_calculated",
    ),
    "walltime": Case(
        runs([CLUSTER], (*SMALL_ONES, "test_walltime")), "ours",
        "no walltime is exceeded; a job succeeds if it ends before its walltime (a parallel task also if it ends at "
        "it), and fails otherwise", "walltimes_hold",
    ),
    "SMPI mapping, SMPI workloads": Case(
        runs([SMALL], ["test_smpi_compute_only"], fails="smpi"), "ours", "", instead="profile type `smpi` is refused"
    ),
    "workflow": Case(
        runs([CLUSTER], [DELAY], arguments=("-W", "GENOME.d.351024866.5.dax"), fails="--workflow"), "ours", "",
        instead="option `--workflow` is refused",
    ),
    "redis": Case(
        runs([SMALL], SMALL_ONES, BASIC[:3], arguments=("--enable-redis",), fails="--enable-redis"), "ours", "",
        instead="option `--enable-redis` is refused",
    ),
}  # fmt: skip


def table() -> list[str]:
    """The lines of the table of docs/reference/batsim_suite.md."""
    lines = ["| case | runs | scheduler | expected | passes |", "|---|---:|---|---|---|"]
    for name, case in CASES.items():
        expected = case.expected or ("success" if not case.instead else "")
        verdict = f"no: {case.instead}" if case.instead else "yes"
        lines.append(f"| {name} | {len(case.runs)} | {case.schedulers} | {expected} | {verdict} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
