"""The measurements behind docs/notebook/scale.md: small runs of what the page is about, a process for each point.

    python benchmarks/scale.py [QUANTITY ...] [--results results/small] [--out docs/results/scale.json]

CPU seconds and the peak of memory as in growth.py, which see. A quantity that is measured takes the place of the
recorded one in the file, with the machine and its load; `--results` also counts the files and bytes of a run's results;
the cases of slurm_simulation.py are simulated anew each time.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import growth
from growth import Quantity, Work

if TYPE_CHECKING:
    from schedlab.workloads.trace import Trace

RECORD = growth.ROOT / "docs/results/scale.json"
SEEDS, UNITS, TRACE_PROCESSORS, TRACE_LOAD = 20, 6, 256, 0.9
POLICIES = {"best-constant": ("rule", 1), "never": ("rule", 1), "ask": ("rule", 1), "learned": ("learned", SEEDS)}


def one_job(size: int, folder: Path) -> Work:
    """Return the dry run of a single learning job among generated scenarios, the cache being there: what a Slurm job
    begins with.

    What fills the cache is not counted: Snakemake does that once, before it submits anything, and it takes more memory
    than a start.
    """
    import dry_run

    checkout = dry_run.checkout(folder / "generated", size, SEEDS)
    target = "results/small/adaptation/policies/generated-0000/seed-0/policy.zip"
    dry_run.fill_cache(checkout, target)

    def run() -> float:
        dry_run.dry_run(checkout, target)
        return size

    return run


def scheduling(size: int, folder: Path) -> Work:
    """Return a run of Snakemake alone, over jobs that are ready at once and do nothing."""
    import subprocess
    import sys

    import dry_run

    run = dry_run.workflow(folder, f"COUNT = {size}\n{dry_run.PLAIN}")
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--quiet", "all"]

    def schedule() -> float:
        subprocess.run(command, cwd=run, capture_output=True, check=True)
        return size

    return schedule


def summarise(size: int, folder: Path) -> Work:
    """Return the stage `summarise` over scenarios with four policies; its size is the number of runs, one a policy and
    seed.
    """
    import yaml

    from schedlab.config.files import write_table
    from schedlab.stages.summarise import summarise

    names = [f"s{number:05d}" for number in range(size)]
    for name in names:
        for part, policies in (("rules", [*POLICIES][:3]), ("learned", ["learned"])):
            write_table(folder / f"{name}-{part}.parquet", _scores(name, policies))
    values = {"study": "adaptation", "results_version": 1, "seed": 1, "statistics": {"baseline": "never"}}
    (folder / "part.yaml").write_text(
        yaml.safe_dump(values | {"scenarios": {name: {"all": list(POLICIES)} for name in names}})
    )
    files = sorted(folder.glob("*.parquet"))

    def run() -> float:
        summarise(folder / "part.yaml", files, [], {}, folder / "summary")
        return size * sum(seeds for _, seeds in POLICIES.values())

    return run


def _scores(scenario: str, policies: list[str]) -> Any:
    """Drawn scores of some policies: two metrics, six units of each split."""
    import numpy as np

    from schedlab.evaluation import tables
    from schedlab.stages import studies

    metrics = [metric.name for metric in studies.load("adaptation").metrics[:2]]
    draws = np.random.default_rng(int(scenario[1:]))
    common = {
        "scenario": scenario,
        "trained_on": "",
        "mode": "default",
        "unit_kind": "run",
        "weight": 1.0,
        "config_hash": "0",
    }
    rows = (
        {**common, "policy": policy, "kind": POLICIES[policy][0], "policy_seed": seed, "split": split, "metric": metric}
        | {"unit": f"{split}-{unit}", "block": f"{split}-{unit}", "unit_seed": unit, "value": draws.random()}
        for policy in policies
        for seed in range(POLICIES[policy][1])
        for split in ("validation", "test")
        for unit in range(UNITS)
        for metric in metrics
    )
    return tables.build(tables.SCORES, rows)


def write_log(path: Path, jobs: int) -> Path:
    """Write a log of drawn jobs on TRACE_PROCESSORS processors at a load of about TRACE_LOAD, some at a time."""
    import numpy as np

    draws, now = np.random.default_rng(1), 0
    with path.open("w") as file:
        file.write(f"; MaxProcs: {TRACE_PROCESSORS}\n")
        for start in range(0, jobs, 100_000):
            count = min(100_000, jobs - start)
            run = np.exp(draws.uniform(np.log(10), np.log(10_000), count)).astype(int)
            size = np.ceil(np.exp(draws.uniform(0, np.log(64), count))).astype(int)
            gap = draws.exponential(float((run * size).mean()) / TRACE_PROCESSORS / TRACE_LOAD, count)
            submit = now + np.cumsum(gap).astype(int)
            now = int(submit[-1])
            columns = (
                range(start + 1, start + count + 1),
                submit.tolist(),
                run.tolist(),
                size.tolist(),
                (2 * run).tolist(),
            )
            for number, at, seconds, processors, asked in zip(*columns, strict=True):
                file.write(
                    f"{number} {at} -1 {seconds} {processors} -1 -1 {processors} {asked} -1 1 {number % 50} 1 1 1 1 "
                    "-1 -1\n"
                )
    return path


def _read(path: Path) -> Trace:
    from schedlab.workloads.clean import CleaningSettings
    from schedlab.workloads.prepare import read_log

    return read_log(path, CleaningSettings())[0]


def trace_made(size: int, folder: Path) -> Work:
    """Return what the stage that makes a trace does: read a log, clean it, describe it, write it."""
    from schedlab.workloads.prepare import write_trace
    from schedlab.workloads.settings import WorkloadSettings

    settings = WorkloadSettings(source="swf", file=str(write_log(folder / "log.swf", size)))

    def make() -> float:
        write_trace(settings, folder / "trace.swf.gz", folder / "report.json")
        return size

    return make


def trace_simulated(size: int, folder: Path, backfill: str) -> Work:
    """Return first-come first-served over a log as one window, the log being read and cleaned."""
    from schedlab.studies.batch.jobs import jobs_of, machine_of
    from schedlab.studies.batch.simulator.simulate import simulate

    trace = _read(write_log(folder / "log.swf", size))
    machine = machine_of(trace)
    jobs = jobs_of(trace, machine)

    def run() -> float:
        simulate(jobs, machine, "fcfs", backfill)
        return size

    return run


def batsim_workload(size: int, folder: Path) -> Work:
    """Return a log's conversion to a workload of Batsim, written; the log being read and cleaned."""
    from schedlab.platforms.generate import find_hierarchy
    from schedlab.workloads.batsim_file import write_batsim
    from schedlab.workloads.to_batsim import BatsimSettings, to_batsim

    trace, hierarchy = _read(write_log(folder / "log.swf", size)), find_hierarchy("gaia")

    def convert() -> float:
        write_batsim(
            folder / "workload.json", to_batsim(trace, hierarchy, BatsimSettings(missing_memory=(1000,)), 1)[0]
        )
        return size

    return convert


