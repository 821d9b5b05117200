"""Timings, and the epoch counts of the published simulations."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest
import yaml

from claim_programs import program
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.schema import validate
from schedlab.studies.adaptation.network.architecture import Architecture, ModelSettings, architecture
from schedlab.studies.adaptation.simulator.timing import (
    EpochSeconds,
    Timing,
    TimingSettings,
    own_macs,
    require_one_epoch,
)


def _values(repository: Path, name: str) -> dict:
    return yaml.safe_load((repository / "conf" / "gpu" / f"{name}.yaml").read_text())


@pytest.fixture
def timing(repository):
    """Load a shipped timing, with keys changed: timing(name, use_exact=False, ...)."""

    def load(file: str, samples: tuple[int | None, int | None] = (None, None), **changes) -> Timing:
        return Timing(validate(TimingSettings, _values(repository, file) | changes), *samples)

    return load


@pytest.fixture
def model(repository):
    def load(name: str) -> Architecture:
        values = yaml.safe_load((repository / "conf" / "model" / f"{name}.yaml").read_text())
        return architecture(validate(ModelSettings, values))

    return load


def _grown(base: Architecture, blocks: tuple[int, ...]) -> Architecture:
    for block in blocks:
        base = base.deepened(block)
    return base


def test_every_shipped_timing_is_valid_and_named_like_its_file(repository):
    given = {file.stem: yaml.safe_load(file.read_text()) for file in (repository / "conf" / "gpu").glob("*.yaml")}
    timings = {
        stem: values for stem, values in given.items() if "peak_flops" not in values
    }  # the others are devices of the study ramp
    assert {"gv100gl", "priced", "flops"} <= timings.keys()
    for stem, values in timings.items():
        assert validate(TimingSettings, values).name == stem


@pytest.mark.parametrize(
    ("name", "blocks", "train", "evaluation"),
    [
        ("convnet2", (), 9.552, 1.737),
        ("convnet2", (0, 1, 2), 9.552 + 0.284 + 0.282 + 0.134, 1.737 + 0.045 + 0.032 + 0.029),
        ("convnet2", (0, 0, 0, 0), 9.552 + 4 * 0.284, 1.737 + 4 * 0.045),
        ("convnet3", (1, 1), 9.422 + 2 * 0.258, 1.677 + 2 * 0.014),
    ],
)
def test_linear_formula(timing, model, name, blocks, train, evaluation):
    seconds = timing("gv100gl", use_exact=False).epoch_seconds(_grown(model(name), blocks))
    assert seconds.train == pytest.approx(train, abs=1e-9)
    assert seconds.evaluation == pytest.approx(evaluation, abs=1e-9)
    assert seconds.total == pytest.approx(train + evaluation, abs=1e-9)


def test_exact_seconds_come_first_and_only_where_there_are_any(timing, model):
    exact, formula = timing("gv100gl"), timing("gv100gl", use_exact=False)
    measured, never_measured = _grown(model("convnet2"), (0, 1)), _grown(model("convnet2"), (0, 0, 0, 0))
    assert exact.epoch_seconds(measured) == (10.088, 1.815)
    assert formula.epoch_seconds(measured) != (10.088, 1.815)
    assert exact.epoch_seconds(never_measured) == formula.epoch_seconds(never_measured)


def test_formula_fits_all_measured_medians_within_its_residual(timing):
    settings = timing("gv100gl").settings
    for name in ("convnet2", "convnet3"):
        entries = settings.models[name].exact
        assert len({entry.insertions for entry in entries}) == 20
        distance = [abs(settings.models[name].train.seconds(entry.insertions) - entry.train_s) for entry in entries]
        assert max(distance) == pytest.approx(settings.models[name].residual.train_s, abs=6e-4)


def test_measured_medians_are_the_published_ones(timing, shared_data):
    models = timing("gv100gl").settings.models
    with (shared_data / "cases" / "adaptation" / "epoch_seconds_gv100gl.csv").open() as file:
        published = {
            (row["model"].lower(), tuple(int(row[f"extra_at_{block}"]) for block in range(3))): (
                float(row["train_s_median"]),
                float(row["eval_s_median"]),
            )
            for row in csv.DictReader(file)
        }
    assert published == {
        (name, entry.insertions): (entry.train_s, entry.eval_s) for name in models for entry in models[name].exact
    }


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("use_exact", [False, True])
def test_epoch_counts_and_time_left_of_the_published_simulations(use_exact):
    """Acceptance check B12.2 on the runs that a simulation trains."""
    off, late = program("adaptation").clock_of_record(use_exact)
    assert off.total() == 640 and len(late) == 3 * 640
    if not use_exact:
        assert off == {0: 436, 1: 202, 2: 2}
        assert statistics.median(late) == pytest.approx(0.121, abs=5e-4)
        assert statistics.quantiles(late, n=20)[-1] == pytest.approx(0.866, abs=5e-3)
    assert off[0] >= 0.65 * 640
    assert off[0] + off[1] >= 0.99 * 640
    assert statistics.median(late) <= 0.2
    assert statistics.quantiles(late, n=20)[-1] <= 1.0


def test_priced_and_its_any_entry(timing, model):
    priced = timing("priced")
    for name in ("tiny8", "convnet2"):
        totals = [
            priced.epoch_seconds(_grown(model(name), blocks)).total for blocks in ((), (0,), (1,), (2,), (0, 1, 1, 2))
        ]
        assert totals == [10.0, 18.0, 14.0, 12.5, 28.5]
    with pytest.raises(UserError, match=r"priced.*large_convnet"):
        priced.epoch_seconds(model("large_convnet"))


def test_flops_charges_arithmetic_of_growth_and_widening(timing, model):
    flops = timing("flops", samples=(1000, 200))
    base = model("convnet2")
    assert flops.epoch_seconds(base).train == pytest.approx(2.0 + 2.0e-11 * 3 * 1000 * base.macs, abs=1e-6)
    assert flops.epoch_seconds(base).evaluation == pytest.approx(0.3 + 2.0e-11 * 200 * base.macs, abs=1e-6)
    assert flops.prices_widening and not timing("priced").prices_widening
    widened = flops.epoch_seconds(base.widened(0, 2.0)).total
    assert flops.epoch_seconds(base).total < widened < flops.epoch_seconds(base.widened(0, 4.0)).total
    assert flops.epoch_seconds(base).evaluation < timing("flops", samples=(1000, 201)).epoch_seconds(base).evaluation
    with pytest.raises(ValueError, match="train_samples"):
        timing("flops")


def test_request_outside_a_timing_names_the_timing_and_the_way_out(timing, model):
    gv100gl = timing("gv100gl")
    with pytest.raises(UserError) as caught:
        gv100gl.epoch_seconds(model("tiny8"))
    for told in ("conf/gpu/gv100gl.yaml: models", "tiny8", "gv100gl", "convnet2 or convnet3", "calibrate"):
        assert told in str(caught.value)
    with pytest.raises(UserError, match=r"32.*64"):
        gv100gl.check_batch_size(32)
    gv100gl.check_batch_size(64)
    timing("priced").check_batch_size(32)


def test_linear_timing_refuses_other_channels_under_a_known_name(timing, model):
    gv100gl, base = timing("gv100gl"), model("convnet2")
    assert own_macs(_grown(base, (0, 1, 2, 2))) == base.macs
    with pytest.raises(UserError, match="widened"):
        gv100gl.epoch_seconds(base.widened(0, 2.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "flops"}, "models"),
        ({"models": {}}, "models"),
        ({"modles": {}}, "'models'"),
        (
            {
                "models": {
                    "any": {
                        "train": {"base": 1.0, "per_insertion": [0.1]},
                        "evaluation": {"base": 1.0, "per_insertion": []},
                    }
                }
            },
            "per_insertion",
        ),
        (
            {
                "models": {
                    "any": {
                        "train": {"base": 0.0, "per_insertion": []},
                        "evaluation": {"base": 1.0, "per_insertion": []},
                    }
                }
            },
            "base",
        ),
        (
            {
                "models": {
                    "any": {
                        "train": {"base": 1.0, "per_insertion": [-0.1]},
                        "evaluation": {"base": 1.0, "per_insertion": [0.1]},
                    }
                }
            },
            "per_insertion",
        ),
    ],
)
def test_impossible_timings_are_refused(repository, change, message):
    with pytest.raises(UserErrors, match=message):
        validate(TimingSettings, _values(repository, "priced") | change)


def test_budget_shorter_than_an_epoch_is_the_users_error():
    with pytest.raises(UserError) as caught:
        require_one_epoch(12.5, 3.0, EpochSeconds(8.5, 1.5), "scenario early: budget")
    assert (
        "scenario early: budget" in str(caught.value) and "9.5 s" in str(caught.value) and "10 s" in str(caught.value)
    )
    require_one_epoch(13.0, 3.0, EpochSeconds(8.5, 1.5))
