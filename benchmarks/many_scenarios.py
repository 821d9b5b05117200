"""What many scenarios cost a cluster: starts of Snakemake, files that a run leaves, and Slurm jobs a minute that
Snakemake submits.

    python benchmarks/many_scenarios.py start [--scenarios 1000]     # dry runs of 10, 100, ...: rows of
        docs/results/core_starts.csv
    python benchmarks/many_scenarios.py files [--scenarios 20]       # runs the toy study here and counts
    python benchmarks/many_scenarios.py submit [--scenarios 100] [--group 5] [--unlimited]

The study is the toy of the tests, each scenario with a policy of its own and five seeds. `submit` takes the profile for
Slurm with `--group` learning jobs a Slurm job; programs that only note the time stand in for Slurm's, so that what is
measured is Snakemake and its executor, not a controller. `--unlimited` lifts the profile's own limit of submissions.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path += [str(REPOSITORY / "tests/workflow"), str(REPOSITORY / "tests")]

from checkouts import Checkout, toy_checkout  # noqa: E402
from dry_run import dry_run  # noqa: E402

from schedlab.config.runtime.parts import read_part  # noqa: E402

SCENARIO = (
    "name: {name}\nseed: {number}\ncentre: 0.5\nrules: [{{name: zero, target: constant}}, dice]\npolicies: [{name}]\n"
)
POLICY = (
    "name: {name}\nlearner: {{name: hill_climbing}}\ntrain_on: [{{scenarios: [{name}], steps: 10}}]\nseeds: [0, "
    "1, 2, 3, 4]\n"
)
NOTED = "submitted.txt"
SLURM = {  # what the executor asks; every job that was submitted waits
    "sbatch": f"#!/bin/sh\ndate +%s.%N >> {NOTED}\nwc -l < {NOTED}\n",
    "squeue": f"#!/bin/sh\nseq -f '%.0f|PENDING' $(wc -l < {NOTED})\n",
    "sacct": f"#!/bin/sh\ncase \"$*\" in *Account*) echo a;; *) seq -f '%.0f|PENDING' $(wc -l < {NOTED});; esac\n",
    "sacctmgr": "#!/bin/sh\necho a\n",
    "scontrol": "#!/bin/sh\necho 'MinJobAge = 300 sec'\n",
    **dict.fromkeys(("sinfo", "sshare", "scancel"), "#!/bin/sh\n"),
}


def generated(folder: Path, scenarios: int) -> Checkout:
    """A checkout of the toy with so many scenarios in place of its own."""
    made = toy_checkout(REPOSITORY, folder)
    for group in ("scenario", "policy", "figure"):
        for file in (folder / "conf" / group / "toy").glob("*.yaml"):
            file.unlink()
    for number in range(scenarios):
        name = f"generated-{number:04d}"
        (folder / f"conf/scenario/toy/{name}.yaml").write_text(SCENARIO.format(name=name, number=number))
        (folder / f"conf/policy/toy/{name}.yaml").write_text(POLICY.format(name=name))
    return made


def start(folder: Path, most: int) -> list[dict[str, float]]:
    """Return, for 10, 100, ... scenarios: CPU seconds of a first dry run and of one with its cache, and most memory."""
    rows, size = [], 10
    while size <= most:
        made = generated(folder / str(size), size)
        first, cached = (dry_run(made.folder)[0] for _ in range(2))
        memory = (
            resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
        )  # of all so far, of which the last is the largest
        rows.append({"scenarios": size, "first_cpu_s": first, "cached_cpu_s": cached, "memory_mb": memory})
        size *= 10
    return rows


def count_files(folder: Path, scenarios: int) -> dict[str, object]:
    """Run everything; return how many files there are then, below results, by kind, and in Snakemake's own folder."""
    made = generated(folder, scenarios)
    made.run("all", seconds=3600)
    kinds: Counter[str] = Counter()
    for path in (folder / "results").rglob("*"):
        if path.is_file():
            kinds[
                "logs and benchmarks"
                if {"logs", "benchmarks"} & set(path.parts)
                else "config"
                if "config" in path.parts
                else "results"
            ] += 1
    own = sum(path.is_file() for path in (folder / ".snakemake").rglob("*"))
    return {
        "scenarios": scenarios,
        **kinds,
        ".snakemake": own,
        "a scenario": round((kinds.total() + own) / scenarios, 1),
    }


def submit(folder: Path, scenarios: int, group: int, unlimited: bool, patience: float = 30.0) -> dict[str, float]:
    """Submit to programs that stand in for Slurm's until nothing new comes for a while; return jobs, and how fast they
    came.
    """
    made = generated(folder / "checkout", scenarios)
    made.run("all", "--dry-run")
    from toy_study.study import draw_targets

    for part in made.folder.glob("results/small/toy/*/config/draw_targets.yaml"):
        draw_targets(read_part(part), part.parents[1] / "inputs/targets.json")
    for name, text in SLURM.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    noted = made.folder / NOTED
    noted.touch()
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    command = made.command(
        "all", "--profile", "profiles/slurm", "--group-components", f"learn={group}", "evaluate=20", "--jobs", "10000"
    )
    command += ["--max-jobs-per-timespan", "100000/1m"] if unlimited else []
    began = time.time()
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            command, cwd=made.folder, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        times, last = [], 0.0
        while started.poll() is None and (not last or time.time() - last < patience):
            time.sleep(1)
            times = [float(line) for line in noted.read_text().split()]
            last = times[-1] if times else 0.0
        if (ended := started.poll()) is None:
            made.kill(started)
    if ended is not None:  # jobs that never end were submitted: it can have failed alone
        raise SystemExit((folder / "log").read_text()[-3000:])
    span = times[-1] - times[0]
    rate = 60 * (len(times) - 1) / span if span else 0.0
    return {
        "scenarios": scenarios,
        "slurm jobs": len(times),
        "first after, s": round(times[0] - began, 1),
        "jobs a minute": round(rate),
    }


def main() -> None:
    """Print what was counted as JSON, of starts as CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("start", "files", "submit"))
    parser.add_argument("--scenarios", type=int)
    parser.add_argument("--group", type=int, default=5)
    parser.add_argument("--unlimited", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="many-") as name:
        if given.what == "start":
            rows = start(Path(name), given.scenarios or 1000)
            print("\n".join([",".join(rows[0]), *(",".join(f"{value:.4g}" for value in row.values()) for row in rows)]))
        elif given.what == "files":
            print(json.dumps(count_files(Path(name, "checkout"), given.scenarios or 20)))
        else:
            print(json.dumps(submit(Path(name), given.scenarios or 100, given.group, given.unlimited)))


if __name__ == "__main__":
    main()
