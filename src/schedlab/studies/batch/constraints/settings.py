"""The typed section `limits` of a scenario."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schedlab.config.schema import Settings, setting

Number = Annotated[int, Field(ge=0)]  # of a queue or partition, as in columns 15 and 16 of the trace
Most = Annotated[int, Field(ge=1)]
RESERVED_PARTITIONS = 6  # each doubles the number of sums that a kernel compares


class LimitSettings(Settings):
    """Limits of queues and partitions, by their numbers in the trace. Jobs take whole nodes, so their processors are
    those of their nodes.
    """

    queue: dict[Number, Most] = setting(
        {}, doc="largest number of processors that the running jobs of a queue may take together", unit="cores"
    )
    partition: dict[Number, Most] = setting(
        {}, doc="largest number of processors that the running jobs of a partition may take together", unit="cores"
    )
    queue_jobs: dict[Number, Most] = setting({}, doc="largest number of running jobs of a queue")
    partition_jobs: dict[Number, Most] = setting({}, doc="largest number of running jobs of a partition")
    reserved: dict[Number, Most] = setting(
        {},
        doc="processors that only jobs of a partition may take; these jobs may take all other processors, too",
        unit="cores",
        max_length=RESERVED_PARTITIONS,
    )
    memory: float | None = setting(
        None,
        doc="memory of the whole machine, of which a job takes what it requests (column 10) for each processor; jobs "
        "that request none take none; null: memory limits nothing",
        unit="GB",
        gt=0,
    )

    @property
    def some(self) -> bool:
        """Return whether there is a limit."""
        return self != LimitSettings()