def _ramp(size: int) -> tuple[int, int, int]:
    """Groups, racks and servers of a RAMP with as equal sides as its number of servers allows."""
    third, rest = divmod(size.bit_length() - 1, 3)
    return 2 ** (third + (rest > 0)), 2 ** (third + (rest > 1)), 2**third


def ramp_blocks(size: int, _: Path) -> Work:
    """Return the search of all blocks of up to 16 servers."""
    import ramp

    from schedlab.studies.ramp.network.topology import Ramp

    def build() -> float:
        ramp.find_blocks(Ramp(*_ramp(size)))
        return size

    return build


def ramp_episode(size: int, _: Path) -> Work:
    """Return an episode of about 300 arrivals under para_max, as many a second and server as in the published setting;
    blocks known.
    """
    import ramp

    from schedlab.studies.ramp.graphs.files import read_graphs
    from schedlab.studies.ramp.rules import RULES
    from schedlab.studies.ramp.scenario import ON_SHIPPED, SHIPPED, published_scenario
    from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode

    groups, racks, servers = _ramp(size)
    gap = 1_000 * 32 / size
    cluster = {"groups": groups, "racks": racks, "servers": servers}
    jobs = {"interarrival": {"kind": "fixed", "value": gap}}
    scenario = published_scenario(
        "A", compat=False, cluster=cluster, jobs=jobs, episodes={"end": 300 * gap}, **ON_SHIPPED
    )
    simulation = Simulation(scenario, read_graphs(ramp.ROOT / SHIPPED))
    run_episode(simulation, RULES["para_max"], 0)

    def play() -> float:
        run_episode(simulation, RULES["para_max"], 1)
        return size

    return play


