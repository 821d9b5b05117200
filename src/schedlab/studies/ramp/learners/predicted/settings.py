"""Typed settings of the learner `predicted_rollouts`."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting
from schedlab.config.settings import MOST, Names
from schedlab.studies.ramp.scenario import LARGEST_DEGREE


class PredictedSettings(Settings):
    """The learner `predicted_rollouts`, which fits a model of durations and decides by rollouts with its predictions.

    A phase's steps are the number of jobs of each of its scenarios whose limits and gaps are stored.
    """

    leave_out: Names = setting((), doc="names of graphs of the scenarios to whose durations the model is not fitted")
    degrees: tuple[int, ...] = setting(
        (2, 4, 6, 8, 16), doc="fixed degrees with which rollouts may continue, if legal", min_length=1
    )
    samples: int = setting(48, doc="samples per rollout, the same for all actions", ge=1, le=MOST)
    horizon: int = setting(48, doc="arrivals in a rollout", unit="arrivals", ge=1, le=LARGEST_DEGREE)
    prior: int = setting(
        8,
        doc="weight of the stored limits and gaps compared with those of the jobs that arrived in the episode",
        unit="jobs",
        ge=0,
        le=MOST,
    )
    watch: bool = setting(
        False, doc="whether the durations of jobs that ended in the episode replace predictions for their graphs"
    )
