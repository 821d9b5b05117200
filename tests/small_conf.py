"""A small configuration folder of the adaptation study: two tiny scenarios, two policies; the rest is as shipped."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

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
  growth: {{bn_init: default, optimizer: fresh_every_decision, lr_on_growth: restart, noop: reset, soft_target_weight: 0.0}}
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
  - {id: accuracy, paper: a paper, quantity: accuracy, published: 0.7391, ours_reference: 0.73912, tolerance: 1.0e-4, status: reproduced}
  - {id: sequence, paper: a paper, quantity: best sequence, published: "110", ours_reference: "011", status: differs, note: noise}
"""


def write_conf(folder: Path) -> Path:
    """Make conf/ in a folder and return it."""
    conf = folder / "conf"
    for name in ("config.yaml", "study/adaptation.yaml", "figure/theme.yaml"):
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SHIPPED / name, conf / name)
    write_scales(conf, "adaptation", "small", "paper")
    for group in ("model", "data", "gpu", "learner"):
        shutil.copytree(SHIPPED / group, conf / group)
    for name, adapt_at in (("tiny", 30.0), ("tiny_late", 40.0)):
        _write(conf / "scenario" / "adaptation" / f"{name}.yaml", SCENARIO.format(name=name, adapt_at=adapt_at))
    for learner in ("exact", "constant"):
        _write(conf / "policy" / "adaptation" / f"{learner}-tiny.yaml", POLICY.format(learner=learner))
    study = conf / "study" / "adaptation.yaml"
    study.write_text(study.read_text().replace("baseline: best-constant", "baseline: constant-tiny"))
    _write(conf / "claims" / "adaptation.yaml", CLAIMS)
    return conf


def write_scales(conf: Path, study: str, *names: str) -> None:
    """Write shipped scales with the section of one study alone."""
    for name in names:
        values = yaml.safe_load((SHIPPED / f"scale/{name}.yaml").read_text())
        _write(conf / f"scale/{name}.yaml", yaml.safe_dump({**values, "studies": {study: values["studies"][study]}}))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
