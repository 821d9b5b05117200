"""Tables of the documentation that come from runs, made from docs/results/*.csv and the ledgers of conf/claims/.

    python benchmarks/page_tables.py          # brings every page up to date
    python benchmarks/page_tables.py --check  # says which pages are not; status 1 where one is not

A table stands between two comments, `<!-- from docs/results/FILE: NAME -->` and `<!-- end of NAME -->`; NAME is a key of TABLES. A test
holds every page to what this program writes. What a table says beside the numbers of runs (names, goals, published values that are in no
ledger) stands here with it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pandas as pd
from scale_tables import scale_limits, scale_measured, scale_slurm, scale_worked_out

from schedlab.config.claims import read_claims

REPOSITORY = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- from (?P<source>\S+): (?P<name>\w+) -->\n).*?(<!-- end of (?P=name) -->)", flags=re.S)
TRACES = {"sdsc": "SDSC-SP2", "hpc2n": "HPC2N", "lublin-1": "like Lublin-1", "lublin-2": "like Lublin-2", "kth": "KTH-SP2"}


def page(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """Return a table in Markdown; `align`: a letter a column, r for right, all others left."""
    align = align or "l" * len(header)
    rule = ["---:" if side == "r" else "---" for side in align]
    lines = ["|".join(["", *(f" {cell} " if cell else " " for cell in row), ""]) for row in [header, *rows]]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])


def share(value: float, digits: int = 3) -> str:
    """Return a number below 1 as the pages write it: .179, and .181 for a recorded .1805."""
    return str(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)).removeprefix("0")


def between(row: pd.Series, name: str = "ratio") -> str:
    """Return a ratio with its interval: 0.84 [0.76, 0.94]."""
    return f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"


def percent(value: float) -> str:
    """Return a share as '63 %'."""
    return f"{100 * value:.0f} %"


def seeds_of(text: str) -> list[float]:
    """Return the numbers of a column `by_seed`."""
    return [float(number) for number in str(text).split()]


def one(rows: pd.DataFrame, **values: object) -> pd.Series:
    """Return the one row that has some values."""
    for name, value in values.items():
        rows = rows[rows[name] == value]
    (row,) = (row for _, row in rows.iterrows())
    return row


def batch_search(results: Path) -> str:
    """Searched linear priorities on the test windows of their own traces."""
    found = pd.read_csv(results / "batch_search.csv")
    prototype = {"sdsc none": "0.76 to 0.84", "hpc2n none": "0.40 to 0.63", "lublin-1 none": "0.94, 0.95", "lublin-2 none": "0.75"}
    prototype |= {"sdsc easy": "0.69, 0.71", "hpc2n easy": "0.41, 0.54"}
    header = ["trace", "windows", "seeds", "chosen rule", "in hindsight", "planner", "searched", "to chosen", "to hindsight", "to planner"]
    rows = []
    for key in prototype:
        trace, backfill = key.split()
        own = found[(found["trace"] == trace) & (found["learned_on"] == trace) & (found["backfill"] == backfill)]
        chosen, best, planner = (one(own, against=name) for name in ("chosen by mean", "hindsight", "planner"))
        rows.append([*_compared(trace, backfill, chosen, best, planner, f"{chosen['mean']:.1f}"), *_also(chosen), prototype[key]])
    return page([*header, "without worst", "geometric", "won", "prototype"], rows, "l" + 13 * "r")


def _compared(trace: str, backfill: str, chosen: pd.Series, best: pd.Series, planner: pd.Series, ours: str) -> list[str]:
    """The first ten cells of a row of the tables about searches and rollouts."""
    name = TRACES[trace] + (", EASY" if backfill == "easy" else "")
    rules = [f"`{row['rule']}` {row['baseline_mean']:.1f}" for row in (chosen, best)]
    counts = [f"{chosen['windows']}", f"{chosen['seeds']}"]
    return [name, *counts, *rules, f"{planner['baseline_mean']:.1f}", ours, *map(between, (chosen, best, planner))]


def _also(chosen: pd.Series) -> list[str]:
    return [f"{chosen['ratio_without_worst']:.2f}", f"{chosen['geometric_ratio']:.2f}", percent(chosen["win_rate"])]


def batch_matrix(results: Path) -> str:
    """Ratio to the best rule in hindsight of what was learned on one trace and tested on another."""
    found = pd.read_csv(results / "batch_search.csv")
    found = found[found["backfill"] == "none"]
    rows = []
    for learned in ("sdsc", "hpc2n", "lublin-1", "lublin-2"):
        own = [one(found, trace=trace, learned_on=learned, against="hindsight") for trace in TRACES]
        rows.append([TRACES[learned], *(f"{row['ratio']:.2f}" for row in own)])
    planners = [one(found, trace=trace, learned_on="sdsc", against="planner")["baseline_mean"] for trace in TRACES]
    rules = [one(found, trace=trace, learned_on="sdsc", against="hindsight")["baseline_mean"] for trace in TRACES]
    rows.append(["nothing (the planner)", *(f"{planner / rule:.2f}" for planner, rule in zip(planners, rules, strict=True))])
    return page(["learned on", *TRACES.values()], rows, "lrrrrr")


ROLLOUTS = [(trace, backfill) for backfill in ("none", "easy") for trace in ("sdsc", "hpc2n", "lublin-1", "lublin-2")]


def batch_rollouts(results: Path) -> str:
    """Rollouts with predicted run times on the test windows of their own traces."""
    found = pd.read_csv(results / "batch_rollouts.csv")
    header = [
        "trace",
        "windows",
        "seeds",
        "chosen by mean",
        "by mean log",
        "in hindsight",
        "planner",
        "rollouts (seeds)",
        "to chosen by mean",
    ]
    header += ["to chosen by mean log", "to hindsight", "to planner", "without worst", "geometric", "effect", "won"]
    rows = []
    for trace, backfill in ROLLOUTS:
        own = found[(found["learner"] == "rollout") & (found["trace"] == trace) & (found["backfill"] == backfill)]
        rows.append(_judged(_place(trace, backfill), own))
    return page(header, rows, "l" + 15 * "r")


def _place(trace: str, backfill: str) -> str:
    return TRACES[trace] + (", EASY" if backfill == "easy" else "")


def _judged(name: str, own: pd.DataFrame) -> list[str]:
    """A row that says all of a learner on one trace: rules, means, ratios, effect size (of the log ratios), share won."""
    chosen, by_log, best, planner = (one(own, against=role) for role in ("chosen by mean", "chosen by log", "hindsight", "planner"))
    rules = [f"`{row['rule']}` {row['baseline_mean']:.1f}" for row in (chosen, by_log, best)]
    cells = [name, f"{chosen['windows']}", f"{chosen['seeds']}", *rules, f"{planner['baseline_mean']:.1f}", _with_seeds(chosen)]
    cells += [between(row) for row in (chosen, by_log, best, planner)]
    effect = _told(chosen["standardised_log_ratio"])
    return [*cells, f"{chosen['ratio_without_worst']:.2f}", between(chosen, "geometric_ratio"), effect, percent(chosen["win_rate"])]


def _with_seeds(row: pd.Series) -> str:
    seeds = seeds_of(row["by_seed"])
    return f"{row['mean']:.1f} ({min(seeds):.1f} to {max(seeds):.1f})" if len(seeds) > 1 else f"{row['mean']:.1f}"


def batch_evolution(results: Path) -> str:
    """The evolution strategy with the compute of the rollouts, and the rollouts of the same seeds."""
    found = pd.read_csv(results / "batch_rollouts.csv")
    header = ["trace", "CPU seconds: evolution, rollouts", "evolution strategy (seeds)", "to chosen", "to planner", "rollouts"]
    rows = []
    for trace, backfill in ROLLOUTS:
        own = found[(found["trace"] == trace) & (found["backfill"] == backfill)]
        if not (own["learner"] == "evolution").any():
            continue
        chosen, planner = (one(own, learner="evolution", against=name) for name in ("chosen by mean", "planner"))
        other = one(own, learner="rollout", against="evolution")
        seconds = f"{chosen['cpu_seconds']:.0f}, {other['cpu_seconds']:.0f}"
        cells = [_place(trace, backfill), seconds, _with_seeds(chosen), between(chosen), between(planner), f"{other['mean']:.1f}"]
        also = [between(other), between(other, "geometric_ratio"), f"{other['standardised_log_ratio']:.2f}", percent(other["win_rate"])]
        rows.append([*cells, *also])
    return page([*header, "rollouts to evolution", "geometric", "effect", "won"], rows, "l" + 9 * "r")


SETTINGS = {
    "lublin_load_60": "load 0.6",
    "lublin_load_70": "load 0.7",
    "lublin_load_80": "load 0.8",
    "lublin": "load 0.9 (`lublin`)",
    "lublin_load_95": "load 0.95",
    "lublin_exact": "0.9, run times known",
    "lublin_warm": "0.9, warm start",
}


def batch_settings(results: Path) -> str:
    """Every rule that is near the best, the planner and rollouts learned at load 0.9, on the scenarios that change one thing."""
    found = pd.read_csv(results / "batch_settings.csv", dtype={"by_seed": str})
    shown = ["fcfs", "sjf", "smallest", "smallest_area", "f1", "f2", "f3", "f4", "wfp3", "unicep"]
    rows = []
    for scenario, name in SETTINGS.items():
        own = found[found["trace"] == scenario]
        chosen, best, planner = (one(own, against=role) for role in ("chosen by mean", "hindsight", "planner"))
        means = [f"{one(own, against='rule', rule=rule)['baseline_mean']:.0f}" for rule in shown]
        cells = [name, *means, f"{planner['baseline_mean']:.0f}", f"{chosen['mean']:.0f}", f"{between(chosen)} `{chosen['rule']}`"]
        rows.append([*cells, f"{between(best)} `{best['rule']}`", between(planner)])
    header = ["", *(f"`{rule}`" for rule in shown), "planner", "rollouts", "to chosen", "to hindsight", "to planner"]
    return page(header, rows, "l" + (len(header) - 1) * "r")


def batch_transfer(results: Path) -> str:
    """Ratio to the best rule in hindsight of rollouts that were learned on one trace and tested on another."""
    found = pd.read_csv(results / "batch_transfer.csv", dtype={"by_seed": str})
    traces = list(TRACES)
    rows = []
    for learned in [name for name in TRACES if name != "kth"]:
        own = [one(found, trace=trace, learned_on=learned, against="hindsight") for trace in traces]
        rows.append([TRACES[learned], *(f"{row['ratio']:.2f}" for row in own)])
    first = found[found["learned_on"] == found["learned_on"].iloc[0]]
    means = [[one(first, trace=trace, against=role)["baseline_mean"] for trace in traces] for role in ("planner", "hindsight")]
    rows.append(["nothing (the planner)", *(f"{planner / rule:.2f}" for planner, rule in zip(*means, strict=True))])
    return page(["learned on", *TRACES.values()], rows, "l" + len(traces) * "r")


def batch_confirmation(results: Path) -> str:
    """Rollouts and the evolution strategy on logs that nobody had looked at, as they are and with jobs that come faster."""
    found = pd.read_csv(results / "batch_confirmation.csv", dtype={"by_seed": str})
    names = {"atlas": "LLNL-Atlas", "nasa": "NASA-iPSC", "atlas-busy": "LLNL-Atlas, load 0.9", "nasa-busy": "NASA-iPSC, load 0.9"}
    header = ["log", "learned by", "windows that differ", "chosen by mean", "in hindsight", "planner", "learned (seeds)", "to chosen"]
    rows = []
    for trace in found["learned_on"].unique():
        for learner in ("rollout", "evolution"):
            own = found[(found["trace"] == trace) & (found["learned_on"] == trace) & (found["learner"] == learner)]
            chosen, best, planner = (one(own, against=role) for role in ("chosen by mean", "hindsight", "planner"))
            cells = [names[trace], f"`{learner}`", f"{chosen['windows_differing']} of {chosen['windows']}"]
            cells += [f"`{row['rule']}` {row['baseline_mean']:.2f}" for row in (chosen, best)]
            seeds = sorted(seeds_of(chosen["by_seed"]))
            cells += [f"{planner['baseline_mean']:.2f}", f"{chosen['mean']:.2f} ({seeds[0]:.2f} to {seeds[-1]:.2f})"]
            cells += [between(row) for row in (chosen, best, planner)]
            rows.append([*cells, between(chosen, "geometric_ratio"), _told(chosen["standardised_log_ratio"])])
    return page([*header, "to hindsight", "to planner", "geometric", "effect"], rows, "ll" + 10 * "r")


def _told(value: float) -> str:
    """A number of two digits, or nothing where there is none."""
    return "" if pd.isna(value) else f"{value:.2f}"


def batch_networks(results: Path) -> str:
    """Variants of learning and of the network after equally many decisions."""
    found = pd.read_csv(results / "batch_networks.csv")
    header = ["variant", "CPU seconds", "seeds' means", "to `f1`", "won", "to the plain kernel, same seeds", "geometric", "won"]
    rows = []
    for variant, own in found.groupby("variant", sort=False):
        rule, kernel = one(own, against="f1"), own[own["against"] == "kernel"]
        seeds = ", ".join(f"{mean:.0f}" for mean in seeds_of(rule["by_seed"]))
        cells = [str(variant).replace("f1", "`f1`"), f"{rule['cpu_seconds']:.0f}", seeds, between(rule), percent(rule["win_rate"])]
        also = [[between(row), between(row, "geometric_ratio"), percent(row["win_rate"])] for _, row in kernel.iterrows()]
        rows.append([*cells, *(also[0] if also else ["", "", ""])])
    return page(header, rows, "lrlrrrrr")


def batch_rewards(results: Path) -> str:
    """Validation and test scores under the dissertation's rewards, beside the published validation scores."""
    found = pd.read_csv(results / "batch_rewards.csv")
    published = {claim.id: claim.published for claim in read_claims(REPOSITORY / "conf", "batch")["batch"].claims}
    rows = []
    for reward in ("episodic", "direct", "sigmoid-100", "sigmoid-50"):
        own = found[found["reward"] == reward]
        mean = one(own, seed="all")
        cells = [_interval(mean, name) for name in ("validation_best", "validation_last", "test")]
        seeds = ", ".join(f"{score:.0f}" for score in own[own["seed"] != "all"]["test"])
        ratios = [between(mean, "to_f1"), "" if reward == "episodic" else between(mean, "to_episodic")]
        claimed = [published[f"validation-{reward}-{when}"] for when in ("best", "last")]
        rows.append([f"`{reward}`", *cells, seeds, *ratios, " / ".join(f"{value:.2f}" for value in claimed)])
    header = ["reward", "validation, best", "last", "test windows", "seeds", "to `f1`", "to `episodic`", "published best / last"]
    return page(header, rows, "lrrrlrrr")


