"""The command `schedlab batch speed`: measure devices and thread counts, print and record the rates."""

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

if TYPE_CHECKING:
    from schedlab.studies.batch.commands.device_speed import SpeedSettings

log = logging.getLogger("schedlab.batch")
_DESCRIPTION = """Measure how many steps a second DDPG on Pendulum takes, with its updates, for each thread count and each batch size, and
print it as one JSON document. --learn learns until the mean return is -300 as well. Close other programs first."""


def add_speed_command(commands: argparse._SubParsersAction) -> None:
    """Add `speed`, which sets `run` to a function (arguments) -> exit status."""
    parser = commands.add_parser(
        "speed", help="measure how fast this machine's devices learn", description=_DESCRIPTION
    )
    parser.add_argument(
        "--device", default="cpu", help="cpu (default), cuda, mps, or auto: cuda, else mps, where this machine has it"
    )
    parser.add_argument("--threads", default="1", metavar="N[,N]", help="threads of torch, swept (default: 1)")
    parser.add_argument(
        "--batch-sizes", default="64", metavar="N[,N]", help="transitions of an update, swept (default: 64)"
    )
    parser.add_argument(
        "--steps", type=int, default=2000, metavar="N", help="timed steps of each repeat (default: 2000)"
    )
    parser.add_argument("--warm-up", type=int, default=500, metavar="N", help="steps before, not timed (default: 500)")
    parser.add_argument(
        "--repeats", type=int, default=3, metavar="N", help="timed stretches of each setting (default: 3)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="root of all random draws (default: 0)")
    parser.add_argument(
        "--learn", action="store_true", help="also learn until the mean return reaches -300, at most 400,000 steps"
    )
    parser.add_argument("--name", default="this machine", help="what figures call the machine and device")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="also record it, as in resources/measured/device_speed/"
    )
    parser.set_defaults(run=_speed)


def _speed(arguments: argparse.Namespace) -> int:
    if arguments.out and arguments.out.exists():
        raise UserError("the file is there already", where=str(arguments.out), remedy="name another file with --out")
    document = speed(arguments)
    if arguments.out:
        write_json(arguments.out, document)
        log.info("wrote %s", arguments.out)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def record_speed(out: Path, device: str, threads: int) -> None:
    """Measure with 1, 2, 4 ... threads up to a number, and with that; record it like the command with its defaults.
    Raises UserError.
    """
    parser = argparse.ArgumentParser()
    add_speed_command(parser.add_subparsers())
    swept = sorted({1 << power for power in range(threads.bit_length())} | {threads})
    options = [
        "speed",
        "--device",
        device,
        "--threads",
        ",".join(map(str, swept)),
        "--batch-sizes",
        "64,256",
        "--name",
        device,
    ]
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
