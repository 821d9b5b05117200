"""What the pages about live runs and the library show works as printed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import yaml
from page_sentences import blocks

from schedlab.studies.cloud import api
from schedlab.studies.cloud.optimize_settings import OptimizeSettings, read_settings


def test_the_program_of_the_library_page_runs(repository, capsys):
    page = (repository / "docs/cloud_api.md").read_text()
    (program,) = blocks(page, "python")
    exec(compile(program, "docs/cloud_api.md", "exec"), {})
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("Increase GPUs by 1") and told[1] == "2" and told[2].split(":")[0] in ("GOOD", "QUESTIONABLE")
    rows = set(re.findall(r"^\| `(\w+)", page, flags=re.M))
    assert rows <= set(api.__all__) and len(rows) == 15


def test_the_settings_of_the_page_are_valid(repository, tmp_path):
    page = (repository / "docs/cloud_live.md").read_text()
    (settings,) = blocks(page, "yaml")
    (tmp_path / "settings.yaml").write_text(settings)
    assert read_settings(tmp_path / "settings.yaml", {}).preference == "cost"
    assert set(yaml.safe_load(settings)) <= set(OptimizeSettings.model_fields)


def test_the_program_of_the_live_page_runs(repository, tmp_path):
    (program,) = blocks((repository / "docs/cloud_live.md").read_text(), "python")
    shutil.copy(repository / "resources/examples/train_mlp.py", tmp_path / "train.py")
    told = program.replace("env.close()", 'print(info["run"].how, terminated, info["record"]["epoch"])\nenv.close()')
    done = subprocess.run([sys.executable, "-c", told], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["done", "False", "2"], done.stderr[-2000:]
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
