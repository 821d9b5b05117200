"""The ledger's values of ours are what the scenarios of the published protocols give; each status fits its values."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import shipped_conf
from claim_programs import hold, ledger, program
from conformance.batch_recorded import window_measures
from schedlab.config.schema import validate
from schedlab.studies.batch.problem import RULE_MAKERS
from schedlab.studies.batch.scenario import WindowSettings
from schedlab.studies.batch.windows import first_job, window_units

CONF = Path(__file__).parents[3] / "conf"
SCENARIOS = [
    name for name in shipped_conf.names("scenario/batch") if name.startswith("published_") and "_2048_" not in name
]
PUBLISHED_NAMES = {"wfp3": "wfp3_legacy", "unicep": "unicep_legacy"}
TABLE_STARTS = yaml.safe_load((CONF / "scenario/batch/_published_table.yaml").read_text())["windows"]["starts"]
PROGRAM = program("batch")
LEDGER = ledger("batch")
READ = {  # claim -> the scenario whose recorded scores it reads
    claim["id"]: ((claim.get("ours_reference") or claim.get("ours_repaired") or {}).get("row") or {}).get("scenario")
    for claim in yaml.safe_load((CONF / "claims/batch.yaml").read_text())["claims"]
}


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if "_test_" not in name])
def test_values_of_ours_are_what_the_scenario_gives(scenario: str, shared_data: Path) -> None:
    own = shipped_conf.values("scenario/batch", scenario)
    windows = {"length": 1024, "starts": TABLE_STARTS} | own.get("windows", {})
    starts, file, backfill = (
        tuple(windows["starts"]),
        shared_data / own["workload"]["file"],
        own.get("backfill", "none"),
    )
    claims = [LEDGER[name] for name, read in READ.items() if read == scenario and not name.endswith("-rl")]
    for claim in claims:
        rule, measure = claim.id.rpartition("-")[2], "util_to_last_start" if claim.id.startswith("util") else "avg_bsld"
        for ours, name in ((claim.ours_reference, PUBLISHED_NAMES.get(rule, rule)), (claim.ours_repaired, rule)):
            if ours is not None:
                found = [each[measure] for each in window_measures(file, name, backfill, starts, windows["length"])]
                assert np.mean(found) == pytest.approx(ours, abs=0.00005), claim.id
    assert claims or scenario.endswith("_easy")


def test_every_published_scenario_scores_the_rules_that_were_left_out() -> None:
    shared = yaml.safe_load((CONF / "scenario/batch/_published_table.yaml").read_text())["rules"]
    found = {
        path.stem: set(yaml.safe_load(path.read_text()).get("rules", shared))
        for path in (CONF / "scenario/batch").glob("published_*.yaml")
    }
    needed = {"fcfs", "sjf", "smallest", "smallest_area", "f1", "f2", "f3", "f4", "wfp3", "unicep"}
    assert {name: needed - rules for name, rules in found.items() if needed - rules} == {}


@pytest.mark.parametrize(("file", "length"), [("_published_table", 1024), ("_published_table_2048", 2048)])
def test_starts_are_those_of_the_published_random_numbers(file: str, length: int) -> None:
    windows = yaml.safe_load((CONF / f"scenario/batch/{file}.yaml").read_text())["windows"]
    digest = int.from_bytes(
        hashlib.sha512(b"1").digest()[:8], "little"
    )  # the gym of that time hashed its seed (gym/utils/seeding.py)
    random = np.random.RandomState([digest % 2**32, digest >> 32])
    assert windows["length"] == length
    assert windows["starts"] == [random.randint(length, 10_000 - length - 1) for _ in range(10)]


@pytest.mark.parametrize(
    ("scenario", "jobs", "told"),
    [
        *(
            (name, 10_000 if "lublin" in name else 59_705, "published, overlapping")
            for name in SCENARIOS
            if "_test_" not in name
        ),
        *(
            (name, 202_871 if "hpc2n" in name else 59_705, "published, disjoint")
            for name in SCENARIOS
            if "_test_" in name
        ),
    ],
)
def test_published_protocols_are_called_what_they_are(scenario: str, jobs: int, told: str) -> None:
    own = shipped_conf.values("scenario/batch", scenario)
    windows = validate(WindowSettings, {"length": 1024, "starts": TABLE_STARTS} | own.get("windows", {}))
    assert {unit.kind for unit in window_units(jobs, windows, "test", 1)} == {told}


@pytest.mark.usefixtures("shared_data")
def test_rules_of_the_test_protocol_with_backfilling_have_the_known_means() -> None:
    """SDSC-SP2 with the published backfilling, the last window counted four times; known to whole numbers."""
    problem = PROGRAM.problem("sdsc_sp2_backfill")
    units, known = problem.units("test"), {"fcfs": 1217, "f1": 2292, "sjf": 2136, "smallest": 2923}
    assert [first_job(unit) for unit in units] == [35823, 49704]
    rollouts = [[problem.rollout(RULE_MAKERS[rule]({}, problem, 0), unit) for unit in units] for rule in known]
    found = [[window.scores["avg_bsld"] for window in windows] for windows in rollouts]
    weights = [window.weight for window in rollouts[0]]
    counted, once = np.average(found, axis=1, weights=weights), np.mean(found, axis=1)
    assert weights == [1, 4]
    assert counted == pytest.approx(list(known.values()), abs=0.5)
    assert list(known)[once.argmin()] == "fcfs" == list(known)[counted.argmin()]  # "FCFS is the best of the four"


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(
    ("test", "rule"),
    [
        ("sdsc_sp2", "f1"),
        ("sdsc_sp2", "sjf"),
        pytest.param("hpc2n", "smallest", marks=pytest.mark.slow),
        pytest.param("hpc2n_backfill", "sjf", marks=pytest.mark.slow),
    ],
)
def test_published_baselines_of_the_tests_waited(test: str, rule: str) -> None:
    for form in PROGRAM.FORMS:
        found = PROGRAM.of_rule(test, rule, form)
        assert len(found) == (4 if test == PROGRAM.WITH_WAITS else 2)
        hold(LEDGER, found)
    claim = LEDGER[f"test-{test.replace('_', '-')}-{rule}"]
    # the other two come near it: docs/notebook/batch.md
    assert rule in ("fcfs", "f1") or claim.ours_reference == pytest.approx(claim.published, abs=0.011)


def test_what_was_learned_as_published_is_what_was_measured_on_its_windows() -> None:
    found = pd.read_csv(CONF.parent / "docs/results/batch_published_tests.csv")
    held = {
        "published_test_hpc2n": {
            "mean": "test-hpc2n-ppo-b",
            "median": "median-hpc2n-ppo-b",
            "wait_mean": "wait-mean-hpc2n-ppo",
            "wait_median": "wait-median-hpc2n-ppo",
        },
        "published_test_hpc2n_backfill": {
            "mean": "hpc2n-backfill-ppo-b-test",
            "median": "median-hpc2n-backfill-ppo-b-test",
        },
    }
    for scenario, measured in held.items():
        means = found[found["scenario"] == scenario].groupby("policy").mean(numeric_only=True)
        for key, name in measured.items():
            ours = LEDGER[name].ours_reference, LEDGER[name].ours_repaired
            expected = [means.loc[policy, key] for policy in ("ppo-dissertation-hpc2n", "rollout-hpc2n")]
            assert ours == pytest.approx(expected, abs=0.051 if "wait" in key else 0.0051), name
