"""The workflow used from elsewhere: as a module of another workflow, and in another working directory, all with spaces
in paths.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from checkouts import another_run, write_toy_conf

pytestmark = pytest.mark.slow

SCORES = "results/smoke/toy/near/evaluation/rules.parquet"
COUNTING = f"""
rule count_policies:
    default_target: True
    input:
        {SCORES!r},
    output:
        "policies.txt",
    run:
        import pandas

        Path(output[0]).write_text(str(pandas.read_parquet(input[0])["policy"].nunique()))
"""


def snakemake(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run snakemake in a folder and return everything that it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == status, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr


@pytest.fixture
def linked(repository: Path, tmp_path: Path) -> Path:
    """The checkout under a path with spaces, which nothing may write to."""
    link = tmp_path / "a checkout of ours"
    link.symlink_to(repository)
    return link


@pytest.fixture
def own(repository: Path, tmp_path: Path) -> Path:
    """A working directory with a configuration and a study of its own: the toy."""
    folder = tmp_path / "another workflow"
    write_toy_conf(repository, folder)
    shutil.copytree(repository / "tests/toy_study", folder / "tests/toy_study")
    return folder


def test_another_workflow_takes_it_as_a_module_as_the_page_says(repository: Path, linked: Path, own: Path) -> None:
    page = (repository / "docs/architecture.md").read_text()
    importing = textwrap.dedent(re.search(r"```snakemake\n(.*?)\n *```", page, flags=re.S)[1])
    assert "PATH/Snakefile" in importing and '"scale": "small"' in importing
    importing = importing.replace("PATH/Snakefile", str(linked / "Snakefile")).replace(
        '"scale": "small"', '"scale": "smoke"'
    )
    (own / "Snakefile").write_text(importing + COUNTING)
    output = snakemake(own, "--cores", "2")
    assert "schedlab_evaluate" in output and (own / "policies.txt").read_text() == "3"
    assert "Nothing to be done" in snakemake(own, "--cores", "2", "--dry-run")
    with another_run(own):
        output = snakemake(own, "--cores", "2", "--force", status=1)
    said = [line for line in output.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and "another run works in this directory" in said[0]
    assert not [noise for noise in ("Traceback", "Exception", "SystemExit", ".smk") if noise in output], output


def test_the_snakefile_and_the_working_directory_may_be_named(linked: Path, own: Path, tmp_path: Path) -> None:
    here = tmp_path / "some where"
    here.mkdir()
    target = "results/smoke/toy/near/inputs/targets.json"
    snakemake(here, "-s", str(linked / "Snakefile"), "-d", str(own), "--cores", "2", target, "--config", "scale=smoke")
    assert (own / target).is_file() and not list(here.iterdir())
