"""HDeepRM's options files: both forms, and every mistake names file, key and the nearest name."""

from __future__ import annotations

import json

import pytest
from small_hetero import SELECTION
from small_launch import LEARN, options, pair

from schedlab.config.errors import UserError
from schedlab.studies.hetero.env.settings import ALL_PAIRS, REFERENCE
from schedlab.studies.hetero.hdeeprm.options import decision_settings, read_options


@pytest.fixture
def read(tmp_path):
    """Write values as options.json and read them."""

    def read(values):
        path = tmp_path / "options.json"
        path.write_text(json.dumps(values))
        return read_options(path)

    return read


def test_the_form_of_version_0_3(read):
    found = read(options())
    settings = decision_settings(found)
    assert settings.selection == SELECTION
    assert (settings.void, settings.observation, settings.objective, settings.queue_sensitivity) == (
        False,
        "minimal",
        "makespan",
        0.05,
    )
    assert found.pybatsim.agent.hidden == 16
    assert not any(settings.legacy.model_dump().values())


def test_the_pair_of_version_0_2_becomes_a_selection_without_void(read):
    settings = decision_settings(read(pair("shortest-high_mem_bw")))
    assert settings.selection == ("shortest-high_mem_bw",)
    assert not settings.void


@pytest.mark.parametrize("job", ["random", "first", "shortest", "low_mem", "low_mem_bw"])
@pytest.mark.parametrize(
    ("core", "today"),
    [
        ("random", "random"),
        ("high_flops", "high_gflops"),
        ("high_mem", "high_mem"),
        ("high_mem_bw", "high_mem_bw"),
        ("low_energy", "low_power"),
    ],
)
def test_the_25_pairs_of_version_0_2(read, job, core, today):
    assert decision_settings(read(pair(f"{job}-{core}"))).selection == (f"{job}-{today}",)


def test_the_type_of_an_agent_follows_from_its_keys_where_it_is_missing(read):
    without_type = {key: value for key, value in LEARN.items() if key != "type"}
    classic = read(options({"policy_pair": "shortest-high_flops"}, actions=None)).pybatsim.agent
    assert read(options(without_type)).pybatsim.agent.learning and not classic.learning


def test_without_actions_all_pairs_and_void_in_the_order_of_the_table(read):
    settings = decision_settings(read(options(actions=None, observation=None)))
    assert settings.selection == ALL_PAIRS
    assert settings.actions == 37
    assert settings.selection[6 * 1 + 4] == "first-high_mem_bw"
    assert settings.observation == "normal"


def test_an_empty_core_policy_is_no_order(read):
    """The learning example in the README of 0.3.1, which HDeepRM itself cannot run."""
    values = options(LEARN, actions=None)
    del values["pybatsim"]["env"]["observation"]
    values["pybatsim"]["env"]["actions"] = {
        "selection": [{"first": ["high_gflops", "high_mem_bw"]}, {"smallest": [""]}],
        "void": False,
    }
    settings = decision_settings(read(values))
    assert settings.selection == ("first-high_gflops", "first-high_mem_bw", "smallest-random")
    assert settings.observation == "normal"


def test_reference_mode_has_every_defect(read):
    assert decision_settings(read(options()), compat=True).legacy.model_dump() == REFERENCE


def changed(path: str, value) -> dict:
    """The options with one key changed, by its dotted path."""
    values = options()
    *above, last = path.split(".")
    place = values
    for key in above:
        place = place[key]
    place[last] = value
    return values


MISTAKES = [  # values, the key that is named, the nearest name or what is allowed
    (changed("pybatsim.env.objective", "makespam"), "pybatsim.env.objective", "'makespan'"),
    (changed("pybatsim.env.queue_sensitivity", 0), "pybatsim.env.queue_sensitivity", "0"),
    (changed("pybatsim.env.observation", "tiny"), "pybatsim.env.observation", "'minimal'"),
    (changed("pybatsim.env.actions.selection", [{"shortst": ["random"]}]), "selection.0.shortst", "'shortest'"),
    (changed("pybatsim.env.actions.selection", [{"first": ["high_flops"]}]), "selection.0.first", "'high_gflops'"),
    (changed("pybatsim.env.actions.selection", [{"first": ["random"]}] * 2), "selection.1.first", "'first-random'"),
    (changed("pybatsim.env.actions.selection", [{"first": ["", "random"]}]), "selection.0.first", "'first-random'"),
    (changed("pybatsim.env.actions.selection", [{"first": []}]), "selection.0", ""),
    (changed("pybatsim.env.actions.selection", ["first-random"]), "selection.0", ""),
    (changed("pybatsim.agent.type", "CLASIC"), "pybatsim.agent.type", "'CLASSIC'"),
    (changed("pybatsim.agent.type", "DQN"), "pybatsim.agent.type", "'LEARNING'"),
    (changed("pybatsim.log_level", "LOUD"), "pybatsim.log_level", "'DEBUG'"),
    (changed("pybatsim.agent.hiden", 16), "pybatsim.agent.hiden", "'hidden'"),
    (changed("seed", "7"), "seed", ""),
    (pair("frist-random"), "pybatsim.agent.policy_pair", "'first'"),
    (options({"type": "CLASSIC", "policy_pair": "first-random"}), "pybatsim.agent.policy_pair", "env.actions"),
    (options({**LEARN, "policy_pair": "first-random"}, actions=None), "pybatsim.agent.policy_pair", "env.actions"),
    (options({"type": "LEARNING", "run": "train", "hidden": 16, "gamma": 0.9}), "pybatsim.agent.lr", ""),
    (options({"type": "LEARNING", "run": "test", "gamma": 0.9}), "pybatsim.agent.hidden", ""),
    (options({**LEARN, "acting": "greedy"}), "pybatsim.agent.acting", "sample"),
    (options({"hidden": 16}), "pybatsim.agent.type", "policy_pair"),
    ([], "", ""),
]


@pytest.mark.parametrize(
    ("values", "key", "near"), MISTAKES, ids=[f"{number}-{key}" for number, (_, key, _) in enumerate(MISTAKES)]
)
def test_a_mistake_names_file_key_and_what_was_meant(read, values, key, near):
    with pytest.raises(UserError) as mistake:
        read(values)
    text = str(mistake.value)
    assert "options.json" in text and key in text and near in text
    assert "\n" not in text  # one mistake, one sentence


def test_a_test_run_needs_no_learning_rate(read):
    assert read(options({"type": "LEARNING", "run": "test", "hidden": 16, "gamma": 0.9})).pybatsim.agent.lr is None
