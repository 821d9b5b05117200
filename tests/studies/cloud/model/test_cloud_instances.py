"""Catalogues of instance types, the speeds of GPU kinds, and the time of a training that may be interrupted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.fit import fit
from schedlab.studies.cloud.model.instances import kind_speeds, offers_of, read_instances
from schedlab.studies.cloud.model.interruptions import drawn_time, expected_time, hazard_of
from schedlab.studies.cloud.model.step_time import StepParameters, step_time

SAMPLE = find_resource("resources/instances/sample.csv")
STEP = StepParameters(0.01, 1e-3, 0.1, 1e-2, 0.02, 3e-3, 2.0)
SKYPILOT = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,Zone
c5,,,8.0,16.0,,0.25,0.2,us,us-a
g4,T4,1.0,4.0,16.0,"{'Gpus': [{'Name': 'T4', 'Count': 1.0}]}",0.5,0.3,us,us-a
g4,T4,1.0,4.0,16.0,"{'Gpus': [{'Name': 'T4', 'Count': 1.0}]}",0.5,0.2,us,us-b
g4,T4,1.0,4.0,16.0,,0.6,,eu,eu-a
part,A10,0.5,4.0,16.0,,0.4,,us,us-a
,A100,1.0,,,,2.0,1.0,us,us-a
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "catalogue.csv"
    file.write_text(text)
    return file


def test_the_sample_has_prices_kinds_and_rates():
    found = {each.type: each for each in read_instances(SAMPLE, "north")}
    assert found["t4-4"].gpus == 4 and found["t4-4"].gpu_kind == "T4" and found["t4-4"].cores == 32
    offers, unknown = offers_of(found.values())
    assert not unknown and {offer.name for offer in offers} >= {"t4-4", "t4-4 (spot)", "cpu-16"}
    spot = next(offer for offer in offers if offer.name == "t4-4 (spot)")
    assert spot.price == 0.8 and np.exp(-spot.hazard * 3600) == pytest.approx(0.9)


def test_a_catalogue_of_skypilot_is_read_by_region_with_the_cheapest_zone(tmp_path):
    file = written(tmp_path, SKYPILOT)
    cpu, gpu = read_instances(file, "us")
    assert (cpu.type, cpu.gpus, gpu.type, gpu.gpus, gpu.gpu_kind) == ("c5", 0, "g4", 1, "T4")
    assert (gpu.price, gpu.spot_price, gpu.cores, gpu.memory_gb) == (0.5, 0.2, 4.0, 16.0)
    (gpu,) = read_instances(file, "eu")
    assert gpu.price == 0.6 and gpu.spot_price is None
    _, gpu = read_instances(written(tmp_path, SKYPILOT.replace("0.5,0.2", "0.5,0.7")), "us")
    assert gpu.spot_price == 0.3  # the other zone's is above the price on demand
    offers, unknown = offers_of([cpu])
    assert [offer.spot for offer in offers] == [False] and unknown == ["c5"]  # no rate, no spot instance
    assert [offer.spot for offer in offers_of([cpu], rate=0.1)[0]] == [False, True]


@pytest.mark.parametrize(
    ("old", "new", "where", "words"),
    [
        ("price,spot", "prize,spot", "", "prize"),
        ("interruption_rate", "interuption_rate", "", "interuption_rate"),
        (",speed", ",sped", "", "sped"),
        ("2.4,0.8", "-2.4,0.8", "row 4, column price", "-2.4"),
        ("2.4,0.8", "2.4,3", "row 4", "3 is above 2.4"),
        ("0.8,0.1,1", "0.8,1.5,1", "row 4, column interruption_rate", "1.5"),
        ("0.8,0.1,1", "0.8,-0.1,1", "row 4, column interruption_rate", "-0.1"),
        ("2.4,0.8", ",0.8", "row 4, column price", "price"),
        ("2.4,0.8", "inf,0.8", "row 4, column price", "inf"),
        ("2.4,0.8", "much,0.8", "row 4, column price", "much"),
        (",8,32,0.6", ",,32,0.6", "row 3, column cores", "cores"),
        ("t4-4,4,", "t4-4,0.5,", "row 4, column gpus", "0.5"),
        ("t4-4,4,T4", "t4-4,4,", "row 4", "kind"),
        ("north,t4-4", "north,t4-1", "row 4", "twice"),
    ],
)
def test_a_mistake_is_named_with_its_row_and_column(tmp_path, old, new, where, words):
    file = written(tmp_path, SAMPLE.read_text().replace(old, new, 1))
    with pytest.raises(UserError) as error:
        read_instances(file, "north")
    assert where in str(error.value) and words in str(error.value) and str(file) in str(error.value)


@pytest.mark.parametrize(("old", "new", "words"), [("vCPUs", "vCPU", "vCPUs"), ("0.5,0.3", "-0.5,0.3", "-0.5")])
def test_a_mistake_in_a_foreign_catalogue_is_named(tmp_path, old, new, words):
    with pytest.raises(UserError) as error:
        read_instances(written(tmp_path, SKYPILOT.replace(old, new)), "us")
    assert words in str(error.value)


@pytest.mark.parametrize(("region", "words"), [(None, "eu, us"), ("uss", "'us'")])
def test_a_region_is_one_of_the_file(tmp_path, region, words):
    with pytest.raises(UserError) as error:
        read_instances(written(tmp_path, SKYPILOT), region)
    assert words in str(error.value)


def test_kinds_are_as_fast_as_the_logs_say_or_else_the_catalogue():
    types = read_instances(SAMPLE, "north")
    assert kind_speeds(types, ["t4", "V100"], None, "") == {
        "A100": ("t4", 6.0),
        "T4": ("t4", 1.0),
        "V100": ("V100", 1.0),
    }
    assert kind_speeds(types, [], "V100", "")["T4"] == ("", pytest.approx(1 / 3))
    with pytest.raises(UserError) as error:
        kind_speeds(types, [], None, "--gpu-kind")
    assert error.value.where == "--gpu-kind" and "A100, T4, V100" in str(error.value)


def test_speeds_of_kinds_are_fitted_with_the_step_time():
    rows = [
        {"kind": kind, "nodes": nodes, "gpus": gpus, "batch": batch, "sync_time": np.nan}
        | {"step_time": float(step_time(STEP, nodes, gpus, batch, speed))}
        for kind, speed in (("T4", 1.0), ("A100", 6.0))
        for nodes, gpus in ((1, 1), (1, 2), (1, 4), (2, 8))[: None if kind == "T4" else 3]
        for batch in (16.0, 64.0)
    ]
    found = fit(pd.DataFrame(rows))
    assert found.median_error < 0.01 and list(found.speeds) == ["T4", "A100"]
    assert found.speeds["T4"] == 1.0 and found.speeds["A100"] == pytest.approx(6.0, rel=0.02)


def test_the_expected_time_is_dalys_and_without_interruptions_the_work():
    hazard, work, restart = hazard_of(0.5), 1200.0, 300.0
    daly = np.exp(hazard * restart) * np.expm1(hazard * work) / hazard
    assert expected_time(work, work + restart, hazard) == pytest.approx(daly)
    assert expected_time(work, work + restart, 0.0) == work
    assert expected_time(work, work + restart, hazard_of(1.0)) == np.inf


@pytest.mark.parametrize(("rate", "first", "again"), [(0.1, 600.0, 700.0), (0.9, 900.0, 1000.0)])
def test_drawn_times_have_the_expected_mean(rate, first, again):
    hazard, cases = hazard_of(rate), np.ones(40_000)
    drawn = drawn_time(first * cases, again * cases, hazard, 3, np.random.default_rng(0))
    error = drawn.std() / len(drawn) ** 0.5
    assert drawn.mean() == pytest.approx(3 * float(expected_time(first, again, hazard)), abs=4 * error)
    assert drawn.min() == 3 * first  # no interruption
