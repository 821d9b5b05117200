"""Families in files and overrides of a run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from schedlab.config import experiment
from schedlab.config.composition import Composer, Compositions
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.runtime.freeze import summarise_part
from schedlab.config.variations import assignments, members_of, overlay, parsed, swept
from schedlab.stages.studies import find_study

CONF = Path(__file__).resolve().parents[2] / "conf"


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Compositions:
    """A folder with the study ramp alone: two scenarios and two policies as shipped, and a family of each; tests that
    change no file share what is composed.
    """
    folder = tmp_path_factory.mktemp("unchanged") / "conf"
    bases = ("scenario/ramp/_base.yaml", "scenario/ramp/_load.yaml", "graph/shipped.yaml", "learner/ramp/*")
    for pattern in ("config.yaml", "study/ramp.yaml", "figure/theme.yaml", *bases):
        for file in CONF.glob(pattern):
            (folder / file.relative_to(CONF)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / file.relative_to(CONF))
    study = yaml.safe_load((CONF / "study/ramp.yaml").read_text())
    study["headline"] = []  # which names scenarios that are not here
    (folder / "study/ramp.yaml").write_text(yaml.safe_dump(study))
    scale = yaml.safe_load((CONF / "scale/small.yaml").read_text())
    scale["resources"] = {}
    compared = [f"{learner}-uniform" for learner in ("table", "afterstate")]
    scenarios = {
        "uniform": {"defaults": ["_base", "_self_"], "name": "uniform", "policies": compared},
        "rate": {
            "defaults": ["_load", "_self_"],
            "scales": ["small"],
            "policies": ["quick-${..name}"],
            "sweep": {"jobs.interarrival.value": [50.0, 1500.0]},
        },
    }
    steps = "${scale.studies.ramp.training_episodes}"
    policies = {
        name: {
            "defaults": [{"/learner/ramp@learner": name.partition("-")[0]}, "_self_"],
            "name": name,
            "train_on": [{"scenarios": ["uniform"], "steps": steps}],
            "seeds": [0],
        }
        for name in compared
    }
    policies["quick"] = {
        "defaults": [{"/learner/ramp@learner": "table"}, "_self_"],
        "scales": ["small"],
        "train_on": [{"scenarios": ["${each}"], "steps": 1}],
        "seeds": [0],
        "for_each": {"rate-50": {}, "rate-1500": {"seeds": [1, 2]}},
    }
    written = {"scale/small": scale}
    written |= {f"scenario/ramp/{name}": values for name, values in scenarios.items()}
    written |= {f"policy/ramp/{name}": values for name, values in policies.items()}
    for name, values in written.items():
        file = folder / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(values, sort_keys=False))
    return Compositions(folder)


@pytest.fixture
def conf(unchanged: Compositions, tmp_path: Path) -> Path:
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(unchanged.folder, tmp_path / "conf"))


def change(conf: Path, option: str, **values: object) -> None:
    """Set keys of a file; None takes one out."""
    file = conf / f"{option}.yaml"
    changed = {**yaml.safe_load(file.read_text()), **values}
    file.write_text(
        yaml.safe_dump({key: value for key, value in changed.items() if value is not None}, sort_keys=False)
    )


def load(conf: Path, *overrides: str, variant: str = "") -> experiment.Experiment:
    return experiment.load(conf, "small", find_study, overrides=parsed(overrides), variant=variant)


def test_a_family_is_its_members(conf: Path) -> None:
    ramp = load(conf).studies["ramp"]
    assert {"rate-50", "rate-1500"} <= ramp.scenarios.keys() and "rate" not in ramp.scenarios
    assert ramp.scenarios["rate-1500"]["problem"]["jobs"]["interarrival"]["value"] == 1500.0
    assert ramp.scenarios["rate-50"]["varied"] == {"jobs.interarrival.value": 50.0}
    assert ramp.scenarios["rate-50"]["file"] == "rate" and ramp.scenarios["uniform"]["file"] == "uniform"
    assert ramp.scenarios["rate-50"]["policies"] == ["quick-rate-50"]
    assert ramp.policies["quick-rate-50"]["seeds"] == [0]
    assert ramp.policies["quick-rate-1500"]["seeds"] == [1, 2]
    assert ramp.policies["quick-rate-50"]["train_on"][0]["scenarios"] == ["rate-50"]


def test_a_member_is_what_a_file_of_its_own_would_be(conf: Path) -> None:
    shutil.copy(conf / "scenario/ramp/rate.yaml", conf / "scenario/ramp/alone.yaml")
    own = {"policies": ["quick-rate-50"], "jobs": {"interarrival": {"value": 50.0}}}
    change(conf, "scenario/ramp/alone", name="alone", sweep=None, **own)
    composer = Composer(conf, "small")
    alone, member = (composer.compose("scenario/ramp", name).values for name in ("alone", "rate-50"))
    assert {**alone, "name": "rate-50"} == member


def test_names_by_a_template_and_by_several_keys(conf: Path) -> None:
    both = {"jobs.interarrival.value": [50.0, 60.0], "episodes.test": [2, 3]}
    change(conf, "scenario/ramp/rate", name="at_${each}", sweep=both)
    names = [name for name, _ in Composer(conf, "small").members("scenario/ramp", "rate")]
    assert names == ["at_50-2", "at_50-3", "at_60-2", "at_60-3"]
    change(conf, "scenario/ramp/rate", name=None, for_each=["low_load", "high"], sweep={"episodes.test": [2]})
    names = [name for name, _ in Composer(conf, "small").members("scenario/ramp", "rate")]
    assert names == ["rate-low-load-2", "rate-high-2"]


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"sweep": 3}, "x.yaml: sweep"),
        ({"sweep": {}}, "x.yaml: sweep"),
        ({"sweep": {"a.b": 3}}, "x.yaml: sweep.a.b"),
        ({"sweep": {"a.b": []}}, "x.yaml: sweep.a.b"),
        ({"sweep": {"a.b": [{"c": 1}]}}, "x.yaml: sweep.a.b"),
        ({"sweep": {"a.b": [1, 1.0]}}, "x.yaml"),
        ({"for_each": "uniform"}, "x.yaml: for_each"),
        ({"for_each": []}, "x.yaml: for_each"),
        ({"for_each": {"uniform": 3}}, "x.yaml: for_each.uniform"),
    ],
)
def test_a_list_that_makes_no_members_is_refused(values: dict, where: str) -> None:
    with pytest.raises(UserError) as raised:
        members_of(values, "x.yaml")
    assert raised.value.where == where


@pytest.mark.parametrize(
    ("name", "values", "where"),
    [
        ("scenario/ramp/rate", {"sweep": {"jobs.interarrival.valeu": [50.0]}}, ": sweep.jobs.interarrival.valeu"),
        ("scenario/ramp/rate", {"for_each": {"low": {"scales": ["tiny"]}}}, ": for_each.low.scales.0"),
        ("scenario/ramp/rate", {"name": "${each}", "sweep": None, "for_each": ["uniform"]}, ""),
        ("scenario/ramp/rate", {"sweep": None, "for_each": ["Low"]}, ": name"),
        ("policy/ramp/quick", {"train_on": [{"scenarios": ["${aech}"], "steps": 1}]}, ": train_on.0.scenarios.0"),
    ],
)
def test_a_mistake_in_a_member_names_the_file_and_the_list(conf: Path, name: str, values: dict, where: str) -> None:
    change(conf, name, **values)
    with pytest.raises(UserErrors) as raised:
        load(conf)
    assert f"conf/{name}.yaml{where}" in [error.where for error in raised.value.errors], str(raised.value)


def test_a_broken_family_makes_no_other_mistake(conf: Path) -> None:
    change(conf, "scenario/ramp/rate", seed="none")
    with pytest.raises(UserErrors) as raised:
        load(conf)
    assert [error.where for error in raised.value.errors] == ["conf/scenario/ramp/rate.yaml: seed"]


def test_overrides_set_keys_of_every_kind(conf: Path) -> None:
    loaded = load(
        conf,
        "scenario.ramp.uniform.jobs.interarrival.value=500",
        "scenario.ramp.rate.episodes.test=2",
        "scenario.ramp.rate-1500.episodes.end=9000.0",
        "policy.ramp.table-uniform.seeds=[3]",
        "scale.studies.ramp.training_episodes=7",
        "study.ramp.statistics.resamples=500",
        "learner.ramp.afterstate.samples=9",
        "seed=7",
        variant="dense",
    )
    ramp = loaded.studies["ramp"]
    assert (loaded.results, loaded.plots, loaded.seed) == ("results/small-dense", "plots/small-dense", 7)
    assert ramp.scenarios["uniform"]["problem"]["jobs"]["interarrival"]["value"] == 500.0
    assert ramp.scenarios["uniform"]["seed"] == 7
    assert [ramp.scenarios[f"rate-{rate}"]["problem"]["episodes"]["test"] for rate in (50, 1500)] == [2, 2]
    ends = [ramp.scenarios[f"rate-{rate}"]["problem"]["episodes"]["end"] for rate in (50, 1500)]
    assert ends[1] == 9000.0 != ends[0]
    assert ramp.policies["table-uniform"]["seeds"] == [3]
    assert ramp.policies["afterstate-uniform"]["train_on"][0]["steps"] == 7
    assert ramp.policies["afterstate-uniform"]["params"]["samples"] == 9
    assert ramp.settings["statistics"]["resamples"] == 500


def test_a_variant_composes_what_its_values_touch(conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment.load(conf, "small", find_study, tmp_path / "records-small.json")
    composed = []
    members = Composer.members
    monkeypatch.setattr(
        Composer, "members", lambda self, group, name, *rest: composed.append(name) or members(self, group, name, *rest)
    )
    for override, touched in (
        ("scenario.ramp.uniform.episodes.test=2", {"uniform"}),
        ("learner.ramp.afterstate.samples=9", {"afterstate-uniform"}),
        ("scale.studies.ramp.training_episodes=7", {"uniform", "rate", "quick", "table-uniform", "afterstate-uniform"}),
    ):
        composed.clear()
        cache = tmp_path / "records-small-other.json"
        loaded = experiment.load(conf, "small", find_study, cache, overrides=parsed([override]), variant="other")
        assert set(composed) - {"ramp", "theme"} == touched and loaded.run == "small-other"


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        ("scenario.ramp.unifrom.seed=7", "uniform"),
        ("scenario.rampp.uniform.seed=7", "ramp"),
        ("scenario.ramp.uniform.job.interarrival.value=5", "jobs"),
        ("scenario.ramp.uniform.jobs.interarrival.valu=5", "value"),
        ("scenario.ramp.uniform.jobs.interarival.value=5", "interarrival"),
        ("policy.ramp.table-uniform.seds=[1]", "seeds"),
        ("scale.studies.ramp.training_episode=7", "training_episodes"),
        ("study.ramp.statistics.resample=500", "resamples"),
        ("sed=7", "seed"),
        ("learner.ramp.aftersate.device=cpu", "afterstate"),
        ("learner.ramp.afterstate.sampels=2", "samples"),
        ("graph.shiped.folder=x", "shipped"),
    ],
)
def test_a_key_that_is_none_gets_the_nearest_one(unchanged: Compositions, override: str, meant: str) -> None:
    with pytest.raises(UserError) as raised:
        experiment.load(unchanged.folder, "small", find_study, made=unchanged, overrides=parsed([override]))
    errors = getattr(raised.value, "errors", [raised.value])
    assert len(errors) == 1 and errors[0].where.startswith("set: "), str(raised.value)
    assert meant in errors[0].remedy


def test_several_assignments_in_one_text() -> None:
    assert assignments("a.b=1 c=[2, 3], d={e: 4}\nf='x, y'") == ["a.b=1", "c=[2, 3]", "d={e: 4}", "f='x, y'"]
    assert assignments(["a=1, 2"]) == ["a=1, 2"] and assignments("") == []


def test_an_overlay_is_the_overrides_of_its_leaves() -> None:
    found = overlay({"scenario": {"ramp": {"uniform": {"seed": 7, "rules": ["random"]}}}, "seed": 3})
    assert [(override.keys, override.value) for override in found] == [
        (("scenario", "ramp", "uniform", "seed"), 7),
        (("scenario", "ramp", "uniform", "rules"), ["random"]),
        (("seed",), 3),
    ]


@pytest.mark.parametrize("given", [{"a.b=1 c='x": "y'"}, 5, [{"a=1": None}]])
def test_settings_that_snakemake_read_as_yaml_are_refused(given: object) -> None:
    with pytest.raises(UserError) as raised:
        assignments(given)
    assert raised.value.where == "--config: set"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        1e-07,
        50.0,
        "uniform",
        "true",
        "1e3",
        "",
        "x: y",
        "it's",
        "a\\",
        "\\'",
        "x, y",
        ["a b", None, [1]],
    ],
)
def test_the_text_of_an_overlay_is_read_as_its_value(value: object) -> None:
    (override,) = overlay({"seed": value})
    assert [(again.keys, again.value) for again in parsed([override.text])] == [(("seed",), value)]


def test_the_text_of_a_mapping_in_a_list_is_read_as_its_value() -> None:
    value = [{"name": "always-1", "params": {"action": 1}, "seeds": [0]}]
    (override,) = overlay({"scenario": {"s": {"a": {"rules": value}}}})
    assert parsed([override.text])[0].value == value


def test_an_override_of_a_base_acts_on_its_heirs_but_for_their_own_values(conf: Path) -> None:
    change(conf, "scenario/ramp/uniform", seed=3)
    scenarios = load(conf, "scenario.ramp._base.seed=99").studies["ramp"].scenarios
    assert {name: record["seed"] for name, record in scenarios.items()} == {
        "uniform": 3,
        "rate-50": 99,
        "rate-1500": 99,
    }


@pytest.mark.parametrize("text", ["seed", "=7", "seed=1,2", "~seed", "seed=[1"])
def test_a_text_that_sets_nothing_is_refused(text: str) -> None:
    with pytest.raises(UserError) as raised:
        parsed([text])
    assert raised.value.where == f"set: {text}"


def test_a_sweep_has_an_override_for_each_value() -> None:
    found = swept("scenario.ramp.uniform.jobs.interarrival.value=50,1e3")
    assert [override.value for override in found] == [50, 1000.0]
    assert {override.keys for override in found} == {("scenario", "ramp", "uniform", "jobs", "interarrival", "value")}


def test_the_tables_know_in_what_members_differ_and_what_made_a_policy(conf: Path) -> None:
    facts = summarise_part(load(conf), "ramp")["facts"]
    assert facts["policies"]["quick-rate-50"] == {"recipe": "quick", "trained_on": "rate-50"}
    found = facts["scenarios"]["rate-50"]
    assert (found["jobs.interarrival.value"], found["interarrival"], found["workers"]) == (50.0, 50.0, 32)
    change(conf, "policy/ramp/quick", recipe="linear")
    assert summarise_part(load(conf), "ramp")["facts"]["policies"]["quick-rate-50"]["recipe"] == "linear"
