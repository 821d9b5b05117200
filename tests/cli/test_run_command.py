"""`schedlab run`: what it hands to Snakemake, and what it refuses before."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import snakemake_logger_plugin_schedlab
from schedlab.cli.main import main

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The words that Snakemake was called with, in a folder with a Snakefile and a conf/."""
    words: list[str] = []

    def called(command: list[str], check: bool) -> subprocess.CompletedProcess:
        del check
        words.extend(command[1:])
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", called)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").touch()
    (tmp_path / "conf/scenario").mkdir(parents=True)
    return words


@pytest.mark.parametrize(
    ("given", "cores"),
    [
        (["ramp", "--config", "scale=smoke", "sweep=seed=1,2"], True),
        (["-n", "--config", "scale=smoke", "--cores", "2"], False),
        (["-c2", "all"], False),
        (["--profile=profiles/slurm"], False),
        (["--help"], False),
        ([], True),
    ],
)
def test_the_words_go_to_snakemake_and_its_status_comes_back(handed_over: list[str], given: list[str], cores) -> None:
    assert main(["run", *given]) == 3
    assert handed_over == ["-m", "snakemake", *(["--cores", "all"] if cores else []), *given]


def test_without_a_snakefile_here_the_checkouts_is_taken(handed_over: list[str], repository: Path) -> None:
    Path("Snakefile").unlink()
    main(["run", "-n", "-c1"])
    assert handed_over == ["-m", "snakemake", "--snakefile", str(repository / "Snakefile"), "-n", "-c1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--config", "scael=smoke"], "'scale'"),
        (["-n", "-C", "scale=smoke", "adaptation.budget=100"], "adaptation.budget"),
        (["--config", "scenario.ramp.uniform.seed=3"], 'set="scenario.ramp.uniform.seed=VALUE"'),
        (["--config", "scale=smoke", "ramp"], "'ramp'"),
        (["--configfile", "mine.yaml"], "'scenario'"),
        (["--configfile", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_sentence(handed_over, capsys, words: list[str], said: str) -> None:
    Path("mine.yaml").write_text("scenaro: {}\n")
    assert main(["run", *words]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.err.startswith("error: ")
    assert not printed.out and not handed_over


WRONG = [
    "adaptation.budget=1",
    "scael=smoke",
    "x=1",
    "=1",
    "seed",
    "1abc=2",
    "se t=1",
    "scale-=smoke",
    "scale: smoke",
    "a.b",
]


@pytest.mark.parametrize("word", WRONG)
def test_snakemake_ends_with_one_sentence_where_it_cannot_read_a_word(tmp_path, monkeypatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(REPOSITORY / "conf/study", tmp_path / "conf/study")
    command = ["bin/snakemake", "-n", "-C", "scale=smoke", word]
    snakemake_logger_plugin_schedlab.check(command)  # there is no Snakefile here
    shutil.copy(REPOSITORY / "Snakefile", tmp_path)
    for words in (command, ["lib/snakemake/__main__.py", *command[1:]]):
        with pytest.raises(SystemExit) as ended:
            snakemake_logger_plugin_schedlab.check(words)
        assert str(ended.value).startswith("error: --config: ") and "\n" not in str(ended.value)
    snakemake_logger_plugin_schedlab.check(["bin/pytest", *command[1:]])
    snakemake_logger_plugin_schedlab.check([*command[:4], "seed=3"])


def test_snakemake_imports_the_look_at_its_words() -> None:
    command = [sys.executable, "-m", "snakemake", "-n", "--config", "adaptation.budget=1"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert 'set="scenario.adaptation.<scenario>.budget=VALUE"' in done.stderr
