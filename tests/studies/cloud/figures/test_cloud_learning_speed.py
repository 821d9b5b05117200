"""Episodes until a share of a gain, by hand."""

from __future__ import annotations

from schedlab.studies.cloud.figures.comparisons import episodes_until

POINTS = [(64, 1.9), (128, 1.2), (192, 1.06), (256, 1.04), (320, 1.1)]


def test_the_first_episode_that_is_near_enough():
    assert episodes_until(POINTS, random=2.0, final=1.0) == 256
    assert episodes_until(POINTS, random=2.0, final=1.0, share=0.9) == 192
    assert episodes_until(POINTS, random=2.0, final=1.0, share=0.05) == 64


def test_never_is_told():
    assert episodes_until(POINTS, random=2.0, final=0.5) is None
    assert episodes_until([], random=2.0, final=1.0) is None
