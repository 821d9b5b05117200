"""What defects of the published systems do to numbers where no switch of a scenario shows it (batch 7, 10, 11, 23)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from conformance.batch_recorded import load
from schedlab.config.schema import validate
from schedlab.studies.batch.env.layouts import Scales
from schedlab.studies.batch.jobs import Jobs, Machine, window
from schedlab.studies.batch.learners.networks import ATTENTION_HEADS, ATTENTION_WIDTH
from schedlab.studies.batch.learners.stock_settings import BatchMaskablePPOSettings
from schedlab.studies.batch.learners.training_windows import TrainingProblem
from schedlab.studies.batch.metrics import measures
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.workloads.prepare import make_trace

STARTS = {
    "HPC2N-2002-2.2-cln": (121722, 136722, 151722, 166722, 181722),
    "SDSC-SP2-1998-4.2-cln": (35823, 49704),
}  # the dissertation's


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in STARTS])
def published(request, shared_data: Path) -> tuple[str, Jobs, Machine]:
    """(name of a trace that the dissertation tested on, its jobs, its machine)."""
    return request.param, *load(shared_data / f"traces/{request.param}.swf.gz")


def test_real_run_times_make_sjf_several_times_better(published):
    name, jobs, machine = published
    windows = [window(jobs, machine, start, 10_000) for start in STARTS[name]]
    known = [replace(each, requested=each.run) for each in windows]
    found = [
        np.mean([measures(simulate(each, machine, "sjf", "none"), machine)["avg_bsld"] for each in them])
        for them in (windows, known)
    ]
    assert [f"{value:.2f}" for value in found] == {"HPC2N": ["145.90", "23.08"], "SDSC-": ["2618.69", "265.77"]}[
        name[:5]
    ]


def test_divisors_of_the_whole_trace_shift_what_is_seen(published):
    name, jobs, _ = published
    whole, half = Scales.of(jobs), Scales.of(jobs.take(slice(0, len(jobs) // 2)))
    shifts = [getattr(whole, column) / getattr(half, column) for column in ("submit", "job_id", "user", "run")]
    assert [f"{shift:.2f}" for shift in shifts] == {
        "HPC2N": ["1.89", "1.64", "1.18", "1.17"],
        "SDSC-": ["2.39", "1.70", "1.00", "1.00"],
    }[name[:5]]
    assert (whole.executable if name.startswith("HPC2N") else whole.memory) == 0  # missing: divided by 0 there


def test_attention_over_decisions_sees_no_queue():
    """The dissertation hands (decisions, rows, width) to a module that takes (sequence, batch, width)."""
    torch.manual_seed(0)
    module, decisions = nn.MultiheadAttention(ATTENTION_WIDTH, ATTENTION_HEADS), torch.randn(64, 128, ATTENTION_WIDTH)
    with torch.no_grad():
        alone = module(*[decisions[:1]] * 3)[0]
        other_jobs = decisions[:1].clone()
        other_jobs[:, 1:] = 0.0
        assert torch.allclose(
            module(*[other_jobs] * 3)[0][:, 0], alone[:, 0], atol=1e-6
        )  # another queue, the same number of the first job
        in_batch = module(*[decisions] * 3)[0][:1]
    assert (
        f"{in_batch.norm() / alone.norm():.2f}" == "0.16"
    )  # it learns from the mean of 64 decisions and decides without any


def test_windows_are_kept_by_the_code_that_the_paper_leaves_out(shared_data: Path):
    """RLScheduler's filter on half of Lublin-1: constants in its code, the median and mean in its paper."""
    workload = {
        "name": "lublin-1",
        "source": "swf",
        "file": str(shared_data / "traces/lublin_256.swf.gz"),
        "cleaning": {"profile": "rlscheduler"},
    }
    scenario = validate(
        BatchScenario, {"name": "published", "seed": 1, "workload": workload, "windows": {"length": 256}}
    )
    problem, kept = BatchProblem(scenario, make_trace(scenario.workload)[0]), []
    for keep in ("range", "median"):
        seen = TrainingProblem(problem, validate(BatchMaskablePPOSettings, {"keep_windows": keep}))
        kept.append({start for unit in seen.units("train") for start in seen._starts(unit)})
    starts = problem.part("train")[1] - 256 + 1
    assert [f"{100 * len(each) / starts:.1f}" for each in kept] == ["6.5", "43.2"] and not kept[0] & kept[1]