def _interval(row: pd.Series, name: str) -> str:
    return f"{row[name]:.0f} [{row[f'{name}_low']:.0f}, {row[f'{name}_high']:.0f}]"


def ramp_learning(results: Path) -> str:
    """Blocking rates in the published setting."""
    found = pd.read_csv(results / "ramp_learning.csv", dtype={"by_seed": str})
    ledger = {claim.id: claim.published for claim in read_claims(REPOSITORY / "conf", "ramp")["ramp"].claims}
    own = {letter: found[found["scenario"] == f"published_{letter}"] for letter in "abcd"}
    best = {letter: rows[rows["policy"].str.startswith("fixed-")].sort_values("blocking_rate").iloc[0] for letter, rows in own.items()}
    learned = {letter: one(rows, policy="afterstate") for letter, rows in own.items()}
    rows = [
        ["`lp_bound`, the least that any policy could block", *(share(one(own[x], policy="lp_bound")["blocking_rate"]) for x in own)],
        ["`afterstate`", *(share(learned[x]["blocking_rate"]) for x in own)],
        ["each seed", *(" ".join(map(share, seeds_of(learned[x]["by_seed"]))) for x in own)],
        [
            f"rollouts of linear values at decision time (first {one(own['a'], policy='linear-rollouts')['episodes']} episodes)",
            *(share(one(own[x], policy="linear-rollouts")["blocking_rate"]) for x in own),
        ],
        ["an earlier recipe for each, of one round", *(share(one(own[x], policy="afterstate-one-round")["blocking_rate"]) for x in own)],
        [
            "best fixed degree (smaller where no block is free)",
            *(f"{share(best[x]['blocking_rate'])} ({best[x]['policy'].removeprefix('fixed-')})" for x in own),
        ],
        ["published PAC-ML", *(share(ledger[f"blocking-pac-ml-{x}"]) for x in own)],
        ["goal (specification, section 18)", ".175", ".190", ".116", ".083"],
        ["CPU time of learning, s", "94 to 107", "72 to 77", "82 to 86", "85 to 94"],
    ]
    return page(["", *"ABCD"], rows)


