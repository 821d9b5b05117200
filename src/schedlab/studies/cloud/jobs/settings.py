"""Typed settings of the searches at equal budget, and the function of each search by name; imports no heavy package."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting

ROOM = "schedlab.studies.cloud.jobs"


class SearchSettings(Settings):
    """A search for the allocation of each job in a scenario of several jobs, by trainings of the job."""

    trainings: int = setting(64, doc="maximum trainings of a job", unit="trainings", ge=1, le=1_000_000)


SEARCHES = {
    **{
        f"search_{method}": f"{ROOM}.searches:MAKERS[search_{method}]"
        for method in ("random", "gaussian_process", "parzen", "halving", "fitted", "known_model")
    },
    "search_reinforce": f"{ROOM}.learning:make_reinforce",
}
