"""All benchmarks: rates of every study, and growth with size, as one JSON file.

    python benchmarks/suite.py [--quick] [--only EXPRESSION] [--without-growth] [--out FILE.json]

By default results/bench/full.json (quick.json). CPU seconds of one thread throughout: each
round's, of which the file holds the smallest, the quartiles, the median and the largest, with what was counted in a
round. Nothing is compared or asserted. The load of the machine before and after is told, for a busy machine makes CPU
time longer too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import growth

from schedlab.config.files import write_text

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("numpy", "numba", "torch", "pandas", "snakemake")
KEPT = ("min", "q1", "median", "q3", "max")


def machine() -> dict[str, Any]:
    """Describe the machine without naming it. Imports here: what this process holds is the least that a child's peak of
    memory can be.
    """
    from schedlab.config.runtime.provenance import processor_name

    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    versions = {name: metadata.version(name) for name in PACKAGES}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kind = {"system": platform.system(), "processor": platform.machine(), "processor_name": processor_name()}
    return {
        **kind,
        "cores": cores,
        "memory_gib": round(memory, 1),
        "python": platform.python_version(),
        "packages": versions,
    }


def measure_rates(only: str | None, quick: bool) -> list[dict[str, Any]]:
    """Run the benchmarks, all or those that a pytest expression names, and return an entry for each."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-c",
            "benchmarks/pytest.ini",
            "benchmarks",
            f"--benchmark-json={report}",
        ]
        command += ["--benchmark-columns=median,iqr,rounds"]
        command += (["-k", only] if only else []) + (["--quick"] if quick else [])
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")
        }  # with it nothing is measured
        environment = {**kept, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        subprocess.run(command, cwd=ROOT, env=environment, stdout=sys.stderr, check=True)
        return [entry(one) for one in json.loads(report.read_text())["benchmarks"]]


def entry(benchmark: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of one of pytest-benchmark's entries."""
    study, _, name = benchmark["fullname"].partition("::")
    named = {"study": Path(study).stem.removeprefix("bench_"), "name": name.removeprefix("bench_")}
    seconds = {key: float(f"{benchmark['stats'][key]:.4g}") for key in KEPT}
    return {**named, **benchmark["extra_info"], "rounds": benchmark["stats"]["rounds"], "seconds": seconds}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds")
    parser.add_argument("--only", metavar="EXPRESSION", help="benchmarks whose names match (pytest -k)")
    parser.add_argument("--without-growth", action="store_true")
    parser.add_argument("--out", type=Path, help="default: results/bench/full.json or quick.json")
    given = parser.parse_args()
    out = given.out or ROOT / f"results/bench/{'quick' if given.quick else 'full'}.json"
    before = os.getloadavg()[0]
    rates = measure_rates(given.only, given.quick)
    grown = {} if given.without_growth else growth.grow(growth.QUANTITIES, given.quick)
    load = {"before": round(before, 1), "after": round(os.getloadavg()[0], 1)}
    record = {
        "size": "quick" if given.quick else "full",
        "machine": machine(),
        "load": load,
        "rates": rates,
        "growth": grown,
    }
    write_text(out, json.dumps(record, indent=1) + "\n")
    print(f"{len(rates)} rates and the growth of {len(grown)} quantities: {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
