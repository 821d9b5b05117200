"""Short runs of a script that stand for a whole one: baseline samples on the whole machine, and probes that the model is fitted to.

A short run is not a whole run divided by its share: the first epoch warms up, and the start is paid once. Both numbers are kept.
Source: specification of the study cloud, A11 (3, 4), A14 (5) and B3.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.studies.cloud.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.live import LiveRequest, LiveRun, run_script
from schedlab.studies.cloud.live_process import ScriptFailed

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
PROBE_EPOCHS = 2


@dataclass(frozen=True)
class Extrapolated:
    """What a short run says of the whole one: time (s) and cost ($) by its epochs after the first, and by its share as published."""

    time: float
    cost: float
    throughput: float
    time_by_ratio: float
    cost_by_ratio: float


def extrapolated(run: LiveRun, epochs: int) -> Extrapolated:
    """Return the extrapolation of a run to `epochs`: its start and epochs as measured, the rest at the mean of all but the first."""
    times = run.table["epoch_time"].to_numpy(float)
    steady = float(times[1:].mean()) if len(times) > 1 else float(times[0])
    time = run.overhead + float(times[:epochs].sum()) + max(0, epochs - len(times)) * steady
    price = run.request.prices.hourly_price(*run.request.allocation) / 3600.0
    throughput = run.table["throughput"].to_numpy(float)
    by_ratio = float(times.sum()) * epochs / len(times)
    mean = float(throughput[1:].mean()) if len(throughput) > 1 else float(throughput[0])
    return Extrapolated(time, time * price, mean, by_ratio, by_ratio * price)


def sample_baseline(request: LiveRequest, count: int, epochs: int, folder: Path) -> list[LiveRun]:
    """Run the first `epochs` of a script `count` times on the request's allocation, each time with a seed of its own.

    Their logs tell the length of the whole training, which they are no run of. Raises ScriptFailed for a limit broken.
    """
    runs, whole = [], max(request.epochs, epochs)
    for number in range(count):
        sample = replace(request, epochs=epochs, total_epochs=whole, seed=request.seed + number)
        run = run_script(sample, folder / f"baseline-{number + 1}")
        if run.how != "done":
            told = f"baseline sample {number + 1} broke its limit on {run.how}"
            raise ScriptFailed(told, where=str(request.script), remedy="raise time_limit, or resource.memory_max")
        log.info("baseline sample %d of %d: %.1f s, %.0f samples/s", number + 1, count, run.seconds, run.table["throughput"].iloc[-1])
        runs.append(run)
    return runs


def probe_allocations(limits: ResourceConfig) -> list[Allocation]:
    """Return where to measure on one node: 1, 2 and all GPUs with all cores; one core and half of them with the fewest GPUs (B3)."""
    least, most = limits.least, limits.most
    gpus = [
        Allocation(max(least.gpu_count, min(count, most.gpu_count)), most.cpu_count, most.memory_gb) for count in (1, 2, most.gpu_count)
    ]
    cores = [Allocation(least.gpu_count, max(least.cpu_count, count), most.memory_gb) for count in (1, most.cpu_count // 2)]
    return list(dict.fromkeys([most, *gpus, *cores]))


def measure(request: LiveRequest, samples: int, epochs: int, per_gpu: bool, folder: Path) -> tuple[list[LiveRun], list[LiveRun]]:
    """Return baseline samples of so many epochs on the request's allocation, the largest one, and probes of the others.

    Without long enough samples that one is probed, too. per_gpu: on each GPU, the probes have the batch of the largest allocation.
    Raises ScriptFailed where nothing could be run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = sample_baseline(request, samples, epochs, folder)
    others = [allocation for allocation in probe_allocations(request.prices) if allocation != request.allocation]
    probes = [] if taken and epochs >= PROBE_EPOCHS else probe(request, [request.allocation], folder)
    largest = (*taken, *probes)[:1]
    on_gpu = round(float(largest[0].summary["batch_size"]) / max(1, request.allocation.gpu_count)) if per_gpu and largest else None
    probes += probe(request, others, folder, on_gpu)
    if not taken and not probes:
        raise ScriptFailed("no probe could be run", where=str(request.script), expected="a larger limit on time or memory")
    return taken, probes


def probe(request: LiveRequest, allocations: Sequence[Allocation], folder: Path, on_gpu: int | None = None) -> list[LiveRun]:
    """Run a script shortly on each allocation; one that breaks a limit is left out. on_gpu: batch on each GPU (None: the request's)."""
    runs = []
    for allocation in allocations:
        name = f"probe-{allocation.gpu_count}g-{allocation.cpu_count}c-{allocation.memory_gb:g}m"
        batch = on_gpu * max(1, allocation.gpu_count) if on_gpu else request.batch
        run = run_script(replace(request, allocation=allocation, batch=batch, epochs=PROBE_EPOCHS, total_epochs=None), folder / name)
        if run.how == "done":
            log.info("probe on %d GPUs, %d cores: %.0f samples/s", *allocation[:2], run.table["throughput"].iloc[-1])
            runs.append(run)
        else:
            log.warning("probe on %d GPUs, %d cores left out: it broke the limit on %s", *allocation[:2], run.how)
    return runs


def baseline_values(runs: Sequence[LiveRun], epochs: int) -> dict[str, Any]:
    """Return the baseline: means over samples of what each one says of the whole run, under the names of the reports."""
    found = [extrapolated(run, epochs) for run in runs]
    last = runs[0].summary
    table = combined([run.table for run in runs])
    columns = [name for name in table.columns if str(name).startswith("gpu_utilization_")]
    values = {name: float(np.mean([getattr(each, name) for each in found])) for name in Extrapolated.__dataclass_fields__}
    return {
        **runs[0].request.allocation._asdict(),
        "batch_size": int(last["batch_size"]),
        **values,
        "cpu_percent": float(table["cpu_percent"].mean()),
        "memory_used_gb": float(table["memory_used_gb"].max()),
        "gpu_utilization": float(table[columns].mean().mean()) if columns else None,
        "samples": len(runs),
        "sample_epochs": len(runs[0].table),
        "source": "measured",
    }


def combined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return all samples as one table with their number in `sample`."""
    import pandas as pd

    return pd.concat([table.assign(sample=number + 1) for number, table in enumerate(tables)], ignore_index=True)
