"""What it costs in CPU seconds that jobs hold libraries to the same instructions of the processor, by study.

    snakemake --cores 2 all --config scale=small       # a finished run, whose inputs are read
    python benchmarks/instructions.py small [--rounds 2] [--policy NAME ...] [--out docs/results/instructions.csv]

Each policy is learned with its first seed in a process of its own, on one thread: with the instructions that libraries
choose themselves, with those that are pinned, and with those of x86-64-v2, in turn. `other_*` counts policies whose
parameters or curve have other bytes than with the pinned ones. Of several rounds the cheapest counts: the first may
compile kernels. The rows of another scale stay.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from schedlab.config import experiment
from schedlab.config.files import write_text
from schedlab.config.runtime.instructions import CLEARED, PINS, THREADS
from schedlab.stages.studies import find_study

OUT = Path(__file__).resolve().parent.parent / "docs/results/instructions.csv"
OLDER = {
    **PINS,
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_VML_DEBUG_CPU_TYPE": "3",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "NPY_ENABLE_CPU_FEATURES": "",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Nehalem",
    "NUMBA_CPU_NAME": "x86-64-v2",
    "NUMBA_CPU_FEATURES": "+64bit,+cmov,+crc32,+cx16,+cx8,+fxsr,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4",
}
LEVELS: Mapping[str, Mapping[str, str]] = {"chosen": {}, "v3": PINS, "v2": OLDER}
COLUMNS = ("scale", "study", "policies", *(f"{level}_cpu_s" for level in LEVELS), "other_chosen", "other_v2")
LEARN = """
import json, sys
from pathlib import Path
from schedlab.stages.learn import learn
part, inputs, parent, out = json.loads(sys.argv[1])
files = {scenario: {name: Path(path) for name, path in named.items()} for scenario, named in inputs.items()}
out, names = Path(out), {"checkpoint": "policy.zip", "curve": "curve.parquet", "config_copy": "config.yaml"}
made = {argument: out / name for argument, name in {**names, "provenance": "provenance.json"}.items()}
learn(Path(part), files, Path(parent) if parent else None, seed=0, **made)
"""


def main() -> None:
    """Learn every policy under each level in turn, and write a row a study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale", help="of a finished run in this directory")
    parser.add_argument("--rounds", type=int, default=2, help="times that each is learned (default: %(default)s)")
    parser.add_argument("--policy", nargs="+", default=[], help="these policies alone")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    rows = defaultdict(lambda: dict.fromkeys(COLUMNS[2:], 0))
    for study, policy, job in jobs(given.scale):
        if given.policy and policy not in given.policy:
            continue
        row, bytes_of, took = rows[study], {}, defaultdict(list)
        for level in list(LEVELS) * given.rounds:
            seconds, bytes_of[level] = learned(job, LEVELS[level])
            took[level].append(seconds)
            print(study, policy, level, f"{seconds:.2f}", bytes_of[level], flush=True)
        row["policies"] += 1
        for level, seconds in took.items():
            row[f"{level}_cpu_s"] += min(seconds)
        for level in ("chosen", "v2"):
            row[f"other_{level}"] += bytes_of[level] != bytes_of["v3"]
    write(given.out, given.scale, rows)


def jobs(scale: str) -> Iterator[tuple[str, str, list]]:
    """Yield study, policy, and what learning it reads: its part, its inputs by scenario, its parent's checkpoint."""
    made = experiment.load(Path("conf"), scale, find_study, None)
    for study in made.studies:
        for policy in made.compared_policies(study):
            folder, parent = f"{made.results}/{study}/policies", made.policy(study, policy)["parent"]
            inputs = {name: dict(made.inputs(study, name)) for name in made.training_scenarios(study, policy)}
            before = f"{folder}/{parent}/seed-0/policy.zip" if parent else None
            yield study, policy, [f"{folder}/{policy}/config/learn.yaml", inputs, before]


def learned(job: list, level: Mapping[str, str]) -> tuple[float, str]:
    """Learn once; return the CPU seconds of the process and a hash of parameters and curve."""
    environment = {name: value for name, value in os.environ.items() if name not in {*PINS, *CLEARED}}
    environment |= dict.fromkeys(THREADS, "1") | {name: value for name, value in level.items() if value}
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", LEARN, json.dumps([*job, folder])]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        files = (Path(folder, name).read_bytes() for name in ("policy.zip", "curve.parquet"))
        seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return seconds, hashlib.sha256(b"".join(files)).hexdigest()[:12]


def write(path: Path, scale: str, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Write the rows of a scale, and keep those of others."""
    kept = []
    if path.exists():
        with path.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["scale"] != scale]
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(kept)
    for study, row in rows.items():
        values = {name: f"{value:.1f}" if name.endswith("cpu_s") else value for name, value in row.items()}
        table.writerow({"scale": scale, "study": study, **values})
    write_text(path, text.getvalue())


if __name__ == "__main__":
    main()
