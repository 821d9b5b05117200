"""Options of a simulation, besides its platform and workloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Options:
    """Options of a simulation; brackets contain the option of Batsim's command line with the same effect.

    energy                    power states, energy and their outputs [-E]
    events_files              files of external events, one JSON object per line [--events]
    forward_unknown_events    pass external events of unknown types to the scheduler instead of refusing them
                              [--forward-unknown-events]
    dynamic_jobs              the scheduler may register jobs and profiles [--enable-dynamic-jobs]
    acknowledge_dynamic_jobs  answer each registration by JOB_SUBMITTED [--acknowledge-dynamic-jobs]
    profile_reuse             keep profiles whose last job ended, for later dynamic jobs [--enable-profile-reuse]
    forward_profiles          send the profile with each JOB_SUBMITTED [--forward-profiles-on-submission]
    compute_sharing           several jobs may run on one host [--enable-compute-sharing]
    storage_sharing           several jobs may have one storage host in their allocations [without
                              --disable-storage-sharing]
    mmax                      use only the first N compute hosts; 0: all [--mmax]
    mmax_workload             use as many compute hosts as the workloads' largest nb_res [--mmax-workload]
    master_host               name of the host that computes nothing, if no host has the role master [-m]
    roles                     roles by host, added to those of the platform [-r]
    network                   "ignore": communications take no time, whatever the platform's links
    control_latency           completions reach the scheduler after the latency from the job's first host to the master,
                              one after another
    round_to_microseconds     numbers in messages have six decimals, as Batsim writes them, so that both back ends give
                              the same decisions
    scheduler_config          text passed on in SIMULATION_BEGINS [--sched-cfg]
    """

    energy: bool = False
    events_files: tuple[Path | str, ...] = ()
    forward_unknown_events: bool = False
    dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = False
    forward_profiles: bool = False
    compute_sharing: bool = False
    storage_sharing: bool = True
    mmax: int = 0
    mmax_workload: bool = False
    master_host: str = "master_host"
    roles: Mapping[str, str] = field(default_factory=dict)
    network: Literal["simulate", "ignore"] = "simulate"
    control_latency: bool = False
    round_to_microseconds: bool = True
    scheduler_config: str = ""
