"""`schedlab new scenario|policy|platform`: what is written passes the check, and nothing is written over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from schedlab.cli.main import main
from schedlab.config.composition import Composer
from schedlab.config.readers import read_yaml
from schedlab.config.records import typed
from schedlab.stages import studies

STUDIES = ("adaptation", "batch", "cloud", "hetero", "ramp")


@pytest.fixture
def shipped(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped conf/, without the ledger, which belongs to the checkout."""
    shutil.copytree(repository / "conf", tmp_path / "conf", ignore=shutil.ignore_patterns("claims"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "conf"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a new study."""
    assert main(["new", "study", "ordering", str(tmp_path / "own")]) == 0
    monkeypatch.chdir(tmp_path / "own")
    return tmp_path / "own"


@pytest.mark.slow
def test_a_new_scenario_and_policy_of_each_shipped_study_pass_the_check(
    shipped: Path, capsys: pytest.CaptureFixture
) -> None:
    for study in STUDIES:
        assert main(["new", "scenario", f"{study}/fresh"]) == 0
        assert main(["new", "policy", f"{study}/fresh"]) == 0
    assert main(["new", "platform", "fresh"]) == 0
    file = shipped / "scenario/hetero/fresh.yaml"
    file.write_text(file.read_text().replace("  - _self_", "  - override /platform: fresh\n  - _self_"))
    capsys.readouterr()
    assert main(["check", "--scale", "smoke"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for study in STUDIES:
        assert [line for line in lines if line.startswith(f"ok  scenario {study}/fresh:")]
        assert [line for line in lines if line.startswith(f"ok  policy   {study}/fresh:")]


@pytest.mark.parametrize("study", STUDIES)
def test_a_new_scenario_of_a_shipped_study_has_every_required_key(shipped: Path, study: str) -> None:
    assert main(["new", "scenario", f"{study}/fresh"]) == 0
    composed = Composer(shipped, "smoke").compose(f"scenario/{study}", "fresh")
    scenario = typed(studies.load(study, shipped).scenario, composed, "fresh")
    assert scenario.name == "fresh" and scenario.rules


def test_a_new_scenario_has_the_values_of_one_that_is_there(written: Path) -> None:
    assert main(["new", "scenario", "ordering/other"]) == 0
    values = yaml.safe_load((written / "conf/scenario/ordering/other.yaml").read_text())
    there = yaml.safe_load((written / "conf/scenario/ordering/rough.yaml").read_text())
    assert values == there | {"name": "other", "scales": ["smoke", "small"]}


def test_a_new_policy_takes_the_learner_that_is_named(written: Path) -> None:
    assert main(["new", "policy", "ordering/second", "--learner", "dqn"]) == 0
    values = yaml.safe_load((written / "conf/policy/ordering/second.yaml").read_text())
    assert values["learner"] == {"name": "dqn"} and values["train_on"][0]["scenarios"] == ["rough"]


def test_a_name_that_yaml_would_read_as_another_value_stays_text(written: Path, capsys: pytest.CaptureFixture) -> None:
    (written / "conf/platform").mkdir()
    names = ("12", "1e5", "null", "on", "0x1f", "1_000", "2020-01-01", "plain")
    for name in names:
        for words in (["scenario", f"ordering/{name}"], ["policy", f"ordering/{name}"], ["platform", name]):
            assert main(["new", *words]) == 0
        for place in ("scenario/ordering", "policy/ordering", "platform"):
            assert read_yaml(written / f"conf/{place}/{name}.yaml")["name"] == name
    assert "name: plain " in (written / "conf/platform/plain.yaml").read_text()
    shutil.rmtree(written / "conf/platform")
    capsys.readouterr()
    assert main(["check", "--scale", "smoke"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(f"ok  scenario ordering/{name}:") for line in lines) for name in names)


def test_a_new_policy_learns_on_a_scenario_whose_name_looks_like_a_number(written: Path) -> None:
    for file, key in (("scenario/ordering/rough.yaml", "name: rough"), ("study/ordering.yaml", "rough")):
        path = written / "conf" / file
        path.write_text(path.read_text().replace(key, key.replace("rough", "'12'")))
    (written / "conf/scenario/ordering/rough.yaml").rename(written / "conf/scenario/ordering/12.yaml")
    assert main(["new", "policy", "ordering/second"]) == 0
    assert read_yaml(written / "conf/policy/ordering/second.yaml")["train_on"][0]["scenarios"] == ["12"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["scenario", "ordring/a"], "'ordering'"),
        (["scenario", "a"], "STUDY/a"),
        (["scenario", "ordering/"], "NAME"),
        (["scenario", "ordering/Big"], "NAME"),
        (["scenario", "ordering/policies"], "NAME"),
        (["scenario", "ordering/../a"], "NAME"),
        (["scenario", "ordering/a\n"], "NAME"),
        (["scenario", "ordering/rough"], "conf/scenario/ordering/rough.yaml"),
        (["policy", "ordering/learned_order"], "conf/policy/ordering/learned_order.yaml"),
        (["policy", "ordering/a", "--learner", "dnq"], "'dqn'"),
        (["platform", "a"], "conf"),
        (["scenario", "ordering/a", "--conf", "nowhere"], "nowhere"),
    ],
)
def test_what_is_wrong_is_refused_and_writes_nothing(
    written: Path, capsys: pytest.CaptureFixture, words: list[str], said: str
) -> None:
    before = {path: path.read_bytes() for path in written.rglob("*.yaml")}
    capsys.readouterr()
    assert main(["new", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and said in error
    assert {path: path.read_bytes() for path in written.rglob("*.yaml")} == before
