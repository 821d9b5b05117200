"""How resources/step_times/synthetic.csv was drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd

from schedlab.config.seeds import generator
from schedlab.studies.cloud.example import STEP
from schedlab.studies.cloud.model.step_time import StepParameters, gradient_time, step_time

PLACEMENTS = ("1", "2", "3", "4", "11", "12", "22", "23", "44", "444", "4444")
BATCHES = (32, 64, 128, 256)
SPREAD = 0.03  # standard deviation of the logarithm of a measured time


def synthetic_step_times(seed: int = 0) -> pd.DataFrame:
    """Return step times drawn from the example's model, as a user would measure them (resources/step_times)."""
    rng, step = generator(seed, "synthetic step times"), StepParameters(**STEP)
    rows = []
    for placement in PLACEMENTS:
        gpus = sum(map(int, placement))
        for batch in BATCHES:
            gradient, whole = gradient_time(step, batch), step_time(step, len(placement), gpus, batch)
            factor = float(np.exp(SPREAD * rng.standard_normal()))
            times = {
                "step_time": round(float(whole) * factor, 6),
                "sync_time": round(float(whole - gradient) * factor, 6),
            }
            rows.append({"placement": placement, "local_bsz": batch, **times})
    return pd.DataFrame(rows)