def ramp_graph_policy(results: Path) -> str:
    """Blocking rates of policies that read a job's graph, beside those that do not."""
    found = pd.read_csv(results / "ramp_graph_policy.csv")
    order = ["ppo-graph", "ppo-summary", "ppo-durations", "fixed-6", "fixed-4", "fixed-8", "para_min", "para_max"]
    scenarios = ["graphs_seen", "graphs_unseen", "graphs_profiles"]
    rows = []
    for policy in order:
        own = found[found["policy"] == policy].sort_values("seed")
        rates = [" / ".join(share(rate) for rate in own.loc[own["scenario"] == name, "blocking_rate"]) for name in scenarios]
        seconds = own.loc[own["scenario"] == scenarios[0], "learning_cpu_s"]
        oracle = " (oracle)" if policy == "ppo-durations" else ""
        rows.append([f"`{policy}`{oracle}", *rates, " / ".join(f"{value:.0f}" for value in seconds) if seconds.max() else "-"])
    return page(["", *(f"`{name}`" for name in scenarios), "CPU time of learning, s"], rows)


def hetero_contended(results: Path) -> str:
    """Policies of the scenario `contended` on its test workloads, and their places among the 36 pairs."""
    found = pd.read_csv(results / "hetero_contended.csv")
    mean = found.drop_duplicates("policy").set_index("policy")["mean"]
    place = found.drop_duplicates("policy").set_index("policy")["place"]
    seeds = found[found["policy"] == "reinforce-contended"].sort_values("mean")
    filling = ["easy-high_mem_bw", "easy", "conservative"]
    best, chosen = "shortest-high_mem_bw", "shortest-high_gflops"
    learned = f"{', '.join(f'{value:.1f}' for value in seeds['mean'])}; mean {seeds['mean'].mean():.1f}"
    rows = [
        ["`easy-sjf-high_mem_bw` (backfills, which no pair does)", f"{mean['easy-sjf-high_mem_bw']:.1f}", "before the first"],
        [f"REINFORCE, seeds {', '.join(map(str, seeds['seed']))}", learned, ", ".join(map(str, seeds["place"]))],
        [
            ", ".join(f"`{name}`" for name in filling) + " (backfill, too)",
            ", ".join(f"{mean[name]:.1f}" for name in filling),
            "before the first; between 1 and 2",
        ],
        [f"`{best}`, the best pair on the test", f"{mean[best]:.1f}", str(place[best])],
        ["`shortest-low_power`", f"{mean['shortest-low_power']:.1f}", str(place["shortest-low_power"])],
        [
            f"`{chosen}`, chosen by `best_fixed_pair` on validation and by the search of equal compute",
            f"{mean[chosen]:.1f}",
            str(place[chosen]),
        ],
        ["`random-random`", f"{mean['random-random']:.1f}", str(place["random-random"])],
    ]
    return page(["policy", "bounded slowdown", "place among the 36 pairs"], rows)


