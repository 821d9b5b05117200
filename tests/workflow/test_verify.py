"""`make verify` compares all that two runs made; runs of the five studies are compared by
tests/faults/test_five_studies.py.
"""

from __future__ import annotations

import sys

import pytest
import verify
from checkouts import Checkout


def made(monkeypatch, *runs: dict[str, str]):
    """Let each run of the workflow make the next of some sets of files, at once."""
    files = iter(runs)

    def run(checkout: Checkout, *arguments: str, cores: int, seconds: float | None) -> str:
        assert arguments == ("all", "--config", "scale=smoke") and seconds is None
        assert (checkout.folder / "Snakefile").is_file() and (checkout.folder / "conf/config.yaml").is_file()
        assert not (checkout.folder / "results").exists()
        for name, text in next(files).items():
            (checkout.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (checkout.folder / name).write_text(text)
        return f"{cores}"

    monkeypatch.setattr(Checkout, "run", run)


RUN = {
    "results/smoke/s/scores.parquet": "a",
    "results/smoke/s/config/draw.yaml": "b",
    "results/smoke/manifest.json": "c",
    "results/smoke/s/logs/draw.log": "12:01",
    "results/smoke/s/x.provenance.json": "12:01",
    "plots/smoke/s/figure.svg": "d",
}


def test_equal_runs_are_equal_whatever_their_logs_say(monkeypatch, capsys):
    made(
        monkeypatch, RUN, RUN | {"results/smoke/s/logs/draw.log": "12:02", "results/smoke/s/x.provenance.json": "12:02"}
    )
    assert verify.main([]) == 0
    assert "differ" not in capsys.readouterr().out


def test_each_file_that_differs_is_named(monkeypatch, capsys, tmp_path):
    other = {name: text for name, text in RUN.items() if "figure" not in name} | {"results/smoke/s/scores.parquet": "x"}
    made(monkeypatch, RUN, other)
    assert verify.main(["--keep", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert all(file in out for file in ("plots/smoke/s/figure.svg", "results/smoke/s/scores.parquet"))
    assert "curve" not in out
    assert (tmp_path / "run-2/results/smoke/s/scores.parquet").read_text() == "x"
    with pytest.raises(SystemExit):
        verify.main(["--keep", str(tmp_path)])
    assert "holds runs already" in capsys.readouterr().err


def test_runs_that_make_nothing_verify_nothing(monkeypatch):
    made(monkeypatch, {"results/a.log": ""}, {"results/a.log": ""})
    assert verify.main([]) == 1


def test_a_run_that_fails_ends_in_its_own_words(monkeypatch):
    failing = [sys.executable, "-c", "raise SystemExit('error: the disk is full.')"]
    monkeypatch.setattr(Checkout, "command", lambda *_, **__: failing)
    with pytest.raises(SystemExit) as ended:
        verify.main(["--cores", "1", "2"])
    own, _, rest = str(ended.value).partition("\n")
    assert own == "error: the disk is full." and "--cores 1" in rest and "--keep DIR" in rest


def test_the_makefile_runs_it(repository):
    assert "python tests/workflow/verify.py" in (repository / "Makefile").read_text()
