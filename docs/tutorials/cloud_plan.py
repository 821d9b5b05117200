# %% [markdown]
# # Plan a training job in the cloud
#
# Goal: from logs of short trial runs, find the cheapest allocation that meets a deadline.
#
# This notebook generates the log, so nothing has to be measured. On the command line,
# `schedlab cloud plan log.csv --deadline 30m --max 8,64,128 --gpus-per-node 8` makes the same plan from this log.
# [Plan an allocation](../guide/plan_an_allocation.md) describes the command and the columns of a log.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from schedlab.studies.cloud.model.plan import forecast, read_job
from schedlab.studies.cloud.optimize.plan import plan, text
from schedlab.studies.cloud.optimize.plan_command import resources_of
from schedlab.studies.cloud.optimize.settings import LimitSettings

rng = np.random.default_rng(0)
rows = []
for gpus, cores in [(1, 4), (1, 8), (2, 8), (2, 16), (4, 16), (4, 32), (8, 32), (8, 64)]:
    for epoch in range(1, 4):
        step = 0.02 + 0.1 / gpus + 0.25 / cores + 0.004 * np.log2(gpus)  # s for a batch of 256 samples
        seconds = 50000 / 256 * step * rng.lognormal(sigma=0.02)
        rows.append({"gpu_count": gpus, "cpu_count": cores, "epoch": epoch, "epoch_time": seconds})
log = pd.DataFrame(rows).assign(batch_size=256, data_count=50000, total_epochs=60, memory_used_gb=12.0)
log["throughput"] = log["data_count"] / log["epoch_time"]
file = Path(tempfile.mkdtemp(prefix="cloud-plan-")) / "log.csv"
log.to_csv(file, index=False)
print(log.groupby(["gpu_count", "cpu_count"])["epoch_time"].mean().round(1))

# %% [markdown]
# `forecast` fits the performance model to the log and predicts time and cost on every allocation. The prices are those
# of the guide, in $/h for a GPU, a core and a GB. Every allocation has 15 GB: the 12 GB of the log and a reserve of a
# fifth, rounded up. *Met with* is the probability of meeting the deadline. It is 0 for the cheapest allocation,
# although its interval begins below 30 min, because the fitted model itself predicts a longer time.

# %%
measured = read_job([file], gpus_per_node=8)
allowed = resources_of(measured, (8, 64, 128), (2.5, 0.1, 0.02))
predicted = forecast(measured, allowed, seed=0)
found = plan(predicted, LimitSettings(time_max=1800.0), probability=0.9)
print(text(found))

# %% [markdown]
# The front joins the allocations that no other one beats in both time and cost.

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.loglog(predicted.time, predicted.cost, ".", color="0.7", label="allocations")
axes.loglog(predicted.time[found.front], predicted.cost[found.front], "-o", markersize=4, label="front")
axes.loglog(predicted.time[found.chosen], predicted.cost[found.chosen], "*", markersize=14, label="plan")
axes.axvline(1800, color="C3", linestyle="--", label="deadline")
axes.set(xlabel="training time (s)", ylabel="cost ($)")
axes.legend()
plt.show()

# %% [markdown]
# A tighter deadline can cost more, or be impossible:

# %%
for minutes in (60, 30, 20, 10):
    again = plan(predicted, LimitSettings(time_max=60.0 * minutes), probability=0.9)
    if again.chosen is None:
        print(f"{minutes} min: {again.reason}")
    else:
        gpus, cores, memory = predicted.allocations[again.chosen]
        cost = predicted.cost[again.chosen]
        print(f"{minutes} min: {gpus:g} GPUs, {cores:g} cores, {memory:g} GB, about {cost:.2f} $")
