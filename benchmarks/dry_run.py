"""What a dry run costs: CPU seconds for the start, for each job of the default scale, and for many generated scenarios.

    python benchmarks/dry_run.py [--scenarios 1000] [--repeats 3]

Each number is the median of some dry runs with a warm cache, of all processes that they start. `start` is Snakemake
with a workflow of one rule. `plain` is Snakemake with as many jobs whose names are written down, of as many inputs:
what is left of the costs of a job is ours.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from omegaconf import OmegaConf

REPOSITORY = Path(__file__).resolve().parent.parent
COPIED = ("Snakefile", "workflow", "profiles", "src", "conf", "resources")
SCENARIO = """defaults:
  - _base
  - _self_
name: {name}
adapt_at: 120.0
policies: [{name}]
"""
POLICY = """defaults:
  - /learner/adaptation@learner: exact
  - _self_
name: {name}
train_on:
  - {{scenarios: [{name}], steps: 10}}
seeds: [{seeds}]
"""
ONE_RULE = "rule all:\n    output: 'done'\n    shell: 'touch {output}'\n"
PLAIN = """rule all:
    input: [f"made/{n}" for n in range(COUNT)]

rule first:
    output: "made/0"
    shell: "touch {output}"

rule job:
    input: a="made/0", b="made/0", c="made/0"
    output: one="made/{n}", two="more/{n}"
    log: "logs/{n}"
    wildcard_constraints: n="[1-9][0-9]*"
    resources: mem_mb=1000, runtime=30
    shell: "touch {output}"
"""


def checkout(folder: Path, scenarios: int = 0, seeds: int = 5) -> Path:
    """Copy what a run needs; with generated scenarios, each with a policy of its own and some seeds, in place of the
    shipped ones.
    """
    folder.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        copy(REPOSITORY / name, folder / name)
    if scenarios:
        for group in ("scenario", "policy", "figure"):
            for file in (folder / "conf" / group / "adaptation").glob("[!_]*.yaml"):
                file.unlink()
        file = folder / "conf/study/adaptation.yaml"
        study = OmegaConf.load(file)
        study.statistics.baseline = "never"
        study.headline = []  # what the study asks names the shipped scenarios and policies
        OmegaConf.save(study, file)
    for number in range(scenarios):
        name = f"generated-{number:04d}"
        (folder / f"conf/scenario/adaptation/{name}.yaml").write_text(SCENARIO.format(name=name))
        (folder / f"conf/policy/adaptation/{name}.yaml").write_text(
            POLICY.format(name=name, seeds=", ".join(map(str, range(seeds))))
        )
    return folder


def workflow(folder: Path, text: str) -> Path:
    """A folder with a workflow of its own and the settings of this one."""
    shutil.copytree(REPOSITORY / "profiles", folder / "profiles")
    (folder / "Snakefile").write_text(text)
    return folder


def command(target: str = "all") -> list[str]:
    """The command of a dry run."""
    return [sys.executable, "-m", "snakemake", "--cores", "2", "--dry-run", "--quiet", "rules", "--", target]


def uncounted(arguments: list[str], folder: Path) -> str:
    """Run a command to its end and return what it printed; its time and its peak of memory are not counted among this
    process's children.

    The shell between ends at once, so that nobody waits for the command's process; its output ends with it.
    """
    shell = ["sh", "-c", '"$@" &', "sh", *arguments]
    done = subprocess.run(
        shell,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return done.stdout


def fill_cache(folder: Path, target: str = "all") -> None:
    """Let a first dry run, uncounted, compose and freeze everything. Raises SystemExit, with what it said, where that
    failed.
    """
    said = uncounted(command(target), folder)
    if not list(folder.glob(".schedlab/records-*.json")):
        raise SystemExit(said)


def dry_run(folder: Path, target: str = "all") -> tuple[float, int]:
    """CPU seconds and jobs of one dry run, by default of everything."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command(target), cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    found = re.search(r"^total +(\d+)$", done.stdout + done.stderr, flags=re.M)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(found.group(1)) if found else 0


def measured(folder: Path, repeats: int) -> dict[str, float]:
    """Median of some dry runs, and what the first one took, which fills the cache."""
    first, jobs = dry_run(folder)
    warm = [dry_run(folder)[0] for _ in range(repeats)]
    return {"jobs": jobs, "first": round(first, 2), "warm": round(statistics.median(warm), 2)}


def main() -> None:
    """Print one JSON document: CPU seconds, and milliseconds a job on top of the start."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--scenarios", type=int, default=1000)
    arguments.add_argument("--repeats", type=int, default=3)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        found = {
            "start": measured(workflow(scratch / "start", ONE_RULE), options.repeats),
            "default": measured(checkout(scratch / "default"), options.repeats),
            "generated": measured(checkout(scratch / "generated", options.scenarios), options.repeats),
        }
        for case in ("default", "generated"):
            text = f"COUNT = {found[case]['jobs'] - 1}\n{PLAIN}"
            found[f"{case}, plain"] = measured(workflow(scratch / f"{case}-plain", text), options.repeats)
    for case, values in found.items():
        if case.startswith("generated"):  # of the few jobs of the default scale the difference is within the noise
            values["ms_a_job"] = round(1000 * (values["warm"] - found["start"]["warm"]) / values["jobs"], 2)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
