"""Files are composed as `hydra.compose` composes them, at a part of its cost and without its global state."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import OmegaConf

from schedlab.config.composition import Composed, Composer, Compositions
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.layout import laid_over
from schedlab.config.readers import option_names, read_yaml
from schedlab.config.records import checked_scenario
from schedlab.config.variations import is_family
from schedlab.stages.studies import find_study

CONF = Path(__file__).resolve().parents[2] / "conf"
GROUPS = ("study", "scenario/adaptation", "policy/adaptation", "figure/adaptation")
SOME = [
    (group, name)
    for group in GROUPS
    for name in option_names(CONF / group)[::4]
    if not is_family(read_yaml(CONF / group / f"{name}.yaml")) and not name.endswith("_cifar10")
]


@pytest.fixture(scope="module")
def made() -> Compositions:
    """Compositions that all scales share."""
    return Compositions(CONF)


@pytest.mark.parametrize("scale", ["full", "small"])
@pytest.mark.parametrize(("group", "name"), SOME, ids="/".join)
def test_the_values_are_those_of_hydra_at_every_scale(group: str, name: str, scale: str, made: Compositions) -> None:
    place = group.split("/")[0]
    sizes = read_yaml(CONF / "study/adaptation.yaml")["sizes"][scale]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        whole = compose("config", overrides=[f"scale={scale}", f"+{group}@{place}={name}"])
    OmegaConf.update(whole, "scale.studies.adaptation", sizes, force_add=True)
    expected = OmegaConf.to_container(whole[place], resolve=True)
    composed = Composer(CONF, scale, made).compose(group, name)
    assert composed.values == expected
    assert composed.sources[0] == (CONF / group / f"{name}.yaml", ())
    assert not GlobalHydra.instance().is_initialized()


def of_hydra(conf: Path, group: str, name: str) -> Any:
    """What Hydra composes of a file, its values not resolved; None where it refuses to."""
    try:
        with initialize_config_dir(str(conf), version_base="1.3"):
            return OmegaConf.to_container(compose(overrides=[f"+{group}@file='{name}'"]).file)
    except (HydraException, ValueError):
        return None


OTHERS = [
    (f"{group}/{study}", name)
    for group in ("scenario", "policy", "learner")
    for study in ("batch", "cloud", "hetero", "ramp")
    for name in option_names(CONF / group / study)[::6]
]


@pytest.mark.parametrize(("group", "name"), [*OTHERS, ("scenario/ramp", "network")], ids="/".join)
def test_files_are_laid_over_each_other_as_hydra_does(group: str, name: str, made: Compositions) -> None:
    found = laid_over(CONF, group, name)
    assert found is not None, "Hydra takes a fiftieth of a second for each file that is not read here"
    assert found[0] == made.get(group, name)[0] == of_hydra(CONF, group, name)
    assert json.dumps(found[0]) == json.dumps(of_hydra(CONF, group, name)), "the order of the keys, too"


def test_options_that_decide_come_first(made: Compositions) -> None:
    sources = made.get("scenario/ramp", "network")[1]
    places = [(file.stem, prefix) for file, prefix in sources if prefix]
    assert places == [("traced_seven", ("graphs",)), ("a100", ("graphs", "device"))]
    places = [(file.stem, prefix) for file, prefix in made.get("policy/hetero", "reinforce-published")[1] if prefix]
    assert places == [("reinforce_published", ("reference", "learner")), ("reinforce", ("learner",))]


VALUES = ("1", "null", "text", "[1, 2]", "{x: 1}", "'${seed}'", "'???'", "{}")


@pytest.mark.parametrize(("base", "own"), [*itertools.product(VALUES, VALUES)][::3])
def test_values_of_any_kind_take_the_place_of_others_as_in_hydra(tmp_path: Path, base: str, own: str) -> None:
    files = {"_base": f"k: {base}\nbelow: {{k: {base}, a: 1}}\n", "own": f"k: {own}\nbelow: {{b: 1, k: {own}}}\n"}
    assert_as_hydra(tmp_path, files | {"own": f"defaults: [_base, _self_]\n{files['own']}"})


@pytest.mark.parametrize(
    "defaults",
    [
        "[_self_, _base]",
        "[_base]",
        "[_base, other, _self_]",
        "[_base, _base]",
        "[_base, middle]",
        "[missing]",
        "[{/h: one}]",
        "[{/h@h: one}, {/h@i.j: two}, _self_]",
        "[{/h@h: one}, {/h@h: two}]",
        "[{/h@_here_: one}]",
        "[{/h@_global_: one}]",
        "[{h: one}]",
        "[{/h: [one, two]}]",
        "[{/h: null}]",
        "[{optional /h: missing}]",
        "[{'/h/one@k': two}]",
        "[middle, {override /h: two}, _self_]",
        "[{override /h: two}, middle]",
        "[{/h: one}, {override /h: two}]",
        "[outer, {override /h: three}]",
        "[outer]",
        "[middle, {override /h@other: two}]",
        "[{/h: one, /h@i: two}]",
        "[base@place]",
        "[other, {/h@other: one}]",
        "['${k}']",
        "[packaged]",
        "[1]",
        "[[other]]",
    ],
)
def test_a_defaults_list_of_any_kind_is_read_as_by_hydra(tmp_path: Path, defaults: str) -> None:
    files = {
        "_base": "k: 1\nbelow: {a: 1}\n",
        "other": "k: 2\nbelow: {b: 1}\n",
        "middle": "defaults: [{/h: one}, _self_]\nk: 3\nh: {own: 3}\n",
        "outer": "defaults: [middle, {override /h: two}, _self_]\nk: 4\n",
        "packaged": "# @package else\nk: 5\n",
        "../h/one": "value: 1\nown: 1\n",
        "../h/two": "defaults: [one, _self_]\nvalue: 2\n",
        "../h/three": "defaults: [{/h@inner: one}, _self_]\nvalue: 3\n",
    }
    assert_as_hydra(tmp_path, files | {"own": f"defaults: {defaults}\nk: 9\nbelow: {{z: 9}}\n"})


def assert_as_hydra(conf: Path, files: dict[str, str]) -> None:
    """The file g/own of a folder of files is composed as by Hydra, or refused where Hydra refuses it."""
    for name, text in files.items():
        (conf / "g" / f"{name}.yaml").parent.mkdir(parents=True, exist_ok=True)
        (conf / "g" / f"{name}.yaml").write_text(text)
    expected = of_hydra(conf, "g", "own")
    found = laid_over(conf, "g", "own")
    assert found is None or json.dumps(found[0]) == json.dumps(expected)
    if expected is None:
        with pytest.raises(UserError):
            Compositions(conf).get("g", "own")
    else:
        assert json.dumps(Compositions(conf).get("g", "own")[0]) == json.dumps(expected)


def test_numbers_are_those_of_hydra(tmp_path: Path) -> None:
    file = tmp_path / "numbers.yaml"
    texts = (
        "1e-3",
        "1E5",
        "1.5e3",
        "-2e+4",
        "1.e5",
        "1.0e-4",
        "1_000",
        "1e5_0",
        ".5e3",
        "1e",
        "e3",
        "1e3x",
        "'1e5'",
        "0o17",
        "2024-01-01",
        "on",
    )
    file.write_text("".join(f"key{number}: {text}\n" for number, text in enumerate(texts)))
    assert read_yaml(file) == OmegaConf.to_container(OmegaConf.load(file))
    assert read_yaml(file)["key0"] == 0.001


def test_a_key_is_traced_to_the_file_that_sets_it(made: Compositions) -> None:
    composed = Composer(CONF, "small", made).compose("scenario/adaptation", "middle")
    for path, where in (
        (("adapt_at",), "conf/scenario/adaptation/middle.yaml: adapt_at"),
        (("rules", 1, "params"), "conf/scenario/adaptation/_base.yaml: rules.1.params"),
        (("model", "blocks"), "conf/model/tiny8.yaml: model.blocks"),
        (("nowhere",), "conf/scenario/adaptation/middle.yaml: nowhere"),
    ):
        assert composed.locate(path) == where


def of_rules(folder: Path, rules: str) -> Composed:
    """The scenario `middle` of a copy of conf/ with a list of rules of its own."""
    conf = shutil.copytree(CONF, folder / "conf")
    with (conf / "scenario/adaptation/middle.yaml").open("a") as file:
        file.write(f"\nrules: {rules}\n")
    return Composer(conf, "small", Compositions(conf)).compose("scenario/adaptation", "middle")


def test_a_key_within_a_list_is_traced_to_the_file_that_sets_the_list(tmp_path: Path) -> None:
    composed = of_rules(tmp_path, "[never, always]")
    for path in (("rules", 1, "params", "action"), ("rules", 3)):  # the base's own list has both
        assert Path(composed.locate(path).split(":")[0]).name == "middle.yaml"


def test_the_hint_at_a_rule_that_takes_values_shows_how_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(
        UserErrors, match=r"did you mean 'always'\? .*\{name: always-1, target: always, params: \{action: \.\.\.\}\}"
    ):
        checked_scenario(of_rules(tmp_path / "long", "[never, allways]"), "middle", find_study({"name": "adaptation"}))
    with pytest.raises(UserErrors, match=r"did you mean 'never'\?$"):
        checked_scenario(of_rules(tmp_path / "short", "[nevr]"), "middle", find_study({"name": "adaptation"}))
    with pytest.raises(UserErrors, match=r"middle\.yaml: rules\.1\.params\.action: key 'action' is missing"):
        checked_scenario(of_rules(tmp_path / "bare", "[never, always]"), "middle", find_study({"name": "adaptation"}))
