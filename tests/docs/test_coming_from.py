"""The pages for users of other systems: each of our commands runs as it is printed, in its order, in one folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from page_checkouts import BLOCK, NAMED, checkout_with
from page_parts import REPOSITORY, blocks

PAGES = sorted((REPOSITORY / "docs/guide/coming_from").glob("*.md"))


def follow(name: str, folder: Path) -> None:
    """Save the files that a page prints, and run its commands in one shell."""
    text = (REPOSITORY / f"docs/guide/coming_from/{name}.md").read_text()
    for block in BLOCK.finditer(text):
        first = NAMED.match(block["text"])
        if block["language"] != "console" and (file := first[1] if first else block["saved"]):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(block["text"])
    commands = "".join(blocks(text, "console"))
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    environment.pop("SCHEDLAB_DATA", None)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=environment,
        stdout=(folder / "stdout").open("w"),
        stderr=(folder / "stderr").open("w"),
        timeout=1500,
    )
    assert done.returncode == 0, "".join((folder / name).read_text()[-3000:] for name in ("stdout", "stderr"))


def copy_in(repository: Path, checkout: Path, *names: str) -> None:
    """Copy further files of the repository into a checkout."""
    for name in names:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(repository / name, checkout / name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_command_of_theirs_is_answered_and_the_page_is_short(page: Path) -> None:
    text = page.read_text()
    sections = re.split(r"^## ", text, flags=re.M)[1:]
    assert sections and all("```text\n" in section for section in sections)
    assert blocks(text, "console") and len(text.splitlines()) <= 120


@pytest.mark.slow
def test_from_batsim(tmp_path: Path) -> None:
    follow("batsim", tmp_path)
    for prefix in ("expe-out/out", "one/out", "energy/out", "alone/out", "seed20"):
        assert pd.read_csv(tmp_path / f"{prefix}_schedule.csv")["nb_jobs_success"].item() == 200, prefix
    assert pd.read_csv(tmp_path / "energy/out_schedule.csv")["consumed_joules"].item() > 0
    assert pd.read_csv(tmp_path / "energy/out_schedule.csv")["time_unavailable"].item() == 8 * 3600


@pytest.mark.slow
def test_from_hdeeprm(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    follow("hdeeprm", tmp_path)
    assert len((tmp_path / "rewards.log").read_text().splitlines()) == 3
    assert pd.read_csv(tmp_path / "out_jobs.csv")["success"].sum() == 200
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("metrics.svg", "rewards.svg"))


@pytest.mark.slow
def test_from_ddls(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    checkout = checkout_with(repository, tmp_path, "ramp")
    copy_in(repository, checkout, "conf/learner/ramp/graph_ppo.yaml", "conf/learner/ramp/maskable_ppo.yaml")
    follow("ddls", checkout)
    short, learned = (
        pd.read_parquet(checkout / f"results/{part}.parquet").query("metric == 'blocking_rate'")
        for part in ("smoke-short/ramp/mine/evaluation/rules", "smoke/ramp/mine/evaluation/learned")
    )
    assert set(short["policy"]) == {"sequential", "para_max", "para_min", "sip_ml", "random"}
    assert set(learned["policy"]) == {"ppo-mine"} and learned["value"].between(0, 1).all()


@pytest.mark.slow
def test_from_rlscheduler(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    checkout = checkout_with(repository, tmp_path, "batch")
    copy_in(repository, checkout, "conf/learner/batch/ppo_published.yaml", "conf/claims/batch.yaml")
    (checkout / "docs").symlink_to(repository / "docs")
    follow("rlscheduler", checkout)
    scores = pd.read_parquet(checkout / "results/smoke/batch/mine/evaluation/learned.parquet")
    assert set(scores["policy"]) == {"your-exp-name"} and set(scores["scenario"]) == {"mine"}


@pytest.mark.slow
def test_from_adaptation(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    checkout = checkout_with(repository, tmp_path, "adaptation")
    follow("adaptation", checkout)
    learned = pd.read_parquet(checkout / "results/smoke/adaptation/mine/evaluation/learned.parquet")
    assert set(learned["policy"]) == {"mine-learn"}
    assert (checkout / "conf/scenario/adaptation/simulation_early2.yaml").exists()


@pytest.mark.slow
def test_from_sla_morl(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "resources").symlink_to(repository / "resources")
    follow("sla_morl", tmp_path)
    for folder in ("cloud-optimize", "my_results"):
        assert (tmp_path / folder / "report.html").stat().st_size > 5000
    assert len(list((tmp_path / "historical_logs").glob("*.csv"))) == 3
