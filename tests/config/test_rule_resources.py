"""What the jobs of a workflow rule ask for: `resources:` of conf/scale, as docs/slurm.md and docs/scale.md say."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
import yaml

from schedlab.config.schema import validate
from schedlab.config.settings import SCALES, ScaleSettings, resource


def asked(repository: Path, scale: str, more: dict | None = None) -> dict:
    values = yaml.safe_load((repository / f"conf/scale/{scale}.yaml").read_text())
    values["resources"] |= more or {}
    return validate(ScaleSettings, values).model_dump()["resources"]


def test_what_a_rule_does_not_say_is_as_for_the_others(repository: Path) -> None:
    found = asked(repository, "full", {"default": {"mem_mb": 1500, "runtime": 77}, "make_trace": {"mem_mb": 4000}, "draw": {"threads": 3}})
    assert [resource(found, "make_trace", key) for key in ("mem_mb", "runtime", "threads")] == [4000, 77, 1]
    assert [resource(found, "draw", key) for key in ("mem_mb", "runtime", "threads")] == [1500, 77, 3]
    assert [resource(found, "tabulate", key) for key in ("mem_mb", "runtime", "threads")] == [1500, 77, 1]
    assert [resource({}, "draw", key) for key in ("mem_mb", "runtime", "threads")] == [2000, 60, 1]


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale != "smoke"])  # the record is of small
def test_every_rule_asks_for_twice_the_memory_that_it_was_measured_to_take(repository: Path, scale: str) -> None:
    with (repository / "docs/results/workflow_cost.csv").open() as file:
        measured = [(row["rule"], float(row["max_rss_mib"]) * 2**20 / 1e6) for row in csv.DictReader(file) if row["rule"]]
    found = asked(repository, scale)
    assert len(measured) > 10
    assert not [rule for rule, megabytes in measured if resource(found, rule, "mem_mb") < 2 * megabytes]
    whole = re.search(r"no process took more than ([\d.]+) GB, by the system's count", (repository / "docs/performance.md").read_text())
    assert all(resource(found, rule, "mem_mb") > 1_200 * float(whole[1]) for rule, _ in measured)  # peaks that Snakemake's looks miss


def test_every_rule_that_asks_for_memory_takes_all_of_its_resources_from_there(repository: Path) -> None:
    asking = {}
    for file in sorted((repository / "workflow/rules").rglob("*.smk")):
        for rule in re.findall(r"^ *rule\b[^\n]*:\n.*?(?=^ *rule\b[^\n]*:\n|\Z)", file.read_text(), flags=re.S | re.M):
            keys = re.findall(r'resource\("(\w+)", "(\w+)"\)', rule)
            asking |= {name: {key for own, key in keys if own == name} for name, _ in keys}
    assert asking.pop("default") == {"mem_mb", "runtime"}  # measure_device_speed sweeps its threads
    assert len(asking) == 15 and all(keys == {"mem_mb", "runtime", "threads"} for keys in asking.values()), asking
