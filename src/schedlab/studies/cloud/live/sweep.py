"""Measuring a training script over a grid of allocations, and the performance model that is fitted to it (`schedlab
cloud sweep`).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.process import ScriptFailed
from schedlab.studies.cloud.live.run import LiveRequest, run_script
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.fit_report import fit_report

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Grid:
    """What to measure: every combination of GPUs, cores, memory (GB) and batch sizes (None: the script's own)."""

    gpus: Sequence[int]
    cores: Sequence[int]
    memory: Sequence[float]
    batches: Sequence[int | None] = field(default=(None,))

    def points(self) -> Iterator[tuple[Allocation, int | None]]:
        """Yield allocations and batch sizes."""
        for gpus, cores, memory, batch in itertools.product(self.gpus, self.cores, self.memory, self.batches):
            yield Allocation(gpus, cores, memory), batch


def default_grid(limits: ResourceConfig) -> Grid:
    """Return one, two and all GPUs; one core, half of them and all; all memory; the script's own batch."""
    gpus = sorted(
        {max(limits.gpu_count_min, min(count, limits.gpu_count_max)) for count in (1, 2, limits.gpu_count_max)}
    )
    cores = sorted({max(limits.cpu_count_min, count) for count in (1, limits.cpu_count_max // 2, limits.cpu_count_max)})
    return Grid(gpus, cores, (limits.most.memory_gb,))


def require_within(grid: Grid, limits: ResourceConfig) -> None:
    """Raise UserError where a point of the grid is beyond what the machine has."""
    named = zip(("gpus", "cores", "memory"), (grid.gpus, grid.cores, grid.memory), limits.most, strict=True)
    for name, values, most in named:
        for value in values:
            if value > most or value < (0 if name == "gpus" else 1):
                raise UserError(f"{value:g}", where=f"--{name}", expected=f"at most {most:g}, which this machine has")


def sweep(request: LiveRequest, grid: Grid, folder: Path) -> pd.DataFrame:
    """Return the completed logs of a script on every point of a grid, a row an epoch, with the number of the point
    (`sample`).

    A point that breaks a limit is left out, and said so; each run has a folder of its own below `folder`. Raises
    ScriptFailed where no point could be run.
    """
    from dataclasses import replace

    import pandas as pd

    tables = []
    for number, (allocation, batch) in enumerate(grid.points()):
        run = run_script(replace(request, allocation=allocation, batch=batch), folder / f"{number:03d}")
        held = f"{allocation.gpu_count} GPUs, {allocation.cpu_count} cores, {allocation.memory_gb:g} GB"
        if run.how != "done":
            log.warning("%s, batch %s: left out, the limit on %s was broken", held, batch or "as it is", run.how)
            continue
        log.info("%s, batch %d: %.0f samples/s", held, run.summary["batch_size"], run.table["throughput"].iloc[-1])
        tables.append(
            run.table.assign(sample=number)
        )  # where the script keeps its own batch, points are alike but for it
    if not tables:
        raise ScriptFailed(
            "no point of the grid could be run", where=str(request.script), expected="a larger limit on time or memory"
        )
    return pd.concat(tables, ignore_index=True)


def sweep_report(table_path: Path, gpus_per_node: int) -> dict[str, Any]:
    """Return the fit of a sweep's table, as `schedlab cloud fit` prints it."""
    return fit_report([table_path], gpus_per_node)
