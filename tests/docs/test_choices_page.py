"""docs/notebook/hetero_choices.md: its table of queue sensitivities is what an agent sees."""

from __future__ import annotations

import re

import pytest
from small_clusters import cluster

from schedlab.studies.hetero.env.observation import Observer
from schedlab.studies.hetero.simulator.resources import JobQueue, JobRequest, ResourceModel

LIMITS = {"max_time": 1.0, "max_core": 1.0, "max_mem": 1.0, "max_mem_bw": 1.0}


@pytest.fixture
def page(repository) -> str:
    """The text of the page."""
    return (repository / "docs/notebook/hetero_choices.md").read_text()


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
