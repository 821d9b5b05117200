from __future__ import annotations

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.simulator.ranking import noise_from_tail, reliability, top_probability


def simulated(
    stream: np.random.Generator, replicates: int, spread: float, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """True means of 64 sequences, and results with noise and a shift common to each replicate."""
    truth = stream.normal(0, spread, 64)
    shift = stream.normal(0, 0.05, (replicates, 1))
    return truth, truth + shift + stream.normal(0, noise, (replicates, 64))


@pytest.mark.parametrize(("spread", "noise"), [(0.02, 0.01), (0.01, 0.01), (0.005, 0.02)])
def test_parts_of_the_variance_are_found_again(spread: float, noise: float) -> None:
    stream = np.random.default_rng(1)
    found = [reliability(simulated(stream, 3, spread, noise)[1]) for _ in range(200)]
    share = spread**2 / (spread**2 + noise**2)
    assert np.mean([part.sd_residual**2 for part in found]) == pytest.approx(noise**2, rel=0.05)
    assert np.mean([part.sd_sequence**2 for part in found]) == pytest.approx(spread**2, rel=0.15)
    assert np.mean([part.share for part in found]) == pytest.approx(share, abs=0.04)
    assert np.mean([part.correlation for part in found]) == pytest.approx(share, abs=0.04)


def test_a_shift_of_a_whole_replicate_is_no_noise() -> None:
    results = np.array([[1.0, 2.0, 4.0], [1.5, 2.5, 4.5]])
    parts = reliability(results)
    assert parts.sd_residual == pytest.approx(0, abs=1e-12)
    assert (parts.share, parts.correlation) == (pytest.approx(1), pytest.approx(1))


def test_one_replicate_cannot_tell_its_noise() -> None:
    with pytest.raises(UserError, match="simulate more replicates"):
        reliability(np.zeros((1, 64)))


def test_probabilities_to_be_near_the_top_are_calibrated() -> None:
    stream = np.random.default_rng(2)
    told, true = [], []
    for repeat in range(150):
        truth, results = simulated(stream, 3, 0.01, 0.012)
        chance = top_probability(results, 5, seed=repeat, draws=500)
        assert chance.sum() == pytest.approx(5)
        told.append(chance)
        true.append(np.argsort(np.argsort(-truth)) < 5)
    told, true = np.concatenate(told), np.concatenate(true)
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.0)):
        here = (told >= low) & (told <= high)
        assert true[here].mean() == pytest.approx(told[here].mean(), abs=0.05)


def test_without_noise_the_ranking_is_certain_and_without_signal_it_says_nothing() -> None:
    results = np.stack([np.arange(10.0)] * 2)
    assert top_probability(results, 3, seed=0).tolist() == [0] * 7 + [1] * 3
    assert top_probability(np.zeros((2, 10)), 3, seed=0) == pytest.approx(np.full(10, 0.3), abs=0.05)
    assert (top_probability(results, 10, seed=0) == 1).all()


def test_the_noise_of_flat_tails_is_found_from_their_last_three_values() -> None:
    tails = np.random.default_rng(4).normal(0.7, 0.013, (4000, 3))
    assert noise_from_tail(tails[:, -1], tails.mean(1)) == pytest.approx(0.013, rel=0.05)
