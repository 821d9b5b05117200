"""Files are composed as `hydra.compose` composes them, at a part of its cost and without its global state."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from schedlab.config.composition import Composed, Composer, Compositions
from schedlab.config.errors import UserErrors
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
