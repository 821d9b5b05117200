"""What the pages about live runs and the library show works as printed."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
import yaml
from page_parts import blocks

from schedlab.studies.cloud.live.run import LiveRequest, run_script
from schedlab.studies.cloud.model.allocation import Allocation
from schedlab.studies.cloud.optimize.settings import OptimizeSettings, read_settings


def test_the_program_of_the_model_page_runs(repository):
    (program,) = blocks((repository / "docs/reference/cloud_model.md").read_text(), "python")
    told = program + "print(mask.shape, mask[13], terminated, env.observation_space.contains(observation))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["(27,)", "True", "False", "True"], done.stderr[-2000:]


def test_the_settings_of_the_page_are_valid(repository, tmp_path):
    page = (repository / "docs/guide/cloud_live.md").read_text()
    (settings,) = blocks(page, "yaml")
    (tmp_path / "settings.yaml").write_text(settings)
    assert read_settings(tmp_path / "settings.yaml", {}).preference == "cost"
    assert set(yaml.safe_load(settings)) <= set(OptimizeSettings.model_fields)


@pytest.mark.slow
def test_the_program_of_the_live_page_runs(repository, tmp_path):
    _, program = blocks((repository / "docs/guide/cloud_live.md").read_text(), "python")
    shutil.copy(repository / "resources/examples/train_mlp.py", tmp_path / "train.py")
    told = program.replace("env.close()", 'print(info["run"].how, terminated, info["record"]["epoch"])\nenv.close()')
    done = subprocess.run([sys.executable, "-c", told], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["done", "False", "2"], done.stderr[-2000:]
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_the_log_of_the_live_page_is_all_that_a_script_needs(repository, tmp_path):
    text, _ = blocks((repository / "docs/guide/cloud_live.md").read_text(), "python")
    (tmp_path / "mine.py").write_text(text)
    run = run_script(LiveRequest(tmp_path / "mine.py", Allocation(0, 1, 1), epochs=2, seconds=60.0), tmp_path / "run")
    assert run.table["epoch"].tolist() == [1, 2] and set(run.table["batch_size"]) == {8}