def cloud_reinforce(results: Path) -> str:
    """Regret of the learned policies, mean and worst seed, beside that of the best rule without a model."""
    found = pd.read_csv(results / "cloud_reinforce.csv")
    rule = {"cifar10": [0.113, 0.054, 0.151, 0.150], "imagenet": [0.032, 0.062, 0.008, 0.066]}
    rule |= {"movielens": [0.202, 0.146, 0.271, 0.190], "squad": [0.095, 0.155, 0.038, 0.088]}
    preferences = ["balanced", "cost", "time", "resource"]
    rows = []
    for job, rules in rule.items():
        regret = found[found["scenario"] == job].groupby("preference")["regret"]
        cells = [f"{_regret(regret.mean()[p])}, {_regret(regret.max()[p])}; {share(r)}" for p, r in zip(preferences, rules, strict=True)]
        rows.append([f"{job}: mean, worst; rule" if job == "cifar10" else job, *cells])
    return page(["", *preferences], rows)


def cloud_beginnings(results: Path) -> str:
    """What REINFORCE comes to from each beginning, and with adapted weights: means of preferences, range of the seeds where they differ."""
    found = pd.read_csv(results / "cloud_ablations.csv")
    variants = {"reinforce-fixed": "fixed weights, cold", "reinforce-historical": "fixed weights, historical"}
    variants |= {"reinforce-baseline": "fixed weights, short baseline", "reinforce-adapted": "adapted weights, cold"}
    rows = []
    for policy, name in variants.items():
        own = found[found["policy"] == policy]
        columns = {
            "regret": _regret,
            "severity": lambda value: share(value, 2),
            "sla_met": "{:.2f}".format,
            "episodes_needed": "{:,.0f}".format,
        }
        rows.append([name, *(_spread(own, column, form) for column, form in columns.items())])
    header = ["regret", "severity of violations", "service levels met", "episodes to 95 % of the cold start's gain"]
    return page(["", *header], rows)


