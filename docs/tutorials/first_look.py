# %% [markdown]
# # A first look at results
#
# Goal: read the results of all studies as pandas tables, and draw two figures of your own.
#
# This notebook reads the recorded results of the repository, in `docs/results`. After `make figures`, set
# `folder = "../../results/small"` to look at your own run.

# %%
import matplotlib.pyplot as plt

import schedlab.results

folder = "../results"
run = schedlab.results.load(folder)
print(run.studies)

# %% [markdown]
# The table `headline` holds the answers to the questions of the studies: a policy, its best rival, the ratio of their
# scores on test units with its interval, and the verdict. Each question has a row for each of its scenarios and, if it
# has several, a row `a+b` over all of them. In these questions lower scores are better, so a ratio below 1 favours the
# policy. `recipe` names the way in which the policy was learned. An interval is missing (NaN) if there is only one
# block of test units.

# %%
answers = run.headline.query("group == 'all'")
columns = ["study", "scenario", "recipe", "ratio", "ci_low", "ci_high", "verdict"]
print(answers[columns].round(3).to_string(index=False))

# %% [markdown]
# The table `summary` has a row for each scenario, policy, metric and split (validation or test). The next cell prints
# the twelve best policies of one scenario. The units of the study `cloud` are four preferences (weights of time, cost
# and use). Their scores differ much, so the intervals of the means are wide. A policy with fewer than five seeds has no
# interval, and neither has a policy without seeds on fewer than five units.

# %%
rows = run.summary.query("study == 'cloud' and scenario == 'cifar10' and metric == 'objective' and split == 'test'")
rows = rows.sort_values("value")
best = rows[["policy", "kind", "value", "ci_low", "ci_high", "seeds", "units"]].head(12)
print(best.round(4).to_string(index=False))

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.barh(best["policy"], best["value"], color=["C1" if kind == "learned" else "C0" for kind in best["kind"]])
axes.invert_yaxis()
axes.set(xlabel="objective (lower is better)", title="cifar10: the twelve best policies (orange: learned)")
plt.show()

# %% [markdown]
# The next figure shows learning curves, one line for each seed. The table `curves` states the budget used up to each
# point in the columns `decisions`, `episodes` and `trainings`. Where a curve has several points with the same number of
# episodes, their mean is drawn.

# %%
curve = run.curves.query("study == 'cloud' and policy == 'reinforce-cifar10' and metric == 'objective'")
curve = curve[curve["preference"] == "balanced"]
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for seed, points in curve.groupby("policy_seed"):
    means = points.groupby("episodes")["value"].mean()
    axes.plot(means.index, means, label=f"seed {seed}")
axes.set(xlabel="training episodes", ylabel="objective", title="reinforce-cifar10, balanced preference")
axes.legend()
plt.show()

# %% [markdown]
# Your own run has all scores, so `compare` can compare any two policies. It returns their paired difference on the same
# test units, with an interval if there are at least five seeds, or five blocks for policies without seeds (not run
# here):
#
# ```python
# own = schedlab.results.load("../../results/small")
# own.compare("reinforce", "goodput_greedy", study="cloud")
# ```
#
# Recorded results have no scores, but the table `comparisons` holds such differences for two pairs of each policy: with
# the study's baseline (here `goodput_greedy`), and with the rule or planner that is best on validation units (here
# `fitted_logs`). A negative difference means that the policy is better. `win_rate` is the share of units on which it is
# better; a tie counts half.

# %%
pairs = run.comparisons.query("study == 'cloud' and scenario == 'cifar10' and metric == 'objective'")
columns = ["policy", "baseline", "difference", "ci_low", "ci_high", "win_rate"]
print(pairs[pairs["policy"].isin(best["policy"])][columns].round(4).to_string(index=False))

# %% [markdown]
# [Tables of results](../reference/tables.md) explains all columns.