JOBS, SERVERS = (100_000, 300_000, 1_000_000), (512, 1_024, 2_048, 4_096)
QUANTITIES = {
    "one_job": Quantity("scenarios", "dry run of one job", (10, 30, 100, 300, 1_000), 2, one_job),
    "scheduling": Quantity("ready jobs", "Snakemake alone, run", (30, 100, 300), 10, scheduling),
    "summarise": Quantity("runs", "summarise", (30, 100, 300, 600), 10, summarise),
    "trace_made": Quantity(
        "jobs of a log", "read, cleaned, described, written", (*JOBS, 10_000_000), 1_000, trace_made
    ),
    "trace_fcfs": Quantity("jobs of a log", "FCFS", JOBS, 1_000, functools.partial(trace_simulated, backfill="none")),
    "trace_easy": Quantity("jobs of a log", "EASY", JOBS, 1_000, functools.partial(trace_simulated, backfill="easy")),
    "batsim_workload": Quantity(
        "jobs of a log", "workload of Batsim", (10_000, 30_000, 100_000), 1_000, batsim_workload
    ),
    "ramp_blocks": Quantity("servers", "blocks of RAMP", SERVERS, 64, ramp_blocks),
    "ramp_episode": Quantity("servers", "RAMP, 300 arrivals", SERVERS, 64, ramp_episode),
}


def main() -> None:
    """Take the points of the quantities named on the command line, and simulate the cases of a Slurm partition."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="quantities: " + ", ".join(QUANTITIES))
    parser.add_argument(
        "names", nargs="*", metavar="QUANTITY", help="default: none but the simulation of Slurm; all: every one"
    )
    parser.add_argument("--here", type=int, metavar="SIZE", help="one point in this process")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="count the files of the results of a scale")
    parser.add_argument("--out", type=Path, default=RECORD)
    given = parser.parse_args()
    names = list(QUANTITIES) if given.names == ["all"] else given.names
    if unknown := [name for name in names if name not in QUANTITIES]:
        parser.error(f"no quantity '{unknown[0]}'; there are: {', '.join(QUANTITIES)}")
    if given.here:
        print(json.dumps(growth.measure(QUANTITIES[names[0]], given.here)))
        return
    record = json.loads(given.out.read_text()) if given.out.exists() else {"growth": {}}
    before = os.getloadavg()[0]
    found = growth.grow(names, False, QUANTITIES, __file__)

    import slurm_simulation  # now: what this process holds is the least that a point's peak of memory can be
    import suite

    from schedlab.config.files import write_text

    taken = {"machine": suite.machine(), "load": {"before": round(before, 1), "after": round(os.getloadavg()[0], 1)}}
    found = {name: one | taken for name, one in found.items()}
    record["growth"] = {
        name: (record["growth"] | found)[name] for name in QUANTITIES if name in record["growth"] | found
    }
    if given.results:
        record["files"] = files_of(given.results)
    if "one_job" in record["growth"]:
        small, large = record["growth"]["one_job"]["points"][-2:]  # as scale_tables.at works out what a start comes to
        record["slurm"] = slurm_simulation.cases(
            2 * (large["seconds"] - small["seconds"]) / (large["size"] - small["size"])
        )
    write_text(given.out, json.dumps(record, indent=1) + "\n")


def files_of(results: Path) -> dict[str, dict[str, float]]:
    """Return how many files and bytes a learning job, an evaluation job (details included) and a frozen part leave, in
    the mean.
    """
    kinds = {"learn": "*/policies/*/seed-*/**/*", "evaluate": "*/*/evaluation/**/*", "frozen part": "**/config/*.yaml"}
    jobs = {"learn": "*/policies/*/seed-*", "evaluate": "*/*/evaluation/*.parquet", "frozen part": "**/config/*.yaml"}
    found = {}
    for kind, pattern in kinds.items():
        files = [path for path in results.glob(pattern) if path.is_file()]
        if kind == "evaluate":  # its log and its benchmark lie beside
            files += [
                path
                for end in ("logs/evaluate-*.log", "benchmarks/evaluate-*.tsv")
                for path in results.glob(f"*/*/{end}")
            ]
        count = len(list(results.glob(jobs[kind])))
        size = sum(path.stat().st_size for path in files)
        found[kind] = {"jobs": count, "files": round(len(files) / count, 1), "bytes": round(size / count)}
    return found


if __name__ == "__main__":
    main()
