"""The replicates of a workload: what each of them is, and the settings that it is made from."""

from __future__ import annotations

from collections.abc import Iterable

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed
from schedlab.studies.hetero.settings import SPLITS, ReplicateSettings
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.trim import TrimSettings

OVERLAPPING = "published, overlapping"  # learned on and tested on, as in the published system
KINDS = {"lublin": "drawn workload", "swf": "piece of a trace", "batsim": "workload file"}


def units(workload: WorkloadSettings, replicates: ReplicateSettings) -> tuple[Unit, ...]:
    """Return the replicates of all splits in order. No two share a job, so each is a block of its own.

    Those of a workload file are all the same workload, and so one block.
    The seed of a replicate hangs from the workload's, its split and its number alone: more replicates change none that was there.
    """
    made = []
    same = workload.source == "batsim"
    kind = OVERLAPPING if same and replicates.total > 1 else KINDS[workload.source]
    for split in SPLITS:
        for number in range(getattr(replicates, split)):
            name = f"{split}-{number:02d}"
            block = "workload" if same else name
            made.append(Unit(name, kind, split, block, derive_seed(workload.seed, "workload", split, number)))
    return tuple(made)


def settings_of(workload: WorkloadSettings, replicates: ReplicateSettings, unit: Unit) -> WorkloadSettings:
    """Return the settings of one replicate: its own seed and, of a trace, the next piece after that of the replicate before it."""
    changes: dict[str, object] = {"seed": unit.seed, "name": f"{workload.name}, {unit.id}"}
    if workload.source == "swf" and replicates.total > 1:
        trim = workload.trim or TrimSettings()
        place = [other.id for other in units(workload, replicates)].index(unit.id)
        changes["trim"] = trim.model_copy(update={"first": trim.first + place * (trim.count or 0)})
    return workload.model_copy(update=changes)


def check_replicates(workload: WorkloadSettings, replicates: ReplicateSettings) -> Iterable[UserError]:
    """Yield what keeps the replicates from being workloads of their own."""
    if replicates.total == 1:
        return
    if workload.source == "batsim":
        if max(replicates.train, replicates.validation, replicates.test) > 1:
            what = f"{replicates.total} replicates of one workload file"
            yield UserError(what, where="replicates", expected="at most one of each split, all the same workload")
    elif workload.source == "swf":
        trim = workload.trim or TrimSettings()
        if trim.count is None:
            yield UserError(
                f"{replicates.total} replicates, and the length of a piece is not given", where="workload.trim", expected="the key count"
            )
        if trim.load is not None:
            yield UserError(
                "a load picks one piece of the trace", where="workload.trim.load", expected="no load, as there are several replicates"
            )
