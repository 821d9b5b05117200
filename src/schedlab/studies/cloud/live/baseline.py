"""Short runs of a script, which predict a whole run: baseline samples on the whole machine, and probes to which the
model is fitted.

A whole run takes less time than a short run divided by its share of the training, because the start and the slower
first epoch occur only once. Both predictions are reported. See docs/guide/cloud_live.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.studies.cloud.live.process import ScriptFailed
from schedlab.studies.cloud.live.run import LiveRequest, LiveRun, run_script
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.replay.sla import GPU_COLUMN

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
PROBE_EPOCHS = 2
Run = Callable[[LiveRequest, Path], LiveRun]


@dataclass(frozen=True)
class Pace:
    """Times on one allocation, s.

    start_up  the start, and the additional time of the first epoch
    epoch     each epoch
    """

    start_up: float
    epoch: float

    def time(self, epochs: int) -> float:
        """Return the time of a training of so many epochs, s."""
        return self.start_up + epochs * self.epoch


def pace(runs: Sequence[LiveRun]) -> Pace:
    """Return the pace of runs on one allocation, from the median of their starts and the means of their first and of
    their later epochs. If no run has a second epoch, all epochs are assumed to take as long as the first one.
    """
    times = [run.table["epoch_time"].to_numpy(float) for run in runs]
    first = float(np.mean([each[0] for each in times]))
    later = [float(each[1:].mean()) for each in times if len(each) > 1]
    epoch = float(np.mean(later)) if later else first
    return Pace(float(np.median([run.overhead for run in runs])) + max(0.0, first - epoch), epoch)


def sample_baseline(
    request: LiveRequest, count: int, epochs: int, folder: Path, run_one: Run = run_script
) -> list[LiveRun]:
    """Run the first `epochs` of a script `count` times on the request's allocation, each time with another seed.

    The logs state the length of the whole training, although the runs are short. Raises ScriptFailed if a run exceeds a
    limit.
    """
    runs, whole = [], max(request.epochs, epochs)
    for number in range(count):
        sample = replace(request, epochs=epochs, total_epochs=whole, seed=request.seed + number)
        run = run_one(sample, folder / f"baseline-{number + 1}")
        if run.how != "done":
            what = f"baseline sample {number + 1} broke its limit on {run.how}"
            remedy = "raise time_limit, disk_limit or resource.memory_max"
            raise ScriptFailed(what, where=str(request.script), remedy=remedy)
        speed = run.table["throughput"].iloc[-1]
        log.info("baseline sample %d of %d: %.1f s, %.0f samples/s", number + 1, count, run.seconds, speed)
        runs.append(run)
    return runs


def probe_allocations(limits: ResourceConfig) -> list[Allocation]:
    """Return the allocations to measure: 1, 2 and all GPUs with all cores; and 1 core and half of the cores with the
    fewest GPUs.
    """
    least, most = limits.least, limits.most
    gpus = [most._replace(gpu_count=max(least.gpu_count, min(count, most.gpu_count))) for count in (1, 2)]
    few = most._replace(gpu_count=least.gpu_count)
    cores = [few._replace(cpu_count=max(least.cpu_count, count)) for count in (1, most.cpu_count // 2)]
    return list(dict.fromkeys([most, *gpus, *cores]))


def measure(
    request: LiveRequest, samples: int, epochs: int, per_gpu: bool, folder: Path, run_one: Run = run_script
) -> tuple[list[LiveRun], list[LiveRun]]:
    """Return baseline samples of so many epochs on the request's allocation, which is the largest, and probes of the
    other allocations.

    If there are no samples, or if they are shorter than a probe, the largest allocation is probed, too. per_gpu: the
    probes have as many samples on each GPU as the largest allocation. run_one: runs a script or returns an earlier run
    of it (optimize.reuse). Raises ScriptFailed if nothing could be run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = sample_baseline(request, samples, epochs, folder, run_one)
    others = [allocation for allocation in probe_allocations(request.prices) if allocation != request.allocation]
    probes = [] if taken and epochs >= PROBE_EPOCHS else probe(request, [request.allocation], folder, None, run_one)
    on_gpu = None
    if per_gpu and (largest := [*taken, *probes]):
        on_gpu = round(float(largest[0].summary["batch_size"]) / max(1, request.allocation.gpu_count))
    probes += probe(request, others, folder, on_gpu, run_one)
    if not taken and not probes:
        expected = "a larger limit on time or memory"
        raise ScriptFailed("no probe could be run", where=str(request.script), expected=expected)
    return taken, probes


