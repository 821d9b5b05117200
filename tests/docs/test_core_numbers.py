"""Sentences of the pages about scale, Slurm and learners, with their numbers from records, settings and the profile."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from page_sentences import REPOSITORY, RESULTS, missing, table, text_of

import performance_page  # isort: skip
import scale  # isort: skip
import scale_tables  # isort: skip
import slurm_simulation  # isort: skip

GROWN = json.loads((RESULTS / "scale.json").read_text())["growth"]


def scale_sentences():
    blocks = GROWN["ramp_blocks"]["points"][-1]
    assert blocks["size"] == scale_tables.SERVERS
    yield f"Its blocks are searched once, in {performance_page.text_of(blocks['seconds'], 's')}, and held"
    yield f"(load about {scale.TRACE_LOAD:g} on {scale.TRACE_PROCESSORS} processors)"
    partition, study = slurm_simulation.profile(), slurm_simulation.Study(scenarios=1, seeds=1, learn=1.0)
    yield (
        f"simulates the profile: {partition.queued} Slurm jobs in the queue, {60 / partition.gap:.0f} submissions a minute, a look every "
        f"{partition.look:g} s, two starts of Snakemake in each Slurm job ({partition.start:g} s, and twice what a scenario adds"
    )
    assert study.side_by_side == 2
    yield f"Scoring, two jobs side by side, starts for {study.evaluate_together} scenarios once"
    full, smallest = yaml.safe_load((REPOSITORY / "conf/scale/full.yaml").read_text())["resources"], scale_tables.LIMITS["one_job"]
    assert full["default"]["mem_mb"] == smallest > scale_tables.at(GROWN["one_job"], scale_tables.SCENARIOS, "memory_mb")
    yield f"the {smallest / 1e3:g} GB that the smallest Slurm job asks for (at scale `full`, a group of learning jobs asks for twice "
    yield f"asks for twice {full['learn']['mem_mb'] / 1e3:g} GB)"
    yield f"(a job of scoring {study.evaluate:g} s, the summary {study.summarise:g} s, both assumed)"


def slurm_sentences():
    start = GROWN["one_job"]
    added = {key: scale_tables.at(start, 1_001, key) - scale_tables.at(start, 1_000, key) for key in ("seconds", "memory_mb")}
    yield f"takes {1e3 * added['seconds']:.0f} ms a scenario more than the smallest start and {added['memory_mb']:.2g} MB of memory"
    yield f"at 1,000 scenarios {scale_tables.at(start, 1_000, 'seconds'):.0f} s each time"
    text = text_of("slurm")
    (files,) = re.findall(r"to the end\): (\d+) a scenario", text)
    yield f"So 1,000 scenarios are some {1_000 * int(files):,} files"


def learners_sentences():
    decisions, numbers = 50_000, 7_356  # each with the observation before and after it, four bytes a number
    yield f"{decisions:,} decisions of {numbers:,} float32 numbers take {2 * 4 * decisions * numbers / 1e9:.1f} GB"


def readme_sentences():
    (whole,) = (row for row in table("workflow_cost").itertuples() if row.study == "all")
    assert (whole.scale, whole.cores) == ("small", 2)
    yield f"`make figures` then computes for {whole.wall_of_all_s / 60:.0f} minutes on an otherwise idle machine with two cores"
    (torch,) = re.findall(r"^torch==.*$", (REPOSITORY / "requirements.txt").read_text(), flags=re.M)
    yield f".venv/bin/pip install {torch} --index-url INDEX"


SENTENCES = {"README.md": readme_sentences, "scale": scale_sentences, "slurm": slurm_sentences, "learners": learners_sentences}


@pytest.mark.parametrize("page", SENTENCES)
def test_numbers_in_sentences_are_those_of_the_records(page):
    assert missing(page, SENTENCES[page]) == []


def test_the_page_tells_how_many_jobs_of_a_group_the_profile_puts_together():
    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/config.yaml").read_text())
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (\d+) \|$", (REPOSITORY / "docs/slurm.md").read_text(), flags=re.M)
    assert [f"{group}={together}" for group, together in rows] == profile["group-components"]
