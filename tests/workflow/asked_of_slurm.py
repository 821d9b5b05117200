"""Run as a program in a checkout: what Snakemake would ask Slurm for, of the jobs of a dry run. Prints one JSON
document.

    python asked_of_slurm.py SCALE

`groups`: for each connected component of jobs of a group of profiles/slurm: the group, its rules level by level, and
what as many such components as the profile puts together ask for, as Snakemake itself lays them out. `jobs`: their
number by rule. `scenarios`: how many jobs each scenario alone needs.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

import yaml
from snakemake import cli
from snakemake.dag import DAG
from snakemake.resources import GroupResources

PROFILE = "profiles/slurm"
TOLD: dict = {}
update_groups = DAG.update_groups


def together() -> dict[str, int]:
    """Components of each group that are one Slurm job."""
    profile = yaml.safe_load(Path(PROFILE, "config.yaml").read_text(encoding="utf-8"))
    return {group: int(count) for group, count in (entry.split("=") for entry in profile["group-components"])}


def tell(dag: DAG) -> None:
    """Note what the groups of a DAG ask for once Snakemake has made them."""
    update_groups(dag)
    counts = together()
    groups = {id(group): group for group in dag._group.values()}.values()
    TOLD["groups"] = [
        {
            "group": group.groupid,
            "rules": [[job.rule.name for job in level] for level in group.toposorted],
            "asked": GroupResources.basic_layered(
                toposorted_jobs=[[*level] * counts[group.groupid] for level in group.toposorted],
                constraints=group.global_resources,
                run_local=False,
            ),
        }
        for group in groups
    ]
    jobs = list(dag.needrun_jobs())
    TOLD["jobs"] = Counter(job.rule.name for job in jobs)
    TOLD["scenarios"] = jobs_of_scenarios(dag, jobs)


def jobs_of_scenarios(dag: DAG, jobs: list) -> dict[str, int]:
    """How many jobs each scenario alone needs for its scores."""
    needed: dict = {}
    for job in jobs:
        if job.rule.name == "evaluate":
            name = f"{job.wildcards.study}/{job.wildcards.scenario}"
            for one in dag.bfs(dag.dependencies, job):
                needed.setdefault(one, set()).add(name)
    return Counter(name for names in needed.values() if len(names) == 1 for name in names)


DAG.update_groups = tell
if __name__ == "__main__":
    alone = [f"{group}=1" for group in together()]
    scale = ["--config", f"scale={sys.argv[1]}"]
    try:
        with redirect_stdout(sys.stderr):
            cli.main(
                ["--profile", PROFILE, "--group-components", *alone, "--dry-run", "--quiet", "all", *scale, "--", "all"]
            )
    finally:
        print(json.dumps(TOLD))
