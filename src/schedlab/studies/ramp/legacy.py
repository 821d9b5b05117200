"""Defects of the published system that change numbers, each a switch by name (specification, section 16)."""

from __future__ import annotations

from typing import Any

from schedlab.config.schema import Settings, setting


class LegacySettings(Settings):
    """Defects of the published simulator that change numbers; all off by default, all on in mode reference.

    The unit of graph files and contention inside a job are the scenario's: neither value is a defect by itself.
    """

    sizes_from_memory: bool = setting(
        False,
        doc="split jobs send memory instead of activations, and the child's memory where the child was split first",
    )
    bandwidth_shared_twice: bool = setting(
        False, doc="the bandwidth of a channel is divided by the groups once more inside collectives"
    )
    free_inside_racks: bool = setting(False, doc="a collective among servers of one rack takes no time")
    mutual_deps_count: bool = setting(
        False, doc="weight synchronisations of an op count as if they were among its inputs"
    )
    ticks_by_priority: bool = setting(
        False, doc="the shortest-first flow of each channel decides when a tick ends; started ones may end late"
    )
    sinks_unjoined: bool = setting(
        False, doc="mates of sinks, the highest id apart, start at time 0 instead of after their sink"
    )
    memory_of_forward_only: bool = setting(
        False,
        doc="placement reserves the forward pass alone and compares a reused list of servers by the sum of its memory",
    )
    utilisation_of_one_step: bool = setting(False, doc="busy time of one training step over the time of all steps")
    memo_by_degree: bool = setting(False, doc="a look-ahead is reused for any job of the same model and maximum degree")
    running_jobs_blocked: bool = setting(False, doc="jobs that run when the simulation ends count as blocked")
    endless_last_step: bool = setting(False, doc="time jumps to infinity where the last job is rejected")
    workers_before_completions: bool = setting(
        False, doc="a decision sees the workers that were mounted before the last completions"
    )
    letters_run_on: bool = setting(False, doc="shards behind the 26th are named by the characters that follow z")
    no_largest_cost: bool = setting(False, doc="the feature that marks the op of largest cost is always 0")


REFERENCE: dict[str, Any] = dict.fromkeys(LegacySettings.model_fields, True)
PUBLISHED = LegacySettings(**REFERENCE)
