"""Small configuration folders: two tiny scenarios and two policies of the study adaptation; the scenario `trio` of
the study hetero.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

SHIPPED = Path(__file__).resolve().parent.parent / "conf"
SCENARIO = """defaults:
  - /model: tiny8
  - /data: digits
  - /gpu@timing: priced
  - _self_

name: {name}
seed: ${{seed}}
budget: 70.0
adapt_at: {adapt_at}
decisions: 2
replicates: 2
test_replicates: 1
data: {{train_size: 96, validation_size: 40, test_size: 30}}
training: {{batch_size: 32}}
rules: [never, {{name: always-1, target: always, params: {{action: 1}}}}, random, {{name: exhaustive, kind: oracle}}]
policies: [exact-tiny, constant-tiny]
reference:
  model: {{head_relu: true}}
  growth: {{bn_init: default, optimizer: fresh_every_decision, lr_on_growth: restart, noop: reset,
    soft_target_weight: 0.0}}
  reward: {{split: test, metric: accuracy, window: 1}}
"""
POLICY = """defaults:
  - /learner/adaptation@learner: {learner}
  - _self_

name: {learner}-tiny
train_on:
  - {{scenarios: [tiny], steps: 60}}
seeds: [0]
"""
CLAIMS = """name: adaptation
claims:
  - {id: accuracy, paper: a paper, quantity: accuracy, published: 0.7391,
    computed_in: adaptation_claims.csv, tolerance: 1.0e-4}
  - {id: sequence, paper: a paper, quantity: best sequence, published: "110",
    computed_in: adaptation_claims.csv, note: noise}
"""
COMPUTED = """claim,ours_reference,ours_repaired,command
accuracy,0.73912,,a program
sequence,011,,a program
"""


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


def _copy(conf: Path, *names: str) -> None:
    """Copy files of the shipped conf/; a study's without its questions, which name scenarios that are not here."""
    for name in names:
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        text = (SHIPPED / name).read_text()
        (conf / name).write_text(without_questions(text) if name.startswith("study/") else text)


def without_questions(text: str) -> str:
    """Return the text of a study's file without what it asks."""
    return re.sub(r"(?ms)^headline:.*?(?=^\w)", "", text)


def write_conf(folder: Path) -> Path:
    """Make conf/ in a folder and return it."""
    conf = folder / "conf"
    _copy(conf, "config.yaml", "study/adaptation.yaml", "figure/theme.yaml")
    _copy(conf, "scale/small.yaml", "scale/paper.yaml")
    for group in ("model", "data", "gpu", "learner/adaptation"):
        shutil.copytree(SHIPPED / group, conf / group)
    for name, adapt_at in (("tiny", 30.0), ("tiny_late", 40.0)):
        _write(conf / "scenario" / "adaptation" / f"{name}.yaml", SCENARIO.format(name=name, adapt_at=adapt_at))
    for learner in ("exact", "constant"):
        _write(conf / "policy" / "adaptation" / f"{learner}-tiny.yaml", POLICY.format(learner=learner))
    study = conf / "study" / "adaptation.yaml"
    study.write_text(study.read_text().replace("baseline: best-constant", "baseline: constant-tiny"))
    _write(conf / "claims" / "adaptation.yaml", CLAIMS)
    _write(folder / "docs/results/adaptation_claims.csv", COMPUTED)
    return conf


def write_hetero_conf(folder: Path) -> Path:
    """Make conf/ with the study hetero, its scenario `trio` and no figure in a folder and return it."""
    conf = folder / "conf"
    scenarios = [f"scenario/hetero/{name}.yaml" for name in ("_base", "trio")]
    _copy(conf, "config.yaml", "study/hetero.yaml", "figure/theme.yaml", *scenarios)
    for group in ("platform", "workload"):
        shutil.copytree(SHIPPED / group, conf / group)
    _copy(conf, "scale/smoke.yaml", "scale/small.yaml")
    return conf


def write_batch_conf(folder: Path) -> Path:
    """Make conf/ with the study batch, its scenario `lublin` with the policy `evolution-lublin`, and no figure in a
    folder and return it.
    """
    conf = folder / "conf"
    own = ("policy/batch/evolution", "learner/batch/evolution", "scenario/batch/_base", "scenario/batch/lublin")
    _copy(conf, "config.yaml", "study/batch.yaml", "figure/theme.yaml", *(f"{name}.yaml" for name in own))
    file = conf / "policy/batch/evolution.yaml"
    alone = "for_each:\n  lublin: {scales: [small, full, paper]}\n"
    file.write_text(re.sub(r"(?s)for_each:.*?\n(?=\w)", alone, file.read_text()))
    lublin = conf / "scenario/batch/lublin.yaml"
    head, _, _ = lublin.read_text().partition("policies:\n")
    lublin.write_text(f"{head}policies: [evolution-lublin]\n")
    _copy(conf, "scale/smoke.yaml", "scale/small.yaml")
    return conf


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