def cloud_ablations(results: Path) -> str:
    """What the multi-policy actor-critic comes to with and without its parts."""
    found = pd.read_csv(results / "cloud_ablations.csv")
    variants = {"all": "all parts", "no-reset": "no reset", "one-policy": "one policy for all", "no-sla": "no SLA term"}
    rows = []
    for policy, name in (variants | {"nine-actions": "9 actions"}).items():
        own = found[found["policy"] == f"multi-policy-{policy}"]
        means = own.groupby("preference")["regret"].mean()
        by_preference = ", ".join(share(max(0.0, means[key]), 2) for key in ("balanced", "cost", "time", "resource"))
        columns = {"severity": lambda value: share(value, 2), "time": "{:.0f}".format, "cost": lambda value: share(value, 2)}
        others = [_spread(own, column, form) for column, form in columns.items()]
        rows.append([name, _spread(own, "regret", _regret), by_preference, *others])
    return page(["", "regret", "for balanced, cost, time, resource", "severity", "time, s", "cost, $"], rows)


def cloud_learners(results: Path) -> str:
    """Regret of all learners on one problem; REINFORCE's is that of the same job and limits in the table of ablations."""
    found, other = (pd.read_csv(results / f"cloud_{name}.csv") for name in ("learners", "ablations"))
    own = other[(other["policy"] == "reinforce-fixed") & (other["preference"] == "cost")]
    regrets = {"`reinforce`": ("9,600 episodes", own["regret"])}
    names = {"dqn": "DQN", "multi-policy": "`multi_policy`", "maskable-ppo": "PPO with masks", "ppo": "PPO", "a2c": "A2C"}
    for policy, name in names.items():
        length = "2,400 episodes" if policy == "multi-policy" else "64,000 decisions, 3,200 episodes"
        regrets[name] = length, found.loc[found["policy"] == f"{policy}-learners", "regret"]
    rows = [[name, length, str(len(of)), share(max(0.0, of.mean())), ", ".join(map(_regret, of))] for name, (length, of) in regrets.items()]
    return page(["learner", "learned on", "seeds", "regret, mean", "each seed"], rows)


