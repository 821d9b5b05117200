"""`schedlab cloud sweep`: measures a training script on a grid of allocations, and fits the model to the
measurements.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path, check_output_files
from schedlab.studies.cloud.live.machine import machine_resources
from schedlab.studies.cloud.live.process import ScriptFailed
from schedlab.studies.cloud.live.run import LiveRequest, new_folder, run_script
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.fit_report import fit_report, print_report

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)


def grid_of(arguments: argparse.Namespace, limits: ResourceConfig) -> list[tuple[Allocation, int | None]]:
    """Return all combinations of the GPUs, cores, memory (GB) and batch sizes to measure; a batch size of None is that
    of the script. Values that are not given are one, two and all GPUs; one core, half of the cores and all; and all
    memory. Raises UserError for values beyond the machine.
    """
    most, least = limits.most, limits.least
    usual: dict[str, Any] = {
        "gpus": sorted({max(least.gpu_count, min(count, most.gpu_count)) for count in (1, 2, most.gpu_count)}),
        "cores": sorted({max(least.cpu_count, count) for count in (1, most.cpu_count // 2, most.cpu_count)}),
        "memory": [most.memory_gb],
    }
    axes = {name: getattr(arguments, name) or values for name, values in usual.items()}
    for (name, values), largest in zip(axes.items(), most, strict=True):
        smallest = 0 if name == "gpus" else 1
        for value in values:
            if not smallest <= value <= largest:
                expected = f"{smallest} to {largest:g}, which this machine has"
                raise UserError(f"{value:g}", where=f"--{name}", expected=expected)
    points = itertools.product(*axes.values(), arguments.batches or [None])
    return [(Allocation(gpus, cores, memory), batch) for gpus, cores, memory, batch in points]


def sweep(request: LiveRequest, grid: Iterable[tuple[Allocation, int | None]], folder: Path) -> pd.DataFrame:
    """Return the completed logs of a script on all points of a grid (allocation, batch size), with a row for each
    epoch, and the number of the point in the column `sample`.

    A point at which a limit is exceeded is left out, and a warning is logged. Each run has a separate folder in
    `folder`. Raises ScriptFailed if no point could be run.
    """
    import pandas as pd

    tables = []
    for number, (allocation, batch) in enumerate(grid):
        run = run_script(replace(request, allocation=allocation, batch=batch), folder / f"{number:03d}")
        held = f"{allocation.gpu_count} GPUs, {allocation.cpu_count} cores, {allocation.memory_gb:g} GB"
        if run.how != "done":
            log.warning("%s, batch %s: left out, the limit on %s was broken", held, batch or "as it is", run.how)
            continue
        log.info("%s, batch %d: %.0f samples/s", held, run.summary["batch_size"], run.table["throughput"].iloc[-1])
        tables.append(run.table.assign(sample=number))  # points may be alike: a script may keep its own batch
    if not tables:
        what, expected = "no point of the grid could be run", "a larger limit on time or memory"
        raise ScriptFailed(what, where=str(request.script), expected=expected)
    return pd.concat(tables, ignore_index=True)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Run `schedlab cloud sweep`; return exit status 1 if no point of the grid could be run."""
    check_output_files({"--output": arguments.output}, {"--training_file": arguments.training_file})
    limits = machine_resources()
    grid = grid_of(arguments, limits)
    numbers = {"--epochs": [arguments.epochs], "--time_limit": [arguments.time_limit]}
    numbers |= {"--gpus-per-node": [arguments.gpus_per_node], "--batches": arguments.batches or []}
    for option, values in numbers.items():
        for value in values:
            if not 0 < value < math.inf:
                raise UserError(f"{value:g}", where=option, expected="a finite number above 0")
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
