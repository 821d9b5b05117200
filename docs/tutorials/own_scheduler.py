# %% [markdown]
# # Your own scheduler in embedded Batsim
#
# Goal: write a scheduler on PyBatsim's interface, run it in the embedded simulator, and compare it with others.
#
# This notebook writes a platform and a workload itself; [Batsim](../reference/batsim.md) explains how to make them from
# traces.

# %%
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from schedlab.batsim.files.results import read_jobs
from schedlab.batsim.running import Inputs, Limits, simulate

folder = Path(tempfile.mkdtemp(prefix="own-scheduler-"))
platform, workload = folder / "platform.xml", folder / "workload.json"
hosts = "\n".join(f'<host id="node-{number}" coordinates="0 0 0" speed="1Gf"/>' for number in range(32))
platform.write_text(f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="main" routing="Vivaldi">
<host id="master_host" coordinates="0 0 0" speed="1Gf"/>
{hosts}
</zone>
</platform>
""")

rng = np.random.default_rng(1)
submit, seconds = np.cumsum(rng.exponential(100, 200)).round(), rng.lognormal(5.5, 1.2, 200).round() + 10
profiles = {f"sleep-{number}": {"type": "delay", "delay": length} for number, length in enumerate(seconds)}
jobs = [
    {
        "id": str(number),
        "subtime": submit[number] + 1,
        "res": int(2 ** rng.integers(0, 5)),
        "walltime": seconds[number] * rng.uniform(1.1, 4),
        "profile": f"sleep-{number}",
    }
    for number in range(200)
]
workload.write_text(json.dumps({"nb_res": 32, "jobs": jobs, "profiles": profiles}))

# %% [markdown]
# A scheduler is a class with methods that the simulator calls at submissions and ends of jobs. This one starts the
# waiting job that asks for the fewest hosts first. It is saved as a file, as it would be for Batsim itself.

# %%
SCHEDULER = '''
from batsim.batsim import BatsimScheduler
from procset import ProcSet


class NarrowFirst(BatsimScheduler):
    """Starts the job that asks for the fewest hosts first, as long as it fits."""

    def onSimulationBegins(self):
        self.free, self.queue = set(range(self.bs.nb_compute_resources)), []

    def onJobSubmission(self, job):
        self.queue.append(job)

    def onJobCompletion(self, job):
        self.free |= set(job.allocation)

    def onNoMoreEvents(self):
        self.queue.sort(key=lambda job: (job.requested_resources, job.submit_time))
        while self.queue and self.queue[0].requested_resources <= len(self.free):
            job = self.queue.pop(0)
            hosts = sorted(self.free)[: job.requested_resources]
            self.free -= set(hosts)
            job.allocation = ProcSet(*hosts)
            self.bs.execute_jobs([job])
'''
own = folder / "narrow_first.py"
own.write_text(SCHEDULER)

# %%
rows, jobs = {}, {}
for name, scheduler in {
    "NarrowFirst": str(own),
    "fcfs": "fcfs",
    "easy": "easy",
    "conservative": "conservative",
}.items():
    prefix = str(folder / name)
    rows[name] = simulate(Inputs(platform, (workload,), prefix), scheduler, limits=Limits(scheduler=None))
    jobs[name] = read_jobs(prefix)
columns = ["nb_jobs_success", "makespan", "mean_waiting_time", "mean_slowdown", "max_waiting_time"]
print(pd.DataFrame(rows).T[columns].round(1).to_string())

# %% [markdown]
# `simulate` writes the same files as Batsim, with names that begin with the prefix; `read_jobs` reads the jobs with
# their hosts. With `fcfs`, a job that asks for many hosts and is first in the queue keeps all others waiting.

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, table in jobs.items():
    waits = (table["start"] - table["submit"]).groupby(table["hosts"]).mean() / 60
    axes.plot(waits.index, waits, marker="o", label=name)
axes.set(xscale="log", xlabel="hosts of the job", ylabel="mean wait (min)")
axes.legend()
plt.show()

# %% [markdown]
# On the command line,
# `schedlab sim run -w workload.json -p platform.xml --scheduler narrow_first.py --export NarrowFirst` does the same. To
# compare the class with other policies in the study hetero, name it [under `rules:` of a
# scenario](../reference/hetero_scenarios.md#scheduler).
