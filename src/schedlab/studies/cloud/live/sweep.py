"""`schedlab cloud sweep`: measures a training script on a grid of allocations, and fits the model to the
measurements.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.config.runtime.output_files import check_output_files
from schedlab.studies.cloud.live.machine import machine_resources
from schedlab.studies.cloud.live.process import ScriptFailed
from schedlab.studies.cloud.live.run import LiveRequest, new_folder, run_script
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.fit_report import fit_report, print_report

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Grid:
    """The points to measure: all combinations of GPUs, cores, memory (GB) and batch size (None: that of the script)."""

    gpus: Sequence[int]
    cores: Sequence[int]
    memory: Sequence[float]
    batches: Sequence[int | None] = field(default=(None,))

    def points(self) -> Iterator[tuple[Allocation, int | None]]:
        """Yield allocations and batch sizes."""
        for gpus, cores, memory, batch in itertools.product(self.gpus, self.cores, self.memory, self.batches):
            yield Allocation(gpus, cores, memory), batch


def default_grid(limits: ResourceConfig) -> Grid:
    """Return the default grid: one, two and all GPUs; one core, half of the cores and all; all memory; the batch size
    of the script.
    """
    gpus = sorted(
        {max(limits.gpu_count_min, min(count, limits.gpu_count_max)) for count in (1, 2, limits.gpu_count_max)}
    )
    cores = sorted({max(limits.cpu_count_min, count) for count in (1, limits.cpu_count_max // 2, limits.cpu_count_max)})
    return Grid(gpus, cores, (limits.most.memory_gb,))


def require_within(grid: Grid, limits: ResourceConfig) -> None:
    """Raise UserError if a point of the grid exceeds the machine."""
    named = zip(("gpus", "cores", "memory"), (grid.gpus, grid.cores, grid.memory), limits.most, strict=True)
    for name, values, most in named:
        least = 0 if name == "gpus" else 1
        for value in values:
            if not least <= value <= most:
                expected = f"{least} to {most:g}, which this machine has"
                raise UserError(f"{value:g}", where=f"--{name}", expected=expected)


def sweep(request: LiveRequest, grid: Grid, folder: Path) -> pd.DataFrame:
    """Return the completed logs of a script on all points of a grid, with a row for each epoch, and the number of the
    point in the column `sample`.

    A point at which a limit is exceeded is left out, and a warning is logged. Each run has a separate folder in
    `folder`. Raises ScriptFailed if no point could be run.
    """
    import pandas as pd

    tables = []
    for number, (allocation, batch) in enumerate(grid.points()):
        run = run_script(replace(request, allocation=allocation, batch=batch), folder / f"{number:03d}")
        held = f"{allocation.gpu_count} GPUs, {allocation.cpu_count} cores, {allocation.memory_gb:g} GB"
        if run.how != "done":
            log.warning("%s, batch %s: left out, the limit on %s was broken", held, batch or "as it is", run.how)
            continue
        log.info("%s, batch %d: %.0f samples/s", held, run.summary["batch_size"], run.table["throughput"].iloc[-1])
        tables.append(run.table.assign(sample=number))  # points may be alike: a script may keep its own batch
    if not tables:
        raise ScriptFailed(
            "no point of the grid could be run", where=str(request.script), expected="a larger limit on time or memory"
        )
    return pd.concat(tables, ignore_index=True)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Run `schedlab cloud sweep`; return exit status 1 if no point of the grid could be run."""
    check_output_files({"--output": arguments.output}, {"--training_file": arguments.training_file})
    limits = machine_resources()
    usual = default_grid(limits)
    given = (arguments.gpus or usual.gpus, arguments.cores or usual.cores, arguments.memory or usual.memory)
    grid = Grid(*given, arguments.batches or (None,))
    require_within(grid, limits)
    for name in ("epochs", "time_limit", "gpus_per_node"):
        value = getattr(arguments, name)
        if not (value > 0 and math.isfinite(value)):
            where = "--gpus-per-node" if name == "gpus_per_node" else f"--{name}"
            raise UserError(f"{value:g}", where=where, expected="a finite number above 0")
    for batch in arguments.batches or ():
        if batch < 1:
            raise UserError(f"{batch}", where="--batches", expected="1 or more samples")
    request = LiveRequest(
        script=arguments.training_file,
        allocation=limits.most,
        epochs=arguments.epochs,
        seed=arguments.seed,
        prices=limits,
        dataset_path=arguments.dataset_path,
        seconds=arguments.time_limit,
    )
    folder = new_folder(arguments.output.with_name(f"{arguments.output.stem}-runs"))
    try:
        table = sweep(request, grid, folder)
    except ScriptFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with atomic_path(arguments.output) as temporary:
        table.to_csv(temporary, index=False)
    print_report(fit_report([arguments.output], arguments.gpus_per_node), arguments.json)
    return 0
