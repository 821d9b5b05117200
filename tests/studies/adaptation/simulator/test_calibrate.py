"""Calibration with an injected measurement, and real epochs without a look at its seconds."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.adaptation.data.datasets import DataSet
from schedlab.studies.adaptation.network.architecture import Architecture, ModelSettings, architecture
from schedlab.studies.adaptation.simulator.calibrate import (
    CalibrateSettings,
    architectures_to_measure,
    calibrate,
    epoch_measure,
    fit,
    write_timing,
)
from schedlab.studies.adaptation.simulator.timing import Timing, TimingSettings


@pytest.fixture
def tiny8(repository) -> Architecture:
    return architecture(
        validate(ModelSettings, yaml.safe_load((repository / "conf" / "model" / "tiny8.yaml").read_text()))
    )


def _linear(architecture: Architecture) -> tuple[float, float]:
    n = architecture.insertions
    return 2.0 + 0.5 * n[0] + 0.25 * n[1] + 0.125 * n[2], 0.5 + 0.0625 * n[0]


def test_measures_two_points_for_each_price(tiny8):
    insertions = [candidate.insertions for candidate in architectures_to_measure(tiny8)]
    assert insertions == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0), (0, 2, 0), (0, 0, 2)]


def test_recovers_a_linear_machine_and_ignores_warm_up(tiny8):
    calls: dict[tuple, int] = {}

    def measure(candidate: Architecture) -> tuple[float, float]:
        calls[candidate.insertions] = calls.get(candidate.insertions, 0) + 1
        slow = 100.0 if calls[candidate.insertions] <= 2 else 1.0  # the first epochs of a process
        return tuple(slow * seconds for seconds in _linear(candidate))

    found = calibrate(tiny8, measure, "mine", "a test", data="digits", settings=CalibrateSettings(epochs=3, warm_up=2))
    assert np.allclose(found.errors, 0) and np.allclose(found.quartiles[0], found.quartiles[1])
    timing = found.timing
    assert set(calls.values()) == {5}
    model = timing.models["tiny8"]
    assert model.train.base == pytest.approx(2.0) and model.train.per_insertion == pytest.approx((0.5, 0.25, 0.125))
    assert model.evaluation.base == pytest.approx(0.5) and model.evaluation.per_insertion == pytest.approx(
        (0.0625, 0.0, 0.0)
    )
    assert model.residual.train_s <= 1e-5 and len(model.exact) == 7
    assert "digits" in timing.source


def test_the_median_shrugs_off_a_disturbed_epoch_and_the_residual_shows_bending(tiny8):
    count = 0

    def measure(candidate: Architecture) -> tuple[float, float]:
        nonlocal count
        count += 1
        train, evaluation = _linear(candidate)
        disturbed = 50.0 if 8 <= count <= 14 else 0.0  # the second of three rounds
        bent = 0.4 if candidate.insertions == (2, 0, 0) else 0.0
        return train + disturbed + bent, evaluation

    settings = CalibrateSettings(epochs=3, warm_up=0)
    model = calibrate(tiny8, measure, "mine", "a test", settings=settings).timing.models["tiny8"]
    assert 1.8 < model.train.base < 2.2
    assert 0.05 < model.residual.train_s < 0.4
    assert model.residual.eval_s <= 1e-5


def test_no_insertion_gets_a_negative_price():
    counts = np.array([[0, 0], [1, 0], [0, 1], [2, 0]], dtype=float)
    cost, residual = fit(counts, np.array([1.0, 0.9, 1.5, 0.8]))
    assert cost["per_insertion"][0] == 0.0 and cost["per_insertion"][1] > 0.4
    assert residual > 0.05


def test_seconds_that_make_no_sense_are_refused(tiny8):
    with pytest.raises(UserError, match="idle machine"):
        calibrate(tiny8, lambda _: (0.0, 0.0), "mine", "a test")


def test_the_spread_of_epochs_gives_the_error_of_each_price(tiny8):
    rng = np.random.default_rng(1)

    def measure(candidate: Architecture) -> tuple[float, float]:
        train, evaluation = _linear(candidate)
        return train + 0.01 * rng.standard_normal(), evaluation

    found = calibrate(tiny8, measure, "mine", "a test", settings=CalibrateSettings(epochs=400, warm_up=0))
    columns = np.column_stack([np.ones(7), [a.insertions for a in architectures_to_measure(tiny8)]])
    expected = 0.01 * np.sqrt(np.diag(np.linalg.inv(columns.T @ columns))[1:] / 400)  # of least squares
    assert np.allclose(found.errors[0], expected, rtol=0.15) and np.allclose(found.errors[1], 0)
    assert (found.quartiles[0] <= found.quartiles[1]).all()


def test_a_written_timing_reads_back_and_covers_its_model(tiny8, tmp_path):
    timing = calibrate(tiny8, _linear, "mine", "a test: with: colons").timing
    write_timing(tmp_path / "mine.yaml", timing)
    again = validate(TimingSettings, yaml.safe_load((tmp_path / "mine.yaml").read_text()))
    assert again == timing
    assert Timing(again).epoch_seconds(tiny8.deepened(2).deepened(1)).train == pytest.approx(2.375, abs=1e-5)
    with pytest.raises(UserError, match="mine"):
        Timing(again).epoch_seconds(tiny8.widened(0, 2.0))


@pytest.fixture
def tiny_data() -> DataSet:
    rng = np.random.default_rng(0)
    splits = []
    for count in (960, 320, 10):
        splits += [rng.random((count, 1, 8, 8), dtype=np.float32), rng.integers(0, 10, count)]
    return DataSet("tiny", 10, *splits)


def _calibrated(device: str, base: Architecture, data: DataSet, attempts: int) -> TimingSettings:
    """A timing measured now; a busy machine may give seconds that are refused, and is asked again."""
    settings = CalibrateSettings(epochs=8 - attempts, warm_up=1)
    try:
        return calibrate(base, epoch_measure(data, device), "here", device, data=data.name, settings=settings).timing
    except UserError as error:
        if attempts == 1 or "idle machine" not in str(error):
            raise
        return _calibrated(device, base, data, attempts - 1)


def _calibrates_on(device: str, base: Architecture, data: DataSet) -> None:
    timing = _calibrated(device, base, data, attempts=5)
    assert Timing(timing).epoch_seconds(base).total > 0
    assert len(timing.models["tiny8"].exact) == 7


def test_calibrates_on_the_processor(tiny8, tiny_data):
    pytest.importorskip("torch")
    _calibrates_on("cpu", tiny8, tiny_data)


def test_calibrates_on_a_gpu(tiny8, tiny_data):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    _calibrates_on("cuda", tiny8, tiny_data)


def test_model_that_does_not_take_the_data_is_the_users_error(repository, tiny_data):
    pytest.importorskip("torch")
    values = yaml.safe_load((repository / "conf" / "model" / "convnet2.yaml").read_text())
    with pytest.raises(UserError, match="convnet2 takes images"):
        epoch_measure(tiny_data, "cpu")(architecture(validate(ModelSettings, values)))
