"""A small configuration folder of the hetero study, small scenarios, and a scheduler of a user's own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.contract import Unit
from schedlab.config.schema import validate
from schedlab.studies.hetero import prepare
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.settings import HeteroScenario
from small_conf import SHIPPED, write_scales

OWN_SCHEDULER = '''
from batsim.batsim import BatsimScheduler
from procset import ProcSet


class LastCoreFirst(BatsimScheduler):
    """One job after the other, each on the cores with the highest numbers."""

    def onSimulationBegins(self):
        self.queue, self.running = [], False

    def onJobSubmission(self, job):
        self.queue.append(job)

    def onJobCompletion(self, job):
        self.running = False

    def onNoMoreEvents(self):
        if self.queue and not self.running:
            job = self.queue.pop(0)
            last = self.bs.nb_compute_resources - self.options.get("spare", 0)
            job.allocation = ProcSet((last - job.requested_resources, last - 1))
            self.bs.execute_jobs([job])
            self.running = True
'''


def part(name: str) -> dict[str, Any]:
    """The values of a shipped file of conf/."""
    return yaml.safe_load((SHIPPED / name).read_text())


def scenario(**changes: Any) -> HeteroScenario:
    """The shipped platform `trio` under ten drawn jobs, with changes."""
    workload = part("workload/lublin.yaml")
    workload["lublin"] |= {"processors": 48, "jobs": 10}
    values = {"name": "small", "seed": 1, "platform": part("platform/trio.yaml"), "workload": workload, "rules": ["fcfs"]}
    return validate(HeteroScenario, {**values, **changes})


def frozen(values: dict[str, Any], path: Path) -> Path:
    """Write the values of a part as the workflow does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"results_version": 1, **values}))
    return path


def prepared(settings: HeteroScenario, folder: Path) -> HeteroProblem:
    """Run both prepare rules in a folder and load the problem: platform.xml, resources.json, workloads.zip, report.json."""
    parts = prepare.parts(settings)
    platform, resources, workloads = (folder / name for name in ("platform.xml", "resources.json", "workloads.zip"))
    prepare.generate_platform(frozen(dict(parts["generate_platform"].values), folder / "platform.yaml"), platform, resources)
    prepare.trim_workload(frozen(dict(parts["trim_workload"].values), folder / "w.yaml"), resources, workloads, folder / "report.json")
    return HeteroProblem(settings, platform, workloads)


def first(problem: HeteroProblem) -> Unit:
    """The first test workload."""
    return problem.units("test")[0]


def write_hetero_conf(folder: Path) -> Path:
    """Make conf/ with the study hetero, its scenario `trio` and no figure in a folder and return it."""
    conf = folder / "conf"
    for name in ("config.yaml", "study/hetero.yaml", "figure/theme.yaml", "scenario/hetero/_base.yaml", "scenario/hetero/trio.yaml"):
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SHIPPED / name, conf / name)
    for group in ("platform", "workload"):
        shutil.copytree(SHIPPED / group, conf / group)
    write_scales(conf, "hetero", "smoke", "small")
    return conf