def _spread(rows: pd.DataFrame, column: str, form: Callable[[float], str]) -> str:
    """Mean of seeds and preferences, and in brackets the smallest and the largest seed's mean where these differ as written."""
    seeds = rows.groupby("policy_seed")[column].mean()
    low, high = form(seeds.min()), form(seeds.max())
    return form(seeds.mean()) + (f" ({low} to {high})" if low != high else "")


def ramp_baselines(results: Path) -> str:
    """Blocking rates of the published system's baselines, in brackets the published ones, from the ledger."""
    del results
    ledger = {claim.id: claim for claim in read_claims(REPOSITORY / "conf", "ramp")["ramp"].claims}
    rows = []
    for rule in ("para_max", "para_min", "random"):
        claims = [ledger[f"blocking-{rule.replace('_', '-')}-{letter}"] for letter in "abcd"]
        rows.append([rule, *(f"{share(claim.ours_reference)} ({share(claim.published)})" for claim in claims)])
    return page(["rule", *"ABCD"], rows)


def processes_threads(results: Path) -> str:
    """CPU time of learning by processes and threads."""
    rows = []
    for row in pd.read_csv(results / "processes_threads.csv").itertuples():
        each = 1e3 * row.cpu_seconds / row.decisions
        rows.append([f"{row.processes}", f"{row.threads}", f"{row.decisions:,}", f"{row.cpu_seconds:.1f} s", f"{each:.2f} ms"])
    return page(["processes", "threads of each", "decisions learned from", "CPU time", "of a decision"], rows, "rrrrr")


