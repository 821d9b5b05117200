"""What the jobs of a workflow rule ask for: `resources:` of conf/scale and conf/study, as docs/guide/slurm.md says."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml

from schedlab.config import experiment
from schedlab.config.records import ScaleFile
from schedlab.config.schema import validate
from schedlab.config.settings import SCALES, resource
from schedlab.stages.studies import find_study


@pytest.fixture(scope="module")
def asked(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict]:
    """The resources of a scale, read from the shipped files that hold them, beside the one scenario whose rules those
    of scale paper are.
    """
    conf = tmp_path_factory.mktemp("sizes") / "conf"
    for name in ("scale", "study", "model", "data", "gpu"):
        shutil.copytree(repository / "conf" / name, conf / name)
    (conf / "scenario/adaptation").mkdir(parents=True)
    for name in ("config.yaml", "scenario/adaptation/_base.yaml", "scenario/adaptation/early.yaml"):
        shutil.copy(repository / "conf" / name, conf / name)
    with (conf / "scenario/adaptation/early.yaml").open("a") as early:
        early.write("policies: []\n")
    for file in (conf / "study").iterdir():
        values = yaml.safe_load(file.read_text())
        for key in ("headline", "statistics"):  # which name scenarios and policies
            values.pop(key, None)
        file.write_text(yaml.safe_dump(values, sort_keys=False))
    return cache(lambda scale: experiment.load(conf, scale, find_study).resources)


def typed(resources: dict) -> dict:
    return validate(ScaleFile, {"name": "full", "resources": resources}).model_dump()["resources"]


def test_what_a_rule_does_not_say_is_as_for_the_others() -> None:
    found = typed(
        {"default": {"mem_mb": 1500, "runtime": 77}, "make_trace": {"mem_mb": 4000}, "draw": {"threads": 3}},
    )
    assert [resource(found, "make_trace", key) for key in ("mem_mb", "runtime", "threads")] == [4000, 77, 1]
    assert [resource(found, "draw", key) for key in ("mem_mb", "runtime", "threads")] == [1500, 77, 3]
    assert [resource(found, "tabulate", key) for key in ("mem_mb", "runtime", "threads")] == [1500, 77, 1]
    assert [resource({}, "draw", key) for key in ("mem_mb", "runtime", "threads")] == [2000, 60, 1]


def test_what_a_rule_says_of_a_study_comes_first() -> None:
    said = {
        "default": {"mem_mb": 1500, "runtime": 77},
        "learn": {"runtime": 60, "threads": 2},
        "one/learn": {"runtime": 5},
    }
    found = typed(said)
    assert [resource(found, "learn", key, "one") for key in ("mem_mb", "runtime", "threads")] == [1500, 5, 2]
    assert resource(found, "learn", "runtime", "other") == resource(found, "learn", "runtime") == 60
    assert resource(found, "draw", "runtime", "one") == 77


def measured(repository: Path, column: str) -> list[tuple[str, str, float]]:
    """Study, rule and a column of what the workflow was measured to take at scale small."""
    with (repository / "docs/results/workflow_cost.csv").open() as file:
        return [(row["study"], row["rule"], float(row[column])) for row in csv.DictReader(file) if row["rule"]]


LARGER = [scale for scale in SCALES if scale != "smoke"]  # the record is of small


@pytest.mark.parametrize("scale", LARGER)
def test_every_rule_asks_for_twice_the_memory_that_it_was_measured_to_take(
    repository: Path, asked: Callable[[str], dict], scale: str
) -> None:
    found, taken = asked(scale), measured(repository, "max_rss_mib")
    assert len(taken) > 10
    assert not [rule for study, rule, mib in taken if resource(found, rule, "mem_mb", study) < 2 * mib * 2**20 / 1e6]
    with (repository / "docs/results/measurements_core.csv").open() as file:
        (whole,) = (row["number"] for row in csv.DictReader(file) if row["id"] == "workflow-process-memory")
    peak = 1_000 * float(whole)  # which Snakemake's looks at a job may miss
    assert not [rule for study, rule, _ in taken if resource(found, rule, "mem_mb", study) < 1.2 * peak]


def test_every_rule_asks_for_ten_times_the_run_time_that_it_was_measured_to_take(
    repository: Path, asked: Callable[[str], dict]
) -> None:
    """At scale small, of which the record is; larger ones ask for no less."""
    found = asked("small")
    short = {}
    for study, rule, seconds in measured(repository, "longest_s"):
        minutes = resource(found, rule, "runtime", study)
        if minutes < max(10 * seconds / 60, 5):
            short[study, rule] = (minutes, seconds)
    assert not short


def test_a_larger_scale_asks_for_no_less_time(repository: Path, asked: Callable[[str], dict]) -> None:
    scales = [asked(scale) for scale in LARGER]
    for study, rule, _ in measured(repository, "longest_s"):
        minutes = [resource(found, rule, "runtime", study) for found in scales]
        assert minutes == sorted(minutes), (study, rule)


def test_every_rule_that_asks_for_memory_takes_all_of_its_resources_from_there(repository: Path) -> None:
    asking = {}
    for file in sorted((repository / "workflow/rules").rglob("*.smk")):
        for rule in re.findall(r"^ *rule\b[^\n]*:\n.*?(?=^ *rule\b[^\n]*:\n|\Z)", file.read_text(), flags=re.S | re.M):
            keys = re.findall(r'resource\("(\w+)", "(\w+)"\)', rule)
            asking |= {name: {key for own, key in keys if own == name} for name, _ in keys}
    assert asking.pop("default") == {"mem_mb", "runtime"}  # measure_device_speed sweeps its threads
    assert asking and all(keys == {"mem_mb", "runtime", "threads"} for keys in asking.values()), asking
