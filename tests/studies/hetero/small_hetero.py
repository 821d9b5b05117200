"""Small scenarios of the hetero study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from schedlab.config.contract import Unit
from schedlab.config.schema import validate
from schedlab.studies.hetero import prepare
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.scenario import HeteroScenario
from small_conf import SHIPPED

# Actions of the thesis on its learning case, of which the second and the last are the best.
SELECTION = (
    "shortest-high_gflops",
    "shortest-high_mem_bw",
    "shortest-low_power",
    "first-high_gflops",
    "first-high_mem_bw",
)


def part(name: str) -> dict[str, Any]:
    """The values of a shipped file of conf/."""
    return yaml.safe_load((SHIPPED / name).read_text())


def scenario(**changes: Any) -> HeteroScenario:
    """The shipped platform `trio` under ten drawn jobs, with changes."""
    workload = part("workload/lublin.yaml")
    workload["lublin"] |= {"processors": 48, "jobs": 10}
    values = {
        "name": "small",
        "seed": 1,
        "platform": part("platform/trio.yaml"),
        "workload": workload,
        "rules": ["fcfs"],
    }
    return validate(HeteroScenario, {**values, **changes})


def managed_scenario(jobs: int = 30, **changes: Any) -> HeteroScenario:
    """The shipped platform `contended`, whose pstates follow from what runs, under drawn jobs, with changes."""
    workload = part("workload/lublin.yaml")
    workload["lublin"] |= {"processors": 48, "jobs": jobs}
    return scenario(**{"platform": part("platform/contended.yaml"), "workload": workload, **changes})


def frozen(values: dict[str, Any], path: Path) -> Path:
    """Write the values of a part as the workflow does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"results_version": 1, **values}))
    return path


def prepared(settings: HeteroScenario, folder: Path) -> HeteroProblem:
    """Run both prepare rules in a folder and load the problem."""
    parts = prepare.parts(settings)
    platform, resources, workloads = (folder / name for name in ("platform.xml", "resources.json", "workloads.zip"))
    prepare.generate_platform(
        frozen(dict(parts["generate_platform"].values), folder / "platform.yaml"), platform, resources
    )
    prepare.trim_workload(
        frozen(dict(parts["trim_workload"].values), folder / "w.yaml"), resources, workloads, folder / "report.json"
    )
    return HeteroProblem(settings, platform, resources, workloads)


def first(problem: HeteroProblem) -> Unit:
    """The first test workload."""
    return problem.units("test")[0]