def workflow_cost(results: Path) -> str:
    """Time and memory of the workflow's jobs by study and rule, and of all."""
    found = pd.read_csv(results / "workflow_cost.csv", keep_default_na=False, dtype={"busy": str, "used": str})
    rows = []
    for row in found.itertuples():
        name = f"`{row.rule}`" if row.rule else ""
        numbers = [f"{row.jobs}", f"{row.cpu_s:,.0f} s", f"{row.wall_s:,.0f} s", f"{row.longest_s:.0f} s", f"{row.max_rss_mib:,.0f} MiB"]
        rows.append([row.study, name, *numbers])
    return page(["study", "rule", "jobs", "CPU time", "clock, all jobs", "longest", "most memory"], rows, "llrrrrr")


def ramp_loads(results: Path) -> str:
    """Blocking rates by time between arrivals."""
    found = pd.read_csv(results / "ramp_rules.csv", dtype={"setting": str})
    found = found[found["part"] == "loads"]
    rows = [[rule, *map(share, found.loc[found["rule"] == rule, "blocking_rate"])] for rule in ("para_max", "para_min")]
    return page(["s", *found.loc[found["rule"] == "para_max", "setting"]], rows)


def ramp_quantum(results: Path) -> str:
    """Blocking rates of the traced graphs by what is done about degrees that have no block."""
    found = pd.read_csv(results / "ramp_rules.csv")
    found = found[found["part"] == "quantum"]
    named = {"0.01, kept": "0.01, illegal degrees kept", "0.00029, kept": "0.00029"}
    rules, rows = ["para_max", "fixed_8", "fixed_4"], []
    for setting, own in found.groupby("setting", sort=False):
        rows.append([f"quantum {named.get(setting, setting)}", *(share(one(own, rule=rule)["blocking_rate"]) for rule in rules)])
    return page(["", *(f"`{rule}`" for rule in rules)], rows)


