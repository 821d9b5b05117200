# %% [markdown]
# # A trace under five rules
#
# Goal: simulate one trace under five rules of the study [batch](../studies/batch.md), compare the waits, and draw when
# and on which nodes each job ran.
#
# The trace is drawn from the model of Lublin and Feitelson, so nothing has to be downloaded.
# `schedlab.workloads.swf.read_swf("FILE.swf.gz")` reads a trace of your own.

# %%
import matplotlib.pyplot as plt
import pandas as pd

from schedlab.figures.panels.timeline import boxes
from schedlab.studies.batch.jobs import jobs_of, machine_of
from schedlab.studies.batch.metrics import job_table, measures
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.workloads.lublin import LublinSettings, lublin

settings = LublinSettings(jobs=150, processors=64, load=0.9, estimates={"model": "factor", "factor": 3.0})
trace = lublin(settings, seed=3)
print(trace.jobs[["job_id", "submit", "run", "time_requested", "procs_allocated"]].head())

# %% [markdown]
# Each rule orders the queue. If the first job does not fit, EASY backfilling starts later jobs that do not delay it.
# Rules see the requested time of a job, never its run time. `track_nodes` also records the nodes of each job.

# %%
machine = machine_of(trace)
jobs = jobs_of(trace, machine)
rules = ["fcfs", "sjf", "smallest", "wfp3", "f1"]
schedules = {rule: simulate(jobs, machine, rule, "easy", track_nodes=True) for rule in rules}
columns = ["avg_bsld", "median_bsld", "max_wait", "util_makespan"]
table = pd.DataFrame({rule: measures(schedule, machine) for rule, schedule in schedules.items()}).T
print(table[columns].astype(float).round(2))

# %% [markdown]
# `avg_bsld` is the mean bounded slowdown. The bounded slowdown of a job is its time from submission to end divided by
# its run time, where run times below 10 s count as 10 s; it is at least 1.
#
# In the Gantt chart, each row is a node and each box a job; a darker job waited longer relative to its run time.

# %%
figure, panels = plt.subplots(len(rules), 1, figsize=(9, 11), sharex=True, sharey=True, layout="constrained")
for axes, (rule, schedule) in zip(panels, schedules.items(), strict=True):
    shades = plt.get_cmap("viridis_r")(job_table(schedule)["bsld"].clip(1, 20) / 20)
    ends = schedule.start + schedule.jobs.run
    drawn = [(job, node) for job, nodes in enumerate(schedule.held) for node in nodes]
    places = [(schedule.start[job] / 3600, ends[job] / 3600, node, node + 1) for job, node in drawn]
    boxes(axes, places, [shades[job] for job, _ in drawn], linewidths=0)
    axes.set(ylabel="node", title=f"{rule}: mean bounded slowdown {table.loc[rule, 'avg_bsld']:.1f}")
    axes.autoscale_view()
panels[-1].set_xlabel("time (h)")
plt.show()

# %% [markdown]
# One trace proves little. The study compares policies on many windows of several traces, with intervals:
# [compare fairly](../guide/compare_fairly.md).
