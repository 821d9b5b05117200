"""The example of docs/ramp_graphs.md works as it is printed."""

from __future__ import annotations

from pathlib import Path

from page_sentences import blocks

from schedlab.studies.ramp.graphs.files import read_graph


def test_the_example_on_graphs_runs(repository: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks((repository / "docs/ramp_graphs.md").read_text(), "python")
    (example,) = [text for text in examples if "statistics_table" in text]
    exec(compile(example, "docs/ramp_graphs.md", "exec"), {})
    table = capsys.readouterr().out
    assert all(name in table for name in ("alexnet", "vgg16", "generated-0001", "sequential_jct"))
    assert read_graph("mine.txt").num_ops == 23
