"""The pictures of the README are figures that `make figures` draws, of the results and policies that there are now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import shipped_conf
from schedlab.config import experiment
from schedlab.stages.studies import find_study

pytestmark = pytest.mark.xdist_group("shipped configuration")
REPOSITORY = Path(__file__).parents[2]
DRAWN = yaml.safe_load((REPOSITORY / "docs/pictures/figures.yaml").read_text())


@pytest.fixture(scope="module")
def small() -> experiment.Experiment:
    return experiment.load(shipped_conf.CONF, "small", find_study, made=shipped_conf.COMPOSED)


@pytest.mark.parametrize("study", DRAWN)
def test_a_picture_shows_what_its_figure_would_show_now(small: experiment.Experiment, study: str) -> None:
    now, drawn = small.studies[study], DRAWN[study]
    again = f"snakemake --cores all plots/small/{study}/{drawn['figure']}.png, then bring docs/pictures/ up to date"
    assert drawn["figure"] in now.figures, again
    figure = now.figures[drawn["figure"]]
    shown = figure["scenarios"] or [name for name, record in now.scenarios.items() if record["in_figures"] == "all"]
    assert drawn["learned"] == {name: sorted(now.scenarios[name]["policies"]) for name in shown}, again


def test_the_readme_shows_these_pictures_and_says_how_they_are_drawn(small: experiment.Experiment) -> None:
    readme = (REPOSITORY / "README.md").read_text()
    assert set(re.findall(r"\(docs/pictures/(\w+)\.png\)", readme)) == set(DRAWN) == set(small.studies)
    named = re.search(r"snakemake --cores all plots/small/\{(.*?)\}\.png", readme)
    assert named and set(named[1].split(",")) == {f"{study}/{drawn['figure']}" for study, drawn in DRAWN.items()}
