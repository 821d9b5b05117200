"""`schedlab export`: what is printed reads back equal."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import toml
import yaml

import shipped_conf
from schedlab.cli.configuration import document, without_null
from schedlab.cli.main import main
from schedlab.config import experiment
from schedlab.stages.studies import find_study
from small_conf import write_conf


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A small configuration folder."""
    return write_conf(tmp_path)


@pytest.fixture(scope="module")
def shipped() -> experiment.Experiment:
    """The shipped configuration at the scale that has every scenario."""
    return experiment.load(shipped_conf.CONF, "paper", find_study, made=shipped_conf.COMPOSED)


def test_both_forms_hold_the_same(conf: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["export", "adaptation/tiny", "--conf", str(conf)]) == 0
    as_toml = toml.loads(capsys.readouterr().out)
    assert main(["export", "adaptation/tiny", "--conf", str(conf), "--format", "yaml"]) == 0
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    assert as_toml == without_null(as_yaml)
    assert as_toml["scenario"]["budget"] == 70.0
    assert as_toml["parts"]["train_trunk"]["data"]["train_size"] == 96
    assert as_toml["policies"].keys() == {"exact-tiny", "constant-tiny"}
    assert as_toml["rules"][1] == {
        "name": "always-1",
        "target": "always",
        "kind": "rule",
        "params": {"action": 1},
        "seeds": [0],
    }


def test_a_policy_with_other_values(conf: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["export", "adaptation/exact-tiny", "seeds=[3]", "--conf", str(conf), "--format", "yaml"]) == 0
    learned = yaml.safe_load(capsys.readouterr().out)
    assert learned["policy"]["name"] == "exact-tiny" and learned["policy"]["seeds"] == [3]
    assert learned["problems"].keys() == {"tiny"}
    assert main(["export", "adaptation/exact-tiny", "seds=[3]", "--conf", str(conf)]) == 2
    captured = capsys.readouterr()
    assert (
        not captured.out and "set: policy.adaptation.exact-tiny.seds=[3]" in captured.err and "'seeds'" in captured.err
    )


@pytest.mark.slow
def test_every_shipped_scenario_reads_back_equal(shipped: experiment.Experiment) -> None:
    count = 0
    for study, records in shipped.studies.items():
        for name in records.scenarios:
            values = without_null(document(shipped, study, name))
            text = toml.dumps(values)
            assert toml.loads(text) == values
            assert tomllib.loads(text) == values
            count += 1
    assert count >= 7


@pytest.mark.parametrize(
    ("scenario", "told"),
    [
        ("tiny", "names no scenario"),
        ("adaptation/tyny", "did you mean 'tiny'"),
        ("adoption/tiny", "'adoption'"),
        ("adaptation/", "names no"),
    ],
)
def test_a_scenario_that_is_not_there(conf: Path, capsys: pytest.CaptureFixture, scenario: str, told: str) -> None:
    assert main(["export", scenario, "--conf", str(conf)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
