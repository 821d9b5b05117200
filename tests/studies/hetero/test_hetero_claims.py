"""The ledger's values of ours are what the study computes, and each status says what the values say."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.evaluation.claims import agree, read_claims
from schedlab.platforms.generate import hierarchy_of
from schedlab.platforms.settings import REFERENCE as PLATFORM_REFERENCE
from schedlab.platforms.settings import PlatformSettings, PstateSettings
from schedlab.studies.hetero.env.observation import Observer
from schedlab.studies.hetero.env.settings import REFERENCE, DecisionSettings, LegacySettings
from schedlab.studies.hetero.simulator.episode import Episode, learning_case, play
from schedlab.studies.hetero.simulator.resources import ResourceModel

LEDGER = {claim.id: claim for claim in read_claims(Path(__file__).parents[3] / "conf", "hetero")["hetero"].claims}
TOTALS = {"cores": "cores", "speed": "reference_speed_gflops", "power": "power_w"}
LIMITS = {"max_time": 1.0, "max_core": 1.0, "max_mem": 1.0, "max_mem_bw": 1.0}


def of(kind: str) -> list[str]:
    """Ids of one kind, which begin alike."""
    found = [name for name in LEDGER if name.startswith(f"{kind}-")]
    assert found
    return found


@pytest.mark.parametrize("core_policy", ["high_gflops", "high_mem_bw", "low_power"])
@pytest.mark.parametrize("form", ["ours_reference", "ours_repaired"])
def test_the_learning_case(core_policy: str, form: str) -> None:
    legacy = LegacySettings(**REFERENCE) if form == "ours_reference" else LegacySettings()
    settings = DecisionSettings(selection=(f"shortest-{core_policy}",), void=False, objective="makespan", legacy=legacy)
    run = Episode(*learning_case(), settings, 0)
    scores = play(run)
    found = {"makespan": scores["makespan"], "reward": sum(run.history.rewards), "energy": scores["consumed_joules"]}
    compared = [name for kind in found for name in of(f"case-{kind}") if name.endswith(core_policy.replace("_", "-"))]
    assert len(compared) == (2 if core_policy == "high_mem_bw" else 3)
    for name in compared:
        assert found[name.split("-")[1]] == pytest.approx(getattr(LEDGER[name], form), abs=LEDGER[name].tolerance), name


@pytest.mark.parametrize("name", of("platform"))
def test_totals_of_the_platforms(name: str) -> None:
    _, platform, quantity = name.split("-")
    total = hierarchy_of(PlatformSettings(file=platform)).totals()[TOTALS[quantity]]
    assert agree(LEDGER[name].ours_repaired, total, LEDGER[name].tolerance)


@pytest.mark.parametrize("name", of("observation"))
def test_sizes_of_observations(name: str) -> None:
    model = ResourceModel(hierarchy_of(PlatformSettings(file="gaia")))
    assert Observer(model, name.split("-")[1], LIMITS, 0.05).size == LEDGER[name].ours_repaired


def test_power_of_a_free_core() -> None:
    for form, changes in (("ours_reference", PLATFORM_REFERENCE["pstates"]), ("ours_repaired", {})):
        state = PstateSettings(**changes).states()[2]
        assert getattr(LEDGER["free-core-power"], form) == f"{state.power:g} {state.model_power:g}"
