"""docs/hetero_choices.md has the pages that HDeepRM's manual promised; its numbers that need no run are what the code gives."""

from __future__ import annotations

import re

import pytest
from small_clusters import cluster

from schedlab.studies.hetero.env.objectives import OBJECTIVES
from schedlab.studies.hetero.env.observation import Observer
from schedlab.studies.hetero.example import SELECTION
from schedlab.studies.hetero.learners.networks import build_network
from schedlab.studies.hetero.simulator.job_queue import JobQueue
from schedlab.studies.hetero.simulator.resources import JobRequest, ResourceModel

LIMITS = {"max_time": 1.0, "max_core": 1.0, "max_mem": 1.0, "max_mem_bw": 1.0}
PROMISED = {
    "hetero_choices.md": (
        "## Objectives",
        "## Action space and policy pairs",
        "## Queue sensitivity",
        "## Hidden units, learning rate, discount factor",
    ),
    "platforms.md": ("# Platforms",),
    "hetero_launch.md": ("## An agent of your own",),
}


@pytest.fixture
def page(repository) -> str:
    """The text of the page."""
    return (repository / "docs/hetero_choices.md").read_text()


@pytest.mark.parametrize("name", PROMISED)
def test_every_promised_page_is_there_and_can_be_found(repository, name):
    text = (repository / "docs" / name).read_text()
    for heading in PROMISED[name]:
        assert f"\n{heading}\n" in f"\n{text}"
    assert f"({name}" in (repository / "docs/hetero.md").read_text()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_is_advised_on_and_measured(page, objective):
    assert page.count(f"`{objective}`") >= 2
    assert f"| `{objective}` |" in page


def variation(before: int, now: int, sensitivity: float) -> float:
    """What an agent sees of a queue that had and has so many jobs."""
    observer, queue = Observer(ResourceModel(cluster().hierarchy), "minimal", LIMITS, sensitivity), JobQueue()
    jobs = [JobRequest(str(number), number, 0.0, 1.0, 1, 0, 0, 1.0) for number in range(max(before, now))]
    for job in jobs[:before]:
        queue.add(job)
    observer.observe(queue)
    for job in jobs[before:now]:
        queue.add(job)
    for job in jobs[now:before]:
        queue.remove(job)
    return float(observer.observe(queue)[-1])


def test_the_table_of_sensitivities(page):
    sensitivities = [float(cell) for cell in re.search(r"^\| s \|(.*)\|$", page, re.M).group(1).split("|")]
    rows = re.findall(r"^\| v at (\d+) to (\d+) jobs[^|]*\|(.*)\|$", page, re.M)
    assert len(sensitivities) == 5 and len(rows) == 3
    for before, now, cells in rows:
        told = [float(cell) for cell in cells.split("|")]
        assert told == pytest.approx([variation(int(before), int(now), each) for each in sensitivities], abs=1e-6)


def test_numbers_of_parameters(page):
    told = [
        int(number.replace(",", "")) for number in re.search(r"([\d,]+) of them with `minimal`.* ([\d,]+) with `normal`", page).groups()
    ]
    networks = [build_network(size, SELECTION, 16, critic=False, seed=0) for size in (21, 7356)]
    assert told == [sum(parameter.numel() for parameter in network.parameters()) for network in networks]