def probe(
    request: LiveRequest,
    allocations: Sequence[Allocation],
    folder: Path,
    on_gpu: int | None = None,
    run_one: Run = run_script,
) -> list[LiveRun]:
    """Run a script for a short time on each allocation, and return the runs. Runs that exceed a limit are left out.

    on_gpu  batch size on each GPU; None: the batch of the request
    """
    runs = []
    for allocation in allocations:
        name = f"probe-{allocation.gpu_count}g-{allocation.cpu_count}c-{allocation.memory_gb:g}m"
        batch = on_gpu * max(1, allocation.gpu_count) if on_gpu else request.batch
        short = replace(request, allocation=allocation, batch=batch, epochs=PROBE_EPOCHS, total_epochs=None)
        run = run_one(short, folder / name)
        if run.how == "done":
            log.info("probe on %d GPUs, %d cores: %.0f samples/s", *allocation[:2], run.table["throughput"].iloc[-1])
            runs.append(run)
        else:
            log.warning("probe on %d GPUs, %d cores left out: it broke the limit on %s", *allocation[:2], run.how)
    return runs


def baseline_values(samples: Sequence[LiveRun], epochs: int, probes: Sequence[LiveRun] = ()) -> dict[str, Any]:
    """Return the values of the whole training that samples predict, under the names of the reports.

    probes  runs on the same allocation, if samples are short
    time_by_ratio and cost_by_ratio in the result are, as published, the sums over the samples' epochs divided by the
    samples' share of the training.
    """
    allocation, runs = samples[0].request.allocation, [*samples, *probes]
    price = samples[0].request.prices.hourly_price(*allocation) / 3600.0
    found, by_ratio = pace(runs), float(np.mean([run.table["epoch_time"].mean() * epochs for run in samples]))
    rates = [run.table["throughput"] for run in runs]
    rates = [each.iloc[1:] for each in rates if len(each) > 1] or rates  # without the slower first epoch
    return {
        **allocation._asdict(),
        "batch_size": int(samples[0].summary["batch_size"]),
        "time": found.time(epochs),
        "cost": found.time(epochs) * price,
        "throughput": float(np.mean([each.mean() for each in rates])),
        "start_up_seconds": found.start_up,
        "epoch_seconds": found.epoch,
        "time_by_ratio": by_ratio,
        "cost_by_ratio": by_ratio * price,
        **machine_use(combined([run.table for run in samples])),
        "samples": len(samples),
        "sample_epochs": len(samples[0].table),
        "source": "measured",
    }


def machine_use(table: pd.DataFrame) -> dict[str, float | None]:
    """Return the mean use of the cores, the largest use of memory, and the mean use of the GPUs in a log."""
    columns = [name for name in table.columns if str(name).startswith(GPU_COLUMN)]
    return {
        "cpu_percent": float(table["cpu_percent"].mean()),
        "memory_used_gb": float(table["memory_used_gb"].max()),
        "gpu_utilization": float(table[columns].mean().mean()) if columns else None,
    }


def combined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return all samples as one table, with the number of the sample in the column `sample`."""
    import pandas as pd

    return pd.concat([table.assign(sample=number + 1) for number, table in enumerate(tables)], ignore_index=True)
