"""Defects of the published system that change numbers, each a switch by name (docs/errata.md)."""

from __future__ import annotations

from typing import Any

from schedlab.config.schema import Settings, setting


class LegacySettings(Settings):
    """Defects of the published simulator that change numbers; all off by default, all on in mode reference.

    The unit of times in graph files, and contention among the messages of a job, are settings of the scenario, which
    the mode does not change.
    """

    sizes_from_memory: bool = setting(
        False,
        doc="split jobs send parameter memory instead of activations, and the child's memory if the "
        "child was split first",
    )
    bandwidth_shared_twice: bool = setting(
        False, doc="inside collectives, the bandwidth of a channel is divided by the number of groups a second time"
    )
    free_inside_racks: bool = setting(False, doc="collectives within a rack take no time")
    mutual_deps_count: bool = setting(
        False, doc="weight synchronisations count among an op's inputs, so it may start too early"
    )
    ticks_by_priority: bool = setting(
        False,
        doc="the event loop advances to the end of a channel's first flow (shortest first), so other running "
        "flows may end late",
    )
    sinks_unjoined: bool = setting(
        False,
        doc="backward ops of sinks start at time 0 instead of after their sink, except that of the sink with "
        "the highest id",
    )
    memory_of_forward_only: bool = setting(
        False,
        doc="placement reserves memory only for the forward pass, and reuses servers for another op if the "
        "sum of their free memory suffices",
    )
    utilisation_of_one_step: bool = setting(
        False, doc="utilisation is the busy time of one training step over the time of all steps"
    )
    memo_by_degree: bool = setting(False, doc="a look-ahead is reused for any job of the same model and maximum degree")
    running_jobs_blocked: bool = setting(False, doc="jobs that run when the simulation ends count as blocked")
    endless_last_step: bool = setting(False, doc="time jumps to infinity if the last job is rejected")
    workers_before_completions: bool = setting(
        False, doc="a decision observes the workers as occupied as they were before the last completions"
    )
    letters_run_on: bool = setting(False, doc="shards after the 26th are named by the characters after z")
    no_largest_cost: bool = setting(False, doc="the feature that marks the op of largest cost is always 0")


REFERENCE: dict[str, Any] = dict.fromkeys(LegacySettings.model_fields, True)
PUBLISHED = LegacySettings(**REFERENCE)
