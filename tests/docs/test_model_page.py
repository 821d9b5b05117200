"""docs/reference/hetero_model.md: its example runs, and its tables miss nothing."""

from __future__ import annotations

import re

import pytest
from small_clusters import workload

from schedlab.studies.hetero.env.objectives import OBJECTIVES
from schedlab.studies.hetero.env.settings import LegacySettings
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import ALL_JOB_POLICIES
from schedlab.workloads.batsim_file import write_batsim


@pytest.fixture
def page(repository) -> str:
    """The text of the page."""
    return (repository / "docs/reference/hetero_model.md").read_text()


def test_the_example_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_batsim("workload.json", workload([{}, {"res": 12}], nb_res=2280))
    code = (
        re.search(r"```python\n(.*?)```", page, flags=re.S)
        .group(1)
        .replace("schedlab/Hetero", "schedlab.environments:schedlab/Hetero")
    )
    names: dict = {}
    exec(code, names)
    observation, _ = names["env"].reset()
    assert observation.shape == (516,)
    assert names["env"].step(0)[2]


def test_tables_name_everything(page):
    names = [*LegacySettings.model_fields, *OBJECTIVES, *ALL_JOB_POLICIES, *ALL_CORE_POLICIES]
    assert [name for name in names if f"`{name}`" not in page] == []
