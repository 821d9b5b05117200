"""Tests of schedlab.stages.studies and schedlab.stages.policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from schedlab.cli.main import main
from schedlab.config.contract import PolicySpec
from schedlab.config.errors import UserError
from schedlab.stages import studies
from schedlab.stages.policies import make_rule, policy_spec, policy_stream

if TYPE_CHECKING:
    from conftest import Toy


def test_names_and_load_from_the_configuration(toy: Toy) -> None:
    assert studies.names() == ["toy"]
    assert studies.load("toy") is toy.study
    assert studies.of_part({"study": "toy"}) is toy.study
    assert studies.of_part({"study": "toy", "module": "toy_study.study", "path": "tests"}) is toy.study


def test_an_installed_study_is_found(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "toy"

        def load(self) -> object:
            return toy.study

    monkeypatch.setattr(studies, "entry_points", lambda group: [Point()] if group == "schedlab.studies" else [])
    assert studies.find_study({"name": "toy"}) is toy.study


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"name": "adaption"}, r"unknown study 'adaption'.*did you mean 'adaptation'"),
        (
            {"name": "toy", "module": "toy_study.nowhere"},
            r"conf/study/toy\.yaml: module: the module 'toy_study.nowhere' cannot be imported",
        ),
        ({"name": "toy", "module": "json"}, "holds no STUDY"),
        ({"name": "game", "module": "toy_study.study", "path": "tests"}, "is named 'toy'; expected 'game'"),
    ],
)
def test_mistakes_are_told(toy: Toy, monkeypatch: pytest.MonkeyPatch, settings: dict, error: str) -> None:
    del toy
    monkeypatch.setattr(studies, "_shipped", lambda: ["adaptation", "hetero"])
    with pytest.raises(UserError, match=error):
        studies.find_study(settings)


@pytest.mark.usefixtures("toy")
def test_a_sixth_study_is_among_the_commands(capsys: pytest.CaptureFixture) -> None:
    """Its name and first sentence come from its own files, and neither it nor torch is imported for that."""
    assert set(studies.summaries()) == {*studies._shipped(), "toy"}
    with pytest.raises(SystemExit):
        main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "toy The study `toy`: a policy names one number" in told
    assert "adaptation When and where should a network grow" in told
    assert main(["toy"]) == 2
    assert "toy" in capsys.readouterr().err
    Path("conf/study/toy.yaml").write_text("name: toy\nmodule: toy_study.stuy\npath: tests\n")
    assert main(["toy"]) == 2
    assert "conf/study/toy.yaml: module" in capsys.readouterr().err


def test_a_policys_entry_becomes_its_specification(toy: Toy) -> None:
    spec = policy_spec(toy.hill)
    assert spec.seeds == (0, 1, 2, 3, 4)
    assert [(phase.scenarios, phase.steps) for phase in spec.train_on] == [(("near",), 5), (("near", "far"), 5)]
    assert policy_spec(toy.rules[0]) == PolicySpec("zero", "rule", "constant")


def test_an_unknown_rule_is_told(toy: Toy) -> None:
    with pytest.raises(UserError, match="unknown rule 'dise' of study 'toy'; did you mean 'dice'"):
        make_rule(toy.study, PolicySpec("d", "rule", "dise"), None, 0)


def test_policies_share_their_random_numbers() -> None:
    assert policy_stream(1, "rule", "toy", 0) != policy_stream(1, "learn", "toy", 0)
    assert len({policy_stream(root, "rule", "toy", seed) for root in (1, 2) for seed in range(5)}) == 10


def test_the_door_is_light(repository: Path) -> None:
    """Finding a study and drawing need no torch and no Snakemake."""
    import subprocess
    import sys

    modules = (
        "schedlab.stages.draw",
        "schedlab.stages.summarise",
        "schedlab.stages.learn",
        "schedlab.figures.captions",
        "schedlab.figures.save",
    )
    code = (
        f"import sys, {', '.join(modules)}; print(sorted({{'torch', 'snakemake', 'matplotlib', 'hydra'}} & "
        "set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
