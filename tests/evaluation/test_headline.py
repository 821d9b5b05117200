"""Tests of schedlab.evaluation.headline."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from schedlab.config.seeds import generator
from schedlab.config.settings import HeadlineSettings, StatisticsSettings
from schedlab.evaluation import tables
from schedlab.evaluation.headline import Answer, Entry, answers, row
from schedlab.evaluation.statistics import Sample

SETTINGS = StatisticsSettings(resamples=300)
QUESTION = HeadlineSettings(question="is it faster?", metric="cost", scenarios=("near", "far"), recipe="ours")
UNITS = tuple(f"u{number:02}" for number in range(12))


def sample(mean: float, seeds: int = 1, seeded: bool | None = None) -> Sample:
    noise = np.random.default_rng(abs(int(mean * 1000))).normal(0, 0.02, (seeds, len(UNITS)))
    values = mean + noise + np.linspace(-0.1, 0.1, len(UNITS))
    blocks = np.arange(len(UNITS))
    return Sample(
        values, np.ones_like(values), blocks, tuple(range(seeds)), UNITS, seeds > 1 if seeded is None else seeded
    )


def entry(
    policy: str,
    kind: str,
    test: float,
    validation: float | None = None,
    recipe: str = "",
    trained_on: str = "",
    budget: float | None = None,
    seeds: int = 1,
) -> Entry:
    samples = {"test": sample(test, seeds)} | ({"validation": sample(validation)} if validation else {})
    return Entry(policy, kind, recipe or policy, trained_on, budget, samples)


def ours(test: float = 1.0, scenario: str = "near", policy: str = "", **facts) -> Entry:
    facts = {"trained_on": scenario, "seeds": 5, "budget": 100.0} | facts
    return entry(policy or f"ours-{scenario}", "learned", test, test, recipe="ours", **facts)


RULES = [entry("slow", "rule", 2.0, 2.0), entry("quick", "rule", 1.5, 1.4), entry("lucky", "rule", 1.2, 1.9)]


def answered(better: str = "lower", question: HeadlineSettings = QUESTION, **scenarios: list[Entry]) -> dict:
    streams = lambda *names: generator(7, *names)  # noqa: E731
    found = answers(question, scenarios, better, SETTINGS, streams)
    return {(scenario, group): answer for scenario, group, answer in found}


def test_each_group_has_its_own_rival_and_all_is_the_best_of_them() -> None:
    planner, published = entry("look", "planner", 1.1, 1.1), entry("theirs", "published", 3.0, 3.0, seeds=5)
    found = answered(near=[ours(), *RULES, planner, published])
    assert list(found) == [("near", group) for group in ("all", "rules", "planners", "published")]
    rivals = {group: answer.found.rival for (_, group), answer in found.items()}
    assert rivals == {"all": "look", "rules": "quick", "planners": "look", "published": "theirs"}
    of_all = found["near", "all"]
    assert of_all.found.ratio == pytest.approx(1 / 1.1, abs=0.02) and of_all.found.verdict == "better"
    assert (of_all.chosen_on, of_all.budget, of_all.policy) == ("validation", 100.0, "ours-near")
    assert found["near", "rules"].found.hindsight == "lucky"


def test_a_group_that_is_all_there_is_has_the_interval_of_all() -> None:
    found = answered(near=[ours(), *RULES])
    assert found["near", "all"].found.ci_high == found["near", "rules"].found.ci_high


def test_only_the_groups_that_are_asked_for_count() -> None:
    asked = QUESTION.model_copy(update={"groups": ("rules",)})
    found = answered(question=asked, near=[ours(), *RULES, entry("look", "planner", 1.1, 1.1)])
    assert set(found) == {("near", "all"), ("near", "rules")}
    assert found["near", "all"].found.rival == "quick"


@pytest.mark.parametrize("kind", ["informed", "oracle", "bound", "learned"])
def test_what_knows_more_and_what_else_is_learned_is_no_rival(kind: str) -> None:
    found = answered(near=[ours(), *RULES, entry("best", kind, 0.5, 0.5)])
    assert found["near", "all"].found.rival == "quick" and found["near", "all"].found.hindsight == "lucky"
    to_bound = found["near", "all"].to_bound
    assert to_bound == pytest.approx(2.0, abs=0.05) if kind in ("oracle", "bound") else to_bound is None


def test_a_search_is_a_rival_whatever_it_used() -> None:
    """One that does as well with less is the stronger rival."""
    cheap = entry("cheap", "search", 1.05, 1.05, budget=99.0, seeds=5)
    dear = entry("dear", "search", 1.3, 1.3, budget=100.0, seeds=5)
    found = answered(near=[ours(), *RULES, cheap, dear, entry("probing", "search", 1.6, 1.6)])
    assert found["near", "search"].found.rival == "cheap" == found["near", "all"].found.rival
    assert (found["near", "all"].budget, found["near", "all"].rival_budget) == (100.0, 99.0)
    assert found["near", "rules"].rival_budget is None


@pytest.mark.parametrize(
    ("policies", "chosen"),
    [
        ([ours(), ours(policy="elsewhere", scenario="far")], "ours-near"),
        ([ours(scenario="far")], "ours-far"),
        ([ours(), ours(policy="both", trained_on="far > near+far")], "ours-near"),
        ([ours(policy="both", trained_on="near+far"), ours(scenario="far")], "both"),
        ([ours(scenario="far"), ours(scenario="mid")], None),
        ([], None),
    ],
)
def test_the_policy_is_the_one_that_was_trained_on_the_scenario(
    policies: list[Entry], chosen: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    found = answered(near=[*policies, *RULES])
    assert [answer.policy for answer in found.values()] == [chosen] * len(found) and bool(found) == bool(chosen)
    assert chosen or "nothing to say at this scale" in caplog.text


def test_several_scenarios_have_a_mean_in_the_groups_that_all_have() -> None:
    found = answered(
        near=[ours(), *RULES, entry("look", "planner", 1.1, 1.1)],
        far=[ours(2.0, "far", budget=300.0), entry("slow", "rule", 3.0, 3.0), entry("best", "bound", 1.0)],
    )
    assert [key for key in found if key[0] == "near+far"] == [("near+far", "all"), ("near+far", "rules")]
    mean = found["near+far", "rules"]
    assert mean.found.ratio == pytest.approx(np.sqrt((1 / 1.5) * (2 / 3)), abs=0.02)
    assert mean.policy == "ours-near + ours-far" and mean.found.rival == "quick + slow"
    assert (mean.budget, mean.to_bound) == (200.0, None)
    assert found["far", "all"].to_bound == pytest.approx(2.0, abs=0.05)


def test_a_rival_is_chosen_on_test_units_where_there_are_no_others() -> None:
    found = answered(near=[ours(), entry("slow", "rule", 2.0), entry("quick", "rule", 1.5)])
    assert (found["near", "all"].chosen_on, found["near", "all"].found.rival) == ("test", "quick")


def test_the_verdict_follows_the_direction_of_the_metric() -> None:
    scenario = [ours(), *RULES]
    assert answered(near=scenario)["near", "all"].found.verdict == "better"
    assert answered("higher", near=scenario)["near", "all"].found.verdict == "worse"


def test_rows_make_the_table() -> None:
    found = answered(near=[ours(), *RULES, entry("negative", "bound", -0.5)], far=[ours(2.0, "far"), *RULES])
    rows = [row(*key, answer, QUESTION) for key, answer in found.items()]
    table = tables.build(tables.HEADLINE, [{**each, "config_hash": "a", "code_hash": "b"} for each in rows])
    assert set(table["scenario"]) == {"near", "far", "near+far"} and set(table["group"]) == {"all", "rules"}
    assert table["ratio_to_bound"].isna().all()
    assert isinstance(next(iter(found.values())), Answer)
