"""The shipped studies under profiles/slurm: which jobs go together, what a full group asks for, and how many jobs there
are.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from checkouts import Checkout, copy_repository, without

from schedlab.config import experiment
from schedlab.stages.studies import find_study

pytestmark = pytest.mark.slow

LOCAL = {"all", "index_figures"}  # which run where Snakemake does
MOST_HOURS = {"full": 12, "paper": 48}  # partitions commonly end jobs after 24 or 48 hours
MOST_JOBS = {"small": 250}
MOST_JOBS_OF_A_SCENARIO = 20


@pytest.fixture(scope="module")
def asked(repository: Path, tmp_path_factory: pytest.TempPathFactory):
    """What a dry run of everything at a scale would ask Slurm for (asked_of_slurm.py)."""
    folder = copy_repository(repository, tmp_path_factory.mktemp("slurm") / "checkout").folder
    shutil.copytree(repository / "conf", folder / "conf")
    told: dict[str, dict] = {}

    def ask(scale: str) -> dict:
        if scale not in told:
            command = [sys.executable, str(Path(__file__).with_name("asked_of_slurm.py")), scale]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
            found = json.loads(done.stdout or "{}")
            assert found, done.stderr[-4000:]
            told[scale] = found
        return told[scale]

    return ask


@pytest.fixture(scope="module")
def profile(repository: Path) -> dict:
    return yaml.safe_load((repository / "profiles/slurm/config.yaml").read_text())


@pytest.mark.parametrize("scale", MOST_HOURS)
def test_no_full_group_asks_for_more_time_than_a_partition_gives(asked, scale: str) -> None:
    """At the first attempt; as many of the largest chains of jobs as the profile puts together."""
    groups = asked(scale)["groups"]
    long = [
        (one["group"], one["rules"], one["asked"]["runtime"])
        for one in groups
        if one["asked"]["runtime"] > 60 * MOST_HOURS[scale]
    ]
    assert not long
    assert {one["asked"]["_cores"] for one in groups} == {2}  # they were laid out on the cores of the profile


@pytest.mark.parametrize("scale", MOST_HOURS)
def test_every_job_of_the_shipped_studies_belongs_to_a_group_of_the_profile(asked, profile, scale: str) -> None:
    """A job of seconds that is submitted alone costs more in starts than in work."""
    submitted = asked(scale)["jobs"].keys() - LOCAL
    assert submitted and submitted <= dict(entry.split("=") for entry in profile["groups"]).keys()


def test_the_profile_names_no_rule_that_no_scale_has(asked, profile) -> None:
    """Spans of simulated adaptations, above all, which conf/scale decides (`replicates_per_job`)."""
    groups = dict(entry.split("=") for entry in profile["groups"])
    assert groups.keys() <= {rule for scale in (*MOST_HOURS, *MOST_JOBS) for rule in asked(scale)["jobs"]}
    assert set(groups.values()) == {entry.split("=")[0] for entry in profile["group-components"]}


@pytest.mark.parametrize("scale", MOST_JOBS)
def test_a_scale_has_few_well_filled_jobs(asked, scale: str) -> None:
    told = asked(scale)
    assert sum(told["jobs"].values()) <= MOST_JOBS[scale]
    assert told["scenarios"] and max(told["scenarios"].values()) <= MOST_JOBS_OF_A_SCENARIO, told["scenarios"]


def test_scales_need_no_edit_where_shipped_studies_are_taken_out(repository: Path, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    shutil.copytree(repository / "conf", tmp_path / "conf")
    for study in ("adaptation", "batch", "hetero", "ramp"):
        without(checkout, study)
    for group in ("data", "model", "platform", "workload"):  # which they alone read
        shutil.rmtree(tmp_path / "conf" / group)
    assert set(experiment.load(tmp_path / "conf", "paper", find_study).studies) == {"cloud"}
