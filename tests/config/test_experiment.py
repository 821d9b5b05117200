"""Composition, typing, cross checks and freezing of a configuration folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from schedlab.config.composition import Composer
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.runtime import code, freeze
from schedlab.config.runtime.parts import dump, read_part
from schedlab.config.runtime.record_cache import RecordCache


def edit(conf: Path, name: str, old: str, new: str) -> None:
    text = (conf / name).read_text()
    assert old in text
    (conf / name).write_text(text.replace(old, new))


def test_a_scenario_takes_what_its_groups_and_its_scale_say(load):
    experiment = load()
    assert experiment.scenario("line", "early")["parts"]["make_ground"]["values"] == {"rate": 0.5}
    assert experiment.scenario("line", "late")["parts"]["make_ground"]["values"] == {"rate": 2.5}
    assert experiment.scenario("line", "late")["problem"] == {"size": 5}
    assert experiment.policy("line", "guesser")["params"] == {"rate": 0.25}


@pytest.mark.parametrize("name", ["null", "1e5", "007", "on"])
def test_a_name_may_look_like_a_value(name, conf, load):
    (conf / f"scenario/line/{name}.yaml").write_text(f'defaults:\n  - _base\n  - _self_\nname: "{name}"\n')
    assert load().scenario("line", name)["name"] == name


def test_mode_reference_lays_its_values_over_the_others(conf, load):
    edit(conf, "scenario/line/late.yaml", "name: late", "name: late\nmode: reference")
    assert load().scenario("line", "late")["parts"]["make_ground"]["values"] == {"rate": 9.0}


QUESTION = {"question": "how wrong?", "metric": "error", "scenarios": ["early"], "recipe": "guesser"}
MISTAKES = {
    "unknown key of a scenario": (
        "scenario/line/early.yaml",
        "name: early",
        "name: early\nslope: {rte: 2.0}",
        ["early.yaml", "'rte'", "'rate'"],
    ),
    "wrong type": (
        "scenario/line/early.yaml",
        "name: early",
        "name: early\nsize: many",
        ["early.yaml: size", '"many"', "integer"],
    ),
    "truth value for a number": (
        "scenario/line/early.yaml",
        "name: early",
        "name: early\nsize: true",
        ["early.yaml: size", "integer"],
    ),
    "impossible value": ("slope/steep.yaml", "2.5", "-1.0", ["slope/steep.yaml", "rate", "greater than 0"]),
    "name and file differ": (
        "scenario/line/early.yaml",
        "name: early",
        "name: erly",
        ["early.yaml: name", "'erly'", "'early'"],
    ),
    "unknown group option": (
        "scenario/line/late.yaml",
        "/slope: steep",
        "/slope: step",
        ["late.yaml", "conf/slope/step.yaml", "'steep'"],
    ),
    "unknown rule": (
        "scenario/line/_base.yaml",
        "[zero, one]",
        "[zero, oen]",
        ["line/_base.yaml: rules", "'oen'", "'one'"],
    ),
    "unknown policy": (
        "scenario/line/_base.yaml",
        "[guesser]",
        "[gueser]",
        ["line/_base.yaml: policies", "'gueser'", "'guesser'"],
    ),
    "rule named twice": (
        "scenario/line/_base.yaml",
        "[zero, one]",
        "[zero, zero]",
        ["line/_base.yaml: rules", "'zero'", "twice"],
    ),
    "unknown learner": ("learner/line/guess.yaml", "name: guess", "name: gess", ["guess", "'gess'"]),
    "unknown key of a learner": ("learner/line/guess.yaml", "rate", "rte", ["guess.yaml", "'rte'", "'rate'"]),
    "unknown training scenario": (
        "policy/line/guesser.yaml",
        "[early]",
        "[eraly]",
        ["guesser.yaml: train_on", "'eraly'", "'early'"],
    ),
    "own parent": (
        "policy/line/guesser.yaml",
        "name: guesser",
        "name: guesser\nparent: guesser",
        ["guesser.yaml: parent", "cycle"],
    ),
    "unknown drawing": (
        "figure/line/line.yaml",
        "kind: line",
        "kind: lien",
        ["figure/line/line.yaml", "'lien'", "'line'"],
    ),
    "unknown scenario of a figure": (
        "figure/line/line.yaml",
        "kind: line",
        "kind: line\nscenarios: [erly]",
        ["line.yaml: scenarios", "'early'"],
    ),
    **{
        f"unknown {key} of a question": (
            "study/line.yaml",
            "name: line",
            yaml.safe_dump({"name": "line", "headline": [QUESTION | {key: value}]}),
            [f"line.yaml: headline.0.{key}{place}", *named],
        )
        for key, value, place, named in [
            ("metric", "eror", "", ["'eror'", "'error'"]),
            ("scenarios", ["early", "lat"], ".1", ["'lat'", "'late'"]),
            ("recipe", "guessr", "", ["'guessr'", "'guesser'"]),
            ("groups", ["rule"], ".0", ["rules"]),
            ("budget", "decision", "", ["decisions"]),
        ]
    },
    "unknown size": (
        "study/line.yaml",
        "size: 5",
        "size: 5, sice: 1",
        ["study/line.yaml: sizes.small.sice", "'size'"],
    ),
    "unknown scale": (
        "study/line.yaml",
        "  full:",
        "  ful:",
        ["study/line.yaml: sizes", "ful"],
    ),
    "sizes in a scale": (
        "scale/small.yaml",
        "name: small",
        "name: small\nstudies: {line: {size: 5}}",
        ["scale/small.yaml: studies", "conf/study/<study>.yaml", "sizes.small"],
    ),
    "resources of a study in a scale": (
        "scale/small.yaml",
        "name: small",
        "name: small\nresources: {make_points: {runtime: 5}}",
        ["scale/small.yaml: resources.make_points", "conf/study/<study>.yaml", "resources.small"],
    ),
    "resources of no rule": (
        "study/line.yaml",
        "name: line",
        "name: line\nresources: {small: {make_point: {runtime: 5}}}",
        ["study/line.yaml: resources.small.make_point", "'make_points'"],
    ),
    "clock in a value": (
        "scenario/line/early.yaml",
        "name: early",
        "name: early\ndata: ${now:%H}",
        ["early.yaml", "depends on the machine"],
    ),
    "environment in a value": (
        "scenario/line/early.yaml",
        "name: early",
        "name: early\ndata: ${oc.env:HOME}",
        ["early.yaml", "machine"],
    ),
    "broken YAML": (
        "scenario/line/early.yaml",
        "name: early",
        "name: [early",
        ["early.yaml", "line", "not valid YAML"],
    ),
    "unresolved value": (
        "scenario/line/early.yaml",
        "name: early",
        "name: early\nsize: ${scale.nothing}",
        ["early.yaml", "nothing"],
    ),
    "wrong mode": (
        "scenario/line/early.yaml",
        "name: early",
        "name: early\nmode: refrence",
        ["early.yaml: mode", "refrence"],
    ),
    "mode without values": (
        "scenario/line/_base.yaml",
        "reference: {slope: {rate: 9.0}}",
        "mode: reference",
        ["_base.yaml: mode", "reference"],
    ),
    "unknown key under reference": (
        "scenario/line/early.yaml",
        "name: early",
        "name: early\nreference: {slope: {rte: 1.0}}",
        ["early.yaml", "'rte'", "'rate'"],
    ),
    "no seed": ("config.yaml", "seed: 7", "sed: 7", ["config.yaml", "seed"]),
    "theme": ("figure/theme.yaml", "dpi: 100", "dip: 100", ["theme.yaml", "'dip'", "'dpi'"]),
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda name: name.replace(" ", "-"))
def test_a_mistake_is_named_with_file_key_and_nearest_name(mistake, conf, load):
    name, old, new, words = MISTAKES[mistake]
    edit(conf, name, old, new)
    with pytest.raises(UserErrors) as caught:
        load()
    paragraphs = [text for text in str(caught.value).splitlines() if all(word in text for word in words)]
    assert paragraphs, str(caught.value)


def test_every_mistake_is_reported_in_one_pass(conf, load):
    edit(conf, "scenario/line/early.yaml", "name: early", "name: early\nsice: 1")
    edit(conf, "scenario/line/late.yaml", "name: late", "name: late\nsize: 0")
    with pytest.raises(UserErrors) as caught:
        load()
    assert len(caught.value.errors) == 2


@pytest.mark.parametrize(
    ("more", "told"),
    [("", ["'oen'", "nowhere.py", "elsewhere.py"]), ("sice: 1\n", ["'sice'", "'oen'", "nowhere.py", "elsewhere.py"])],
    ids=["rules", "another-key"],
)
def test_all_wrong_rules_of_a_scenario_are_told_in_one_pass(conf, load, more, told):
    rules = "rules: [zero, oen, {name: mine, target: nowhere.py:Mine}, {name: yours, target: elsewhere.py:Yours}]"
    edit(conf, "scenario/line/early.yaml", "name: early", f"name: early\n{more}{rules}")
    with pytest.raises(UserErrors) as caught:
        load()
    assert len(caught.value.errors) == len(told)
    for error, words in zip(caught.value.errors, told, strict=True):
        assert "conf/scenario/line/early.yaml: " in str(error) and words in str(error)


def test_a_rule_with_a_wrong_key_hides_no_other(conf, load):
    edit(
        conf,
        "scenario/line/early.yaml",
        "name: early",
        "name: early\nrules: [oen, {nam: one}, {name: twoo, seed: [1]}, 3]",
    )
    with pytest.raises(UserErrors) as caught:
        load()
    text = str(caught.value)
    assert all(word in text for word in ("'oen'", "'nam'", "'twoo'", "'seed'", "rules.3")), text


def test_a_figure_shows_what_it_names_or_all_that_want_to_be_shown(conf, load):
    (conf / "scenario/line/apart.yaml").write_text("defaults:\n  - early\n  - _self_\nname: apart\nin_figures: named\n")
    (conf / "figure/line/two.yaml").write_text(
        "name: two\nkind: line\ntitle: Two\ncaption: They cross.\nscenarios: [late, apart]\n"
    )
    (figure, two) = freeze.draw_part(load(), "line")["figures"]
    assert (figure["name"], figure["scenarios"]) == ("line", ["early", "late"])
    assert (two["name"], two["scenarios"]) == ("two", ["late", "apart"])


def test_a_figure_without_a_scenario_to_show_is_not_drawn(conf, load):
    edit(conf, "scenario/line/_base.yaml", "rules:", "in_figures: named\nrules:")
    assert load().studies["line"].figures == {}


def test_a_scenario_that_leaves_the_figures_is_only_drawn_again(conf, load):
    before = dict(freeze.frozen_parts(load()))
    edit(conf, "scenario/line/late.yaml", "name: late", "name: late\nin_figures: named")
    after = dict(freeze.frozen_parts(load()))
    assert [path for path in before if before[path] != after[path]] == ["results/small/line/config/draw.yaml"]


def test_a_cycle_of_policies_is_refused(conf, load):
    text = (conf / "policy/line/guesser.yaml").read_text()
    (conf / "policy/line/guesser.yaml").write_text(text + "parent: second\n")
    (conf / "policy/line/second.yaml").write_text(text.replace("guesser", "second") + "parent: guesser\n")
    with pytest.raises(UserErrors, match="guesser -> second -> guesser"):
        load()


def test_duplicates_and_foreign_endings_are_refused(conf, load):
    (conf / "scenario/line/EARLY.yaml").write_text((conf / "scenario/line/early.yaml").read_text())
    (conf / "scenario/line/more.yml").write_text("name: more\n")
    with pytest.raises(UserErrors) as caught:
        load()
    assert "duplicate of" in str(caught.value) and "rename it to .yaml" in str(caught.value)


def test_a_scenario_without_its_data_is_set_aside_with_the_reason(conf, load, tmp_path):
    edit(conf, "scenario/line/late.yaml", "name: late", f"name: late\ndata: {tmp_path}/moon.csv")
    experiment = load()
    assert list(experiment.studies["line"].scenarios) == ["early"]
    assert [(study, what) for study, what, _ in experiment.not_run] == [("line", "late")]
    with pytest.raises(UserError, match="the moon"):
        experiment.scenario("line", "late")
    (tmp_path / "moon.csv").write_text("there")
    found = load()
    before = found.part_values("line", "late", "make_points")["files"]
    (tmp_path / "moon.csv").write_text("changed")
    assert found.part_values("line", "late", "make_points")["files"] != before


def test_a_file_that_a_drawing_reads_counts_like_the_configuration(conf, load, tmp_path):
    record = tmp_path / "record.json"
    edit(conf, "figure/line/line.yaml", "caption: It rises.", f"caption: It rises.\nparams: {{record: {record}}}")
    with pytest.raises(UserError, match=r"line.yaml: params.*there is no file '.*record.json'"):
        load()
    hashes = []
    for text in ("1", "22"):
        record.write_text(text)
        (figure,) = freeze.draw_part(load(), "line")["figures"]
        hashes.append(figure["files"][str(record)])
    assert hashes[0] != hashes[1]


def test_the_cache_spares_composition_and_forgets_nothing(conf, load, monkeypatch):
    first = load()
    composed = []
    members = Composer.members
    monkeypatch.setattr(
        Composer, "members", lambda self, group, name, *rest: composed.append(name) or members(self, group, name, *rest)
    )
    again = load()
    assert composed == [] and again.studies == first.studies
    edit(conf, "scenario/line/late.yaml", "override /slope: steep", "override /slope: flat")
    load()
    assert composed == ["late"]
    edit(conf, "slope/flat.yaml", "0.5", "0.75")
    assert load().scenario("line", "early")["parts"]["make_ground"]["values"] == {"rate": 0.75}


def test_the_cache_knows_that_a_scenario_builds_on_others(conf, load):
    (conf / "scenario/line/noon.yaml").write_text("defaults:\n  - early\n  - _self_\nname: noon\n")
    (conf / "scenario/line/evening.yaml").write_text("defaults:\n  - noon\n  - _self_\nname: evening\n")
    assert load().scenario("line", "evening")["problem"] == {"size": 5}
    edit(conf, "scenario/line/early.yaml", "name: early", "name: early\nsize: 11")
    later = load()
    assert [later.scenario("line", name)["problem"]["size"] for name in ("early", "noon", "evening", "late")] == [
        11,
        11,
        11,
        5,
    ]


def test_a_broken_cache_is_made_again(load, tmp_path):
    first = load()
    (tmp_path / "cache.json").write_text("{broken")
    assert load().studies == first.studies


def test_a_part_that_was_edited_by_hand_is_refused_and_left_as_it_is(load, tmp_path):
    freeze.write_parts(load(), tmp_path)
    victim = max(tmp_path.rglob("config/*.yaml"))
    victim.write_text(victim.read_text().replace("seed: ", "seed: 1"))
    text = victim.read_text()
    for look in (lambda: freeze.write_parts(load(), tmp_path), lambda: read_part(victim)):
        with pytest.raises(UserError) as refused:
            look()
        assert refused.value.where == str(victim) and victim.read_text() == text
    victim.write_text(text := text.partition("\n")[2].partition("\n")[2])
    with pytest.raises(UserError):
        freeze.write_parts(load(), tmp_path)
    assert victim.read_text() == text, "not replaced without its mark either"
    victim.unlink()
    assert freeze.write_parts(load(), tmp_path) == 1 and read_part(victim)


def test_frozen_parts_are_written_once_and_come_back_the_same(load, tmp_path):
    experiment = load()
    assert freeze.write_parts(experiment, tmp_path) == len(dict(freeze.frozen_parts(experiment)))
    assert freeze.write_parts(load(), tmp_path) == 0
    for path, values in freeze.frozen_parts(experiment):
        assert read_part(tmp_path / path) == values
    victim = tmp_path / experiment.results / "line/early/config/evaluate-rules.yaml"
    text = victim.read_text()
    victim.unlink()
    assert freeze.write_parts(load(), tmp_path) == 1 and victim.read_text() == text


def test_code_is_read_once_for_all_folders_of_results(load, tmp_path, monkeypatch):
    beside = tmp_path / "package/__pycache__/code.json"
    monkeypatch.setattr(freeze.StageCode, "digests", property(lambda self: vars(self).setdefault("digests", cache)))
    cache = RecordCache(beside)
    before = dict(freeze.frozen_parts(load()))
    assert beside.is_file()
    monkeypatch.setattr(code, "statements_of", lambda *_: pytest.fail("a file was read again"))
    cache = RecordCache(beside)
    assert dict(freeze.frozen_parts(load())) == before
    beside.write_text("[]")
    cache = RecordCache(beside)
    with pytest.raises(pytest.fail.Exception):
        dict(freeze.frozen_parts(load()))


def test_a_shared_part_is_frozen_once_for_equal_values(conf, load):
    edit(conf, "scenario/line/late.yaml", "override /slope: steep", "override /slope: flat")
    experiment = load()
    assert experiment.part_file("line", "early", "make_ground") == experiment.part_file("line", "late", "make_ground")
    assert experiment.part_file("line", "early", "make_points") != experiment.part_file("line", "late", "make_points")


def test_a_value_reaches_exactly_the_parts_that_read_it(conf, load):
    def parts() -> dict[str, str]:
        return {path: dump(values) for path, values in freeze.frozen_parts(load())}

    before = parts()
    edit(conf, "figure/theme.yaml", "100", "101")
    assert {path for path, text in parts().items() if before.get(path) != text} == {
        "results/small/line/config/draw.yaml"
    }
    before = parts()
    edit(conf, "learner/line/guess.yaml", "0.25", "0.3")
    changed = {path.removeprefix("results/small/line/") for path, text in parts().items() if before.get(path) != text}
    expected = {
        "policies/guesser/config/learn.yaml",
        "early/config/evaluate-guesser.yaml",
        "late/config/evaluate-guesser.yaml",
    }
    assert changed == {*expected, "config/draw.yaml"}


def test_frozen_values_survive_every_yaml_reader():
    text = dump({"small": 1e-05, "on": "on", "date": "2026-01-01", "number": "3e-4", "none": None})
    assert yaml.safe_load(text) == {"small": 1e-05, "on": "on", "date": "2026-01-01", "number": "3e-4", "none": None}


@pytest.mark.parametrize("text", ["[1, 2]", "\x00", "a: b: c"])
def test_a_damaged_part_is_a_clear_error(tmp_path, text):
    (tmp_path / "part.yaml").write_text(text)
    with pytest.raises(UserError, match=r"part\.yaml"):
        read_part(tmp_path / "part.yaml")


def test_a_figure_of_other_scales_is_told_with_its_scales(conf, load):
    edit(conf, "figure/line/line.yaml", "kind: line", "kind: line\nscales: [full, paper]")
    found = load()
    assert "line" not in found.studies["line"].figures
    with pytest.raises(UserError, match=r"'line'.*full, paper") as raised:
        found.check_figure("line", "line")
    assert raised.value.where == "conf/figure/line/line.yaml: scales"
    assert "plots/full/line/line.svg" in raised.value.remedy and "--config scale=full" in raised.value.remedy
    with pytest.raises(UserError, match="figure 'lien'") as raised:
        found.check_figure("line", "lien")
    assert "'line'" in raised.value.remedy
    edit(conf, "figure/line/line.yaml", "scales: [full, paper]", "scales: [small]")
    load().check_figure("line", "line")


def test_a_scenario_or_policy_of_other_scales_is_told_with_its_scales(conf, load):
    edit(conf, "scenario/line/late.yaml", "name: late", "name: late\nscales: [full, paper]")
    edit(conf, "scenario/line/_base.yaml", "policies: [guesser]", "policies: []")
    edit(conf, "policy/line/guesser.yaml", "name: guesser", "name: guesser\nscales: [paper]")
    found = load()
    with pytest.raises(UserError) as raised:
        found.scenario("line", "late")
    assert raised.value.where == "conf/scenario/line/late.yaml: scales" and "full, paper" in raised.value.what
    assert "results/full/line/late/" in raised.value.remedy and "--config scale=full" in raised.value.remedy
    with pytest.raises(UserError, match=r"policy 'guesser'.*paper") as raised:
        found.policy("line", "guesser")
    assert raised.value.where == "conf/policy/line/guesser.yaml: scales"
    assert "results/paper/line/policies/guesser/" in raised.value.remedy
    with pytest.raises(UserError, match=r"scenario 'lat'.*'line'.*small") as raised:
        found.scenario("line", "lat")
    assert "'late'" in raised.value.remedy
    with pytest.raises(UserError, match=r"scenario 'late'.*'lien'"):
        found.scenario("lien", "late")


def test_the_study_says_what_kind_a_target_is_and_the_configuration_has_the_last_word(conf: Path, load) -> None:
    def kinds() -> dict[str, str]:
        found = load()
        return {rule["name"]: rule["kind"] for rule in found.scenario("line", "early")["rules"]} | {
            "guesser": found.policy("line", "guesser")["kind"]
        }

    assert kinds() == {"zero": "rule", "one": "planner", "guesser": "search"}
    edit(conf, "scenario/line/_base.yaml", "[zero, one]", "[{name: zero, kind: bound}, {name: two, target: one}]")
    edit(conf, "policy/line/guesser.yaml", "name: guesser", "name: guesser\nkind: informed")
    assert kinds() == {"zero": "bound", "two": "planner", "guesser": "informed"}
