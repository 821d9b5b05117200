"""The model beside the simulator agrees with it: energy, and when each job has done its work."""

from __future__ import annotations

import numpy as np
import pytest
from small_clusters import cluster, episode

from schedlab.studies.hetero.env.settings import ALL_PAIRS

PLATFORMS = {"learning": 4, "gaia": 200}


def jobs(largest: int, seed: int) -> list[dict]:
    """Sixty jobs, the first at 0, which ask for exactly what they need."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(60):
        job = {
            "subtime": 0 if number < 3 else int(rng.integers(60)),
            "res": int(rng.integers(1, largest + 1)),
            "time": int(rng.integers(1, 30)),
        }
        made.append(job | {"bw": int(rng.choice([4, 8, 12, 16, 20, 24])), "mem": int(rng.integers(0, 9000))})
    return made


CASES = [(name, names, "step") for name in PLATFORMS for names in ("padded", "bare")]
CASES += [("gaia", "bare", "proportional"), ("gaia", "bare", "fair")]


@pytest.mark.parametrize(("name", "names", "bandwidth"), CASES)
def test_energy_and_progress_agree(name, names, bandwidth):
    run = episode(
        jobs(PLATFORMS[name], 5),
        cluster(name, names=names),
        physics={"bandwidth": bandwidth},
        objective="energy_consumption",
        time_weighted=True,
        void=False,
    )
    rng, model, left = np.random.default_rng(2), run.system.model, {}
    give_back = model.give_back

    def noting(job):
        left[job] = float(model.remaining()[model.running[job].slot])
        return give_back(job)

    model.give_back = noting
    shares = []
    while run.advance():
        run.decide(int(rng.integers(len(ALL_PAIRS))))
        shares.append(len(model.overuse.open))
    scores = run.scores()
    assert max(shares) > 0, "no processor was ever over-subscribed"
    assert len(left) == scores["nb_jobs_finished"] > 50
    assert max(left.values()) < 1e-5
    assert -sum(run.history.rewards) == pytest.approx(scores["consumed_joules"], rel=1e-6)
    assert model.busy_cores == 0 and not model.running
