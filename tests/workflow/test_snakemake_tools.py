"""What Snakemake itself offers works here: rule graph, report, one study or figure as target, another working
directory.
"""

from __future__ import annotations

import json

import pytest
from checkouts import shipped_checkout

pytestmark = pytest.mark.slow


def test_the_rule_graph_can_be_drawn(toy):
    assert "digraph" in toy.run("all", "--rulegraph")


def test_the_report_shows_each_figure_with_its_caption(toy):
    toy.run("all", "--report", "report.html")
    page = (toy.folder / "report.html").read_text()
    caption = json.loads((toy.folder / "plots/small/toy/figures.json").read_text())["figures"][0]["caption"]
    assert " ".join(caption.split()[:6]) in page and "Guessing a number" in page and "costs.svg" in page
    assert "Figures of schedlab" in page


LIMIT_AT_START = """
ours = workflow._onstart
def report_limit(log):
    ours(log)
    print("limited" if workflow.scheduler.job_rate_limiter else "not limited", file=sys.stderr)
workflow.onstart(report_limit)
"""


@pytest.mark.parametrize(("options", "limit"), [((), "not limited"), (("--max-jobs-per-timespan", "5/1s"), "limited")])
def test_the_limit_on_starts_of_jobs_is_taken_away_unless_a_user_sets_one(fresh_toy, options, limit):
    snakefile = fresh_toy.folder / "Snakefile"
    snakefile.write_text(snakefile.read_text() + LIMIT_AT_START)
    assert limit in fresh_toy.run("results/small/toy/near/evaluation/rules.parquet", *options).splitlines()


def test_a_study_and_a_figure_are_targets(toy):
    for target in ("toy", "plots/small/toy/costs.pdf"):
        assert "Nothing to be done" in toy.run(target, "--dry-run")
    (toy.folder / "plots/small/toy/costs.pdf").unlink()
    assert toy.rules("toy")["draw_toy"] == 1


def test_a_run_for_one_figure_brings_the_page_of_all_figures_up_to_date_and_names_it(toy):
    toy.edit("conf/figure/toy/costs.yaml", "title: Guessing a number", "title: Guessing again")
    output = toy.run("plots/small/toy/costs.pdf")
    assert "The figures with their captions: plots/small/INDEX.md" in output.splitlines()[-4:]
    assert "Guessing again" in (toy.folder / "plots/small/INDEX.md").read_text()
    assert "Nothing to be done" in toy.run("all", "--dry-run")


def test_a_run_that_drew_nothing_names_no_figures(fresh_toy):
    page = fresh_toy.folder / "plots/small/INDEX.md"
    page.parent.mkdir(parents=True)
    page.write_text("of an earlier run")
    output = fresh_toy.run("results/small/toy/near/evaluation/rules.parquet")
    assert "evaluate toy/near/rules" in output and "The figures with their captions" not in output


def test_the_working_directory_may_be_another(repository, tmp_path):
    checkout = shipped_checkout(repository, tmp_path / "checkout")
    elsewhere = tmp_path / "else where"
    jobs = checkout.jobs("adaptation", "--config", "scale=smoke", "--directory", str(elsewhere))
    assert {"evaluate early/rules", "draw_adaptation"} <= jobs
    assert not any("hetero" in job or "batch" in job for job in jobs)  # one study asks for no other
    assert (elsewhere / "results/smoke/adaptation/config/draw.yaml").is_file() and not (
        checkout.folder / "results"
    ).exists()
