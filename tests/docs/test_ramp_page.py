"""The programs of the ramp study's pages work as printed, and the table of traced graphs is that of the shipped
files.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env
from page_parts import REPOSITORY, blocks, table

from schedlab.studies.ramp.graphs.files import read_graph, read_graphs

from ramp_tables import NOT_RECORDED, ramp_placement  # isort: skip  (page_parts adds its folder)
from ramp_traced_graphs import line  # isort: skip


@pytest.mark.slow
def test_the_programs_of_the_page_run(repository: Path, monkeypatch, capsys) -> None:
    programs = blocks((repository / "docs/reference/ramp_model.md").read_text(), "python")
    monkeypatch.chdir(repository)
    names: dict = {}
    for program in programs[:2]:
        exec(compile(program, "docs/reference/ramp_model.md", "exec"), names)
    assert 0 <= float(capsys.readouterr().out) <= 1
    assert names["reward"] in (-1.0, 1.0)
    exec(compile(programs[2], "docs/reference/ramp_model.md", "exec"), names)  # goes on from the one before
    cluster = names["simulation"].cluster
    accepted = [*(done.running for done in cluster.record.completed), *cluster.running]
    assert {running.plan.split.max_degree for running in accepted} == {4}
    assert {running.plan.placement.mask.bit_count() for running in accepted} == {4}
    assert len(accepted) + len(cluster.record.blocked) == cluster.record.arrived - len(cluster.queue)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(names["AnyServers"](names["simulation"]), skip_render_check=True)


def test_the_example_on_graphs_runs(repository: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks((repository / "docs/reference/ramp_graphs.md").read_text(), "python")
    (example,) = [text for text in examples if "statistics_table" in text]
    exec(compile(example, "docs/reference/ramp_graphs.md", "exec"), {})
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("alexnet", "vgg16", "generated-0001", "sequential_jct"))
    assert read_graph("mine.txt").num_ops == 23


def test_the_table_of_placements_names_the_least_of_each_distribution(tmp_path: Path) -> None:
    assert ramp_placement(tmp_path) == NOT_RECORDED
    (tmp_path / "ramp").mkdir()
    (tmp_path / "ramp/summary.csv").write_text(
        "scenario,policy,recipe,trained_on,split,metric,value\n"
        "published_blocks_a,fixed-8,,,test,blocking_rate,0.25\n"
        "published_inside_a,fixed-8,,,test,blocking_rate,0.1459\n"
        "published_inside_a,fixed-8,,,validation,blocking_rate,0.01\n"
        "published_inside_a,fixed-8,,,test,jct,0.001\n"
        "published_any_servers_a,rollouts-published-any-servers-a,rollouts,published_any_servers_a,"
        "test,blocking_rate,0.134\n"
        "published_any_servers_a,lp_bound,,,test,blocking_rate,0.03\n"
    )
    cells = [[cell.strip() for cell in row.split("|")[1:3]] for row in ramp_placement(tmp_path).splitlines()[2:]]
    assert cells == [["`fixed-8`", ".250 / .146 / -"], ["`rollouts`", "- / - / **.134**"]]


def test_the_numbers_of_traced_graphs_are_those_of_the_shipped_files() -> None:
    recorded = table("ramp_traced_graphs").set_index(["from", "graph"]).loc["ours"]
    for graph in read_graphs(REPOSITORY / "resources/graphs/a100"):
        found = line(graph, 50, join_sinks=True)
        assert recorded.loc[graph.name, list(found)].to_dict() == pytest.approx(found, rel=1e-5), graph.name
