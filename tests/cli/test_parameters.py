"""The page of parameters is the one that the code gives."""

from __future__ import annotations

from schedlab.cli.main import main


def test_the_page_is_current(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    assert main(["parameters"]) == 0
    assert capsys.readouterr().out == (repository / "docs/reference/parameters.md").read_text(), (
        "run: schedlab parameters > docs/reference/parameters.md"
    )