def _regret(value: float) -> str:
    return share(max(0.0, value))  # rounding of floats gives -1e-16


def headlines(results: Path) -> str:
    """What each study found in its largest recorded run, beside what was published."""
    ledgers = {name: {claim.id: claim for claim in ledger.claims} for name, ledger in read_claims(REPOSITORY / "conf").items()}
    accuracy = ledgers["adaptation"]["best-learned"]
    hetero = pd.read_csv(results / "hetero_contended.csv")
    ratios = hetero.loc[hetero["policy"] == "reinforce-contended", "ratio_to_chosen_pair"]
    batch = pd.read_csv(results / "batch_rollouts.csv")
    chosen = [one(batch, learner="rollout", trace=x, backfill="none", against="chosen by mean") for x in ("hpc2n", "sdsc")]
    ramp = pd.read_csv(results / "ramp_learning.csv", dtype={"by_seed": str})
    learned = one(ramp, scenario="published_a", policy="afterstate")
    seeds = " ".join(map(share, seeds_of(learned["by_seed"])))
    fixed = ramp[(ramp["scenario"] == "published_a") & ramp["policy"].str.startswith("fixed-")]["blocking_rate"].min()
    time = ledgers["cloud"]["time-reduction"]
    rows = [
        [
            "`adaptation`",
            "mean accuracy over five scenarios, best learned policy in reference mode",
            f"{share(accuracy.ours_reference, 4)} (best of 18 runs)",
            f"{share(accuracy.published, 4)}",
        ],
        [
            "`hetero`",
            "`contended`: bounded slowdown of REINFORCE over that of the pair chosen on validation",
            f"{ratios.mean():.2f} (seeds {ratios.min():.2f} to {ratios.max():.2f})",
            "no numbers",
        ],
        [
            "`batch`",
            "bounded slowdown of rollouts over that of the rule chosen on validation: HPC2N; SDSC-SP2",
            f"{'; '.join(map(between, chosen))} (five seeds)",
            "on its own windows alone",
        ],
        [
            "`ramp`",
            f"blocking rate of learned values, beta A (best fixed degree {share(fixed)})",
            f"{share(learned['blocking_rate'])} (seeds {seeds})",
            share(ledgers["ramp"]["blocking-pac-ml-a"].published),
        ],
        ["`cloud`", time.quantity, f"{time.ours_repaired:g} (mean of five seeds)", f"{time.published:g}"],
    ]
    return page(["study", "quantity", "here", "published"], rows)


TABLES: dict[str, Callable[[Path], str]] = {
    function.__name__: function
    for function in (
        *(batch_search, batch_matrix, batch_rollouts, batch_evolution, batch_networks, batch_rewards),
        *(batch_settings, batch_transfer, batch_confirmation),
        *(ramp_learning, ramp_graph_policy, hetero_contended, cloud_reinforce, headlines),
        *(ramp_baselines, ramp_loads, ramp_quantum),
        *(processes_threads, workflow_cost, scale_limits, scale_measured, scale_worked_out, scale_slurm),
        *(cloud_beginnings, cloud_ablations, cloud_learners),
    )
}


def refreshed(text: str, results: Path = REPOSITORY / "docs/results") -> str:
    """Return a page with every marked table made anew. Raises KeyError for a name that is no table."""
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match['name']](results)}\n{match[4]}", text)


def pages() -> list[Path]:
    """Return the pages that may hold tables."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring the pages up to date, or say which are not."""
    parser = argparse.ArgumentParser(description="Make the tables of the documentation anew from docs/results.")
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 where a page is not up to date")
    check = parser.parse_args(arguments).check
    stale = [(path, new) for path in pages() if (new := refreshed(path.read_text(encoding="utf-8"))) != path.read_text(encoding="utf-8")]
    for path, new in stale:
        print(f"{path.relative_to(REPOSITORY)}: {'is not up to date' if check else 'brought up to date'}")
        if not check:
            path.write_text(new, encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
