"""Reference mode: every recorded case of the published program, answered from its inputs alone, equals the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from claim_programs import hold, ledger, program
from schedlab.config.errors import UserError
from schedlab.studies.cloud.slamorl.case_files import KINDS, replay

PROGRAM = program("cloud")
CASES = PROGRAM.CASES
RECORDED = sorted(path.stem for path in CASES.glob("*.json"))


@pytest.mark.parametrize("kind", RECORDED)
def test_answers_equal_the_record(kind: str) -> None:
    assert list(PROGRAM.case_differences(kind)) == []
    recorded = json.loads((CASES / f"{kind}.json").read_text())
    answered = json.loads(json.dumps(replay(CASES / f"{kind}.json", compat=True)))
    assert list(PROGRAM.differences(answered, recorded)) == []


def test_differences_are_found_in_numbers_words_and_structure() -> None:
    recorded = {"a": [1.0, True], "b": "x", "c": {"d": None}}
    assert list(PROGRAM.differences({**recorded, "a": [1.0 + 1e-10, True]}, recorded)) == []
    for changed in ({"a": [1.0 + 1e-8, True]}, {"a": [1.0, 1]}, {"a": [1.0]}, {"b": "y"}, {"c": {}}, {"c": {"d": 0}}):
        assert len(list(PROGRAM.differences({**recorded, **changed}, recorded))) == 1


def test_the_ledger_counts_the_kinds_that_are_equal() -> None:
    hold(ledger("cloud"), PROGRAM.cases())


def test_all_kinds_but_the_reward_are_recorded() -> None:
    assert {*RECORDED, "reward"} == set(KINDS)


def test_repaired_severities_fall_back_and_memory_is_two_numbers() -> None:
    answered = replay(CASES / "sla.json", compat=False)
    recovered = answered["stale_severity_sequence"][1]["sla_status"]
    assert all(item == {"met": True, "severity": 0.0} for item in recovered.values())
    last = answered["cases"][4]["state_vector"]
    assert last[2] == 0.0 and last[22] == 0.125  # none is known to be held, 32 of 256 GB are used
    assert last[23] == pytest.approx(300 / 10 * 10 / 600)


REWARD = {
    "resource": {
        "gpu_count_max": 8,
        "gpu_count_min": 1,
        "cpu_count_max": 64,
        "cpu_count_min": 1,
        "memory_max": 256,
        "memory_min": 4,
    },
    "sla": {
        "time_max": 600.0,
        "cost_max": 0.3,
        "throughput_min": 1800.0,
        "memory_max": 64.0,
        "gpu_util_min": 80.0,
        "cpu_util_min": 70.0,
    },
}
FIRST = {
    "epoch": 1,
    "time_so_far": 900.0,
    "cost_so_far": 0.9,
    "throughput": 800.0,
    "memory_used_gb": 10.0,
    "cpu_percent": 75.0,
}
SECOND = {
    "epoch": 2,
    "time_so_far": 100.0,
    "cost_so_far": 0.1,
    "throughput": 1000.0,
    "memory_used_gb": 20.0,
    "cpu_percent": 90.0,
}
RECORDS = [FIRST, SECOND | {"gpu_utilization_0": 20.0, "gpu_utilization_1": 4.0}]


def answer(tmp_path: Path, compat: bool = True, **case: Any) -> dict[str, Any]:
    """The answer to one case of kind reward."""
    whole = {
        "preference": "cost",
        "action": 26,
        "history": RECORDS,
        "allocation": {"gpu_count": 2, "cpu_count": 8, "memory_gb": 16},
    }
    (tmp_path / "reward.json").write_text(json.dumps({**REWARD, "cases": [{**whole, **case}]}))
    return replay(tmp_path / "reward.json", compat)["cases"][0]


def test_reward_by_hand(tmp_path: Path) -> None:
    found = answer(tmp_path)
    assert found["new_allocation"] == {"gpu_count": 3, "cpu_count": 12, "memory_gb": 24}
    parts = found["components"]
    assert parts["cost_reward"] == 20 * (76 - 114)
    assert parts["performance_reward"] == pytest.approx(2.5)
    assert parts["efficiency_reward"] == pytest.approx(
        ((1 - 0.68) * 10 - 10 + 9) / 2
    )  # of the three GPUs held after the action
    assert parts["sla_reward"] == pytest.approx((2 * 4 / 6 - 0.5) * 15)  # throughput and GPUs are below their limits
    total = 0.6 * -760 + 0.1 * 2.5 + 0.1 * parts["efficiency_reward"] + 0.2 * parts["sla_reward"] - 2
    assert found["reward"] == parts["total_reward"] == pytest.approx(total)
    assert found["allocation_changed"] and not found["done"]
    state = found["next_state"]
    assert state[:3] == pytest.approx([3 / 8, 12 / 64, 20 / 256]) and state[16] == 0.5 and state[22:] == [0.0] * 4
    assert [option["priority"] for option in found["options"]] == ["time", "cost", "resource", "balanced"]
    cost = found["options"][1]
    assert (cost["gpu_count"], cost["cpu_count"], cost["memory_gb"]) == (2, 12, 24) and cost["hourly_cost"] == 104
    assert cost["estimated_savings"] == pytest.approx(1 - 104 / 114)


def test_prices_that_a_file_does_not_tell_are_those_of_the_mode(tmp_path: Path) -> None:
    assert answer(tmp_path, compat=True)["components"]["cost_reward"] == 20 * (76 - 114)
    ours, after = 2 * 2.5 + 8 * 0.1 + 16 * 0.02, 1 * 2.5 + 12 * 0.1 + 24 * 0.02  # an idle GPU is trimmed
    assert answer(tmp_path, compat=False)["components"]["cost_reward"] == pytest.approx(20 * (ours - after))


def test_repaired_reward_trims_idle_gpus_and_forgets_severities(tmp_path: Path) -> None:
    found = answer(tmp_path, compat=False)
    assert found["new_allocation"]["gpu_count"] == 1  # one of the two reported is at 10 % or more
    assert found["next_state"][16] == 0.0


@pytest.mark.parametrize(
    ("history", "over"),
    [
        ([{"epoch": 5, "total_epochs": 5}], True),
        ([{"epoch": 4, "total_epochs": 5}], False),
        ([{"epoch": 5}], False),
        ([{"epoch": 1, "time_so_far": 901.0, "cost_so_far": 0.46, "throughput": 10.0}], True),
        ([{"epoch": 1, "time_so_far": 901.0, "gpu_utilization_0": 50.0, "throughput": 10.0}], False),
    ],
)
def test_when_an_episode_is_over(tmp_path: Path, history: list[dict[str, float]], over: bool) -> None:
    assert answer(tmp_path, history=history)["done"] is over


def test_nothing_recorded_is_no_violation(tmp_path: Path) -> None:
    found = answer(tmp_path, history=[], action=13, preference="balanced")
    assert found["components"]["sla_reward"] == 22.5 and not found["allocation_changed"]


EIGHT = {"gpu_count": 8, "cpu_count": 32, "memory_gb": 64}


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [  # GPUs, cores and batch for time, cost, resource, balanced
        ({}, [(4, 36, 256), (2, 16, 128), (7, 42, 448), (6, 36, 384)]),
        (
            {"gpu_utilization_0": 45.0, "batch_size": 256, "gpu_count": 8},
            [(8, 36, 256), (4, 32, 128), (8, 48, 256), (7, 42, 224)],
        ),
        (
            {"gpu_utilization_0": 90.0, "gpu_utilization_1": 100.0},
            [(8, 36, 512), (7, 32, 448), (8, 48, 512), (8, 48, 512)],
        ),
        (
            {"gpu_utilization_0": None, "batch_size": None, "gpu_count": 0},
            [(4, 36, 256), (2, 16, 128), (7, 42, 448), (6, 36, 384)],
        ),
    ],
)
@pytest.mark.parametrize("compat", [True, False])
def test_options_where_nothing_was_recorded_go_by_the_baselines_use(
    tmp_path: Path, baseline: dict, expected: list, compat: bool
) -> None:
    given = {"baseline": baseline} if baseline else {}
    found = answer(tmp_path, compat, history=[], action=13, allocation=EIGHT, **given)["options"]
    assert [option["priority"] for option in found] == ["time", "cost", "resource", "balanced"]
    assert [(option["gpu_count"], option["cpu_count"], option["batch_size"]) for option in found] == expected
    first = found[0]
    gpu, core, gigabyte = (10, 3, 2) if compat else (2.5, 0.1, 0.02)
    hourly = gpu * first["gpu_count"] + core * first["cpu_count"] + gigabyte * first["memory_gb"]
    assert first["hourly_cost"] == pytest.approx(hourly, rel=1e-12)


def test_a_baseline_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'gpu_utilization_0' is 'busy'"):
        answer(tmp_path, history=[], baseline={"gpu_utilization_0": "busy"})
    with pytest.raises(UserError, match="'batch_size' is -4"):
        answer(tmp_path, history=[], baseline={"batch_size": -4})


@pytest.mark.parametrize("value", [27, -1, 1.5, "3", None, True])
def test_no_such_action(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UserError, match="0 to 26"):
        answer(tmp_path, action=value)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("rewards.json", "{}", "reward.json"),
        ("sla.json", "[]", "sla.json"),
        ("sla.json", '{"resource": {}, "sla": {"time_maks": 1}, "cases": []}', "did you mean 'time_max'"),
        ("sla.json", '{"resource": {}, "sla": {}, "cases": [{}]}', "'metrics'"),
        (
            "sla.json",
            '{"resource": {}, "sla": {}, "cases": [{"metrics": {"throughput": "fast"}}]}',
            "expected a number",
        ),
        ("sla.json", '{"resource": {"gpu_count_min": 9}, "sla": {}, "cases": []}', "sla.json: resource"),
        (
            "sla.json",
            '{"resource": {}, "sla": {}, "cases": [{"metrics": {"gpu_utilization_0": "x"}}]}',
            "expected a number",
        ),
        (
            "cost.json",
            '{"rates": {"gpu": 1e308, "cpu": 1, "gb": 1}, "cases": [{"baseline": {"gpu_count": 90}, "optimized": {}}]}',
            "cost.json",
        ),
        ("actions.json", '{"resource": {}}', "'cases'"),
        ("change.json", '{"cases": [{"index": 26, "delta": 1}]}', "0 to 25"),
        (
            "cost.json",
            '{"rates": {"gpu": 1, "cpu": 1, "gb": 1}, "cases": [{"baseline": {"gpu_count": -1}, "optimized": {}}]}',
            "0 or more",
        ),
        ("cost.json", '{"rates": {"gpu": -1, "cpu": 1, "gb": 1}, "cases": []}', "cost_per_gpu_hour"),
        ("similarity.json", '{"cases": [{"model_info": {"model_params": "many"}}]}', "expected a number"),
        (
            "cost.json",
            '{"rates": {"gpu": 1, "cpu": 1, "gb": 1}, "cases": [], '
            '"diagnose_cases": [{"metrics": {"cpu_percent": "x"}, "gpu_count": 1}]}',
            "'cpu_percent' is 'x'",
        ),
        ("reward.json", '{"resource": {}, "sla": {}, "cases": [{"preference": "fast"}]}', "'fast'"),
    ],
)
def test_mistakes_are_told_in_a_paragraph(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "similarity_logs.csv").write_text((CASES / "similarity_logs.csv").read_text())
    with pytest.raises(UserError, match=told) as error:
        replay(tmp_path / name, compat=True)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"model_name": "name"}, "similarity_logs.csv.*'model_name'"),
        ({"cpu_count": "cores"}, "'cpu_count'"),
        ({"23520842": "23M"}, "row 2, column model_params"),
    ],
)
def test_mistakes_in_the_logs_of_a_similarity_are_told(tmp_path: Path, changed: dict[str, str], told: str) -> None:
    text = (CASES / "similarity_logs.csv").read_text()
    for old, new in changed.items():
        text = text.replace(old, new, 1)
    (tmp_path / "similarity_logs.csv").write_text(text)
    (tmp_path / "similarity.json").write_text('{"cases": [{"model_info": {}}]}')
    with pytest.raises(UserError, match=told):
        replay(tmp_path / "similarity.json", compat=True)


def test_a_query_without_data_is_like_nothing_in_size(tmp_path: Path) -> None:
    (tmp_path / "similarity_logs.csv").write_text((CASES / "similarity_logs.csv").read_text())
    query = {"model_params": 23520842, "model_layers": 158, "data_size_mb": 0}
    (tmp_path / "similarity.json").write_text(json.dumps({"cases": [{"model_info": query}]}))
    found = replay(tmp_path / "similarity.json", compat=True)["cases"][0]
    assert found["prediction"]["similarity_score"] == pytest.approx(0.8) and found["error"] is None


@pytest.mark.parametrize("key", ["data_size_mb", "model_params", "model_layers"])
def test_null_in_a_query_is_as_good_as_nothing(tmp_path: Path, key: str) -> None:
    (tmp_path / "similarity_logs.csv").write_text((CASES / "similarity_logs.csv").read_text())
    query = {"model_params": 23520842, "model_layers": 158, "data_size_mb": 100.0}
    queries = [query | {key: None}, {name: value for name, value in query.items() if name != key}]
    cases = [{"model_info": each} for each in queries]
    (tmp_path / "similarity.json").write_text(json.dumps({"cases": cases, "default_cases": cases}))
    found = replay(tmp_path / "similarity.json", compat=True)
    for kind in ("cases", "default_cases"):
        assert (
            found[kind][0]["prediction"] == found[kind][1]["prediction"] and found[kind][0]["model_info"][key] is None
        )
