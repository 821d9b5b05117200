"""A scenario whose data is not on the machine: listed by `all`, an error that says where to get it as a target."""

from __future__ import annotations

import pytest
from checkouts import shipped_checkout

pytestmark = pytest.mark.slow


@pytest.fixture
def without_data(repository, tmp_path, monkeypatch):
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    checkout = shipped_checkout(repository, tmp_path / "without")
    (checkout.folder / "conf/scenario/adaptation/photographs.yaml").write_text(
        "defaults:\n  - _base\n  - override /model: convnet2\n  - override /data: cifar10\n  - override /gpu@timing: "
        "gv100gl\n  - _self_\n"
        "name: photographs\nadapt_at: 70.0\nscales: [smoke]\npolicies: []\n"
    )
    return checkout


def test_all_lists_it_and_ends_well(without_data):
    output = without_data.run("all", "--dry-run", "--config", "scale=smoke")
    assert "not run: adaptation/photographs" in output and "cifar10" in output


def test_its_files_as_targets_are_an_error_that_says_where_to_get_the_data(without_data):
    output = without_data.run(
        "results/smoke/adaptation/photographs/evaluation/rules.parquet", "--config", "scale=smoke", status=1
    )
    assert "cannot run here" in output and "schedlab data get cifar10" in output and "Traceback" not in output
