"""`schedlab batch speed`: measure devices and thread counts, print and record the rates."""

from __future__ import annotations

import argparse
import json
import logging
import re
import statistics
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import write_json
from schedlab.config.runtime.provenance import environment
from schedlab.config.schema import validate
from schedlab.learning.devices import device_name, find_device
from schedlab.studies.batch.commands import device_speed
from schedlab.studies.batch.commands.parser import add_speed_arguments

if TYPE_CHECKING:
    from schedlab.studies.batch.commands.device_speed import SpeedSettings

log = logging.getLogger("schedlab.batch")


def measure(arguments: argparse.Namespace) -> int:
    """Print, and record where asked for, the rates of a device; return the exit status."""
    if arguments.out and arguments.out.exists():
        raise UserError("the file is there already", where=str(arguments.out), remedy="name another file with --out")
    document = speed(arguments)
    if arguments.out:
        write_json(arguments.out, document)
        log.info("wrote %s", arguments.out)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def record_speed(out: Path, device: str, threads: int) -> None:
    """Measure with 1, 2, 4 ... `threads` threads, and record it like the command. Raises UserError."""
    parser = argparse.ArgumentParser()
    add_speed_arguments(parser)
    swept = sorted({1 << power for power in range(threads.bit_length())} | {threads})
    options = ["--device", device, "--threads", ",".join(map(str, swept)), "--batch-sizes", "64,256", "--name", device]
    write_json(out, speed(parser.parse_args(options)))


def speed(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the document of `batch speed`. Raises UserError."""
    common = {key: getattr(arguments, key) for key in ("device", "steps", "warm_up", "repeats", "seed")}
    grid = product(_numbers(arguments.threads, "--threads"), _numbers(arguments.batch_sizes, "--batch-sizes"))
    planned = [
        validate(
            device_speed.SpeedSettings,
            {**common, "threads": threads, "batch_size": size},
            lambda path: "--" + {"batch_size": "batch-sizes"}.get(str(path[0]), str(path[0]).replace("_", "-")),
        )
        for threads, size in grid
    ]
    device = find_device(arguments.device, metal=True)
    log.info("measuring %s", device_name(device))
    rows = [_row(settings, device_speed.rates(settings, device)) for settings in planned]
    document = {
        "name": arguments.name,
        "device": device_name(device),
        "measured": rows,
        "steps": arguments.steps,
        "warm_up": arguments.warm_up,
        "seed": arguments.seed,
        "date": datetime.now(UTC).date().isoformat(),
        **environment(),
    }
    if arguments.learn:
        learned = device_speed.learn(planned[0], device)
        document["learned"] = {"solved": learned.solved, "steps": learned.steps, "mean_return": learned.mean_return}
    return document


def _row(settings: SpeedSettings, rates: list[float]) -> dict[str, Any]:
    log.info(
        "%d threads, batches of %d: %.1f steps a second",
        settings.threads,
        settings.batch_size,
        statistics.median(rates),
    )
    return {
        "device": settings.device,
        "threads": settings.threads,
        "batch_size": settings.batch_size,
        "steps_per_s": [round(rate, 2) for rate in rates],
        "median": round(statistics.median(rates), 2),
    }


def _numbers(text: str, option: str) -> list[int]:
    """The whole numbers of '1,2,4', each once, in their order."""
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        raise UserError(
            f"'{text}' is no list of numbers",
            where=option,
            expected="whole numbers with commas between them, such as 1,2,4",
        )
    return list(dict.fromkeys(int(number) for number in text.split(",")))
