"""Tables of the batch study."""

from __future__ import annotations

import json
from pathlib import Path

import batch_published_tables
import numpy as np
import pandas as pd
from table_parts import REPOSITORY, between, one, page, percent, seeds_of

from schedlab.evaluation.claims import read_claims
from schedlab.studies.batch.learners.search_settings import CORRECT_RULES
from schedlab.studies.batch.prediction_errors import PREDICTORS

TRACES = {
    "sdsc": "SDSC-SP2",
    "hpc2n": "HPC2N",
    "lublin-1": "like Lublin-1",
    "lublin-2": "like Lublin-2",
    "kth": "KTH-SP2",
}


def batch_transfer(results: Path) -> str:
    """Rollouts by the trace that they learned on and the trace of the test: ratio to the best rule in hindsight; the
    untrained planner below.
    """
    found = pd.read_csv(results / "batch_transfer.csv")
    learned_on = [name for name in TRACES if name != "kth"]
    rows = []
    for learned in learned_on:
        own = [one(found, trace=trace, learned_on=learned, against="hindsight") for trace in TRACES]
        rows.append([TRACES[learned], *(f"{row['ratio']:.2f}" for row in own)])
    first = found[found["learned_on"] == learned_on[0]]
    means = [
        [one(first, trace=trace, against=role)["baseline_mean"] for trace in TRACES]
        for role in ("planner", "hindsight")
    ]
    rows.append(["nothing (the planner)", *(f"{planner / rule:.2f}" for planner, rule in zip(*means, strict=True))])
    return page(["learned on", *TRACES.values()], rows, "l" + len(TRACES) * "r")


ROLLOUTS = [(trace, backfill) for backfill in ("none", "easy") for trace in ("sdsc", "hpc2n", "lublin-1", "lublin-2")]


def batch_rollouts(results: Path) -> str:
    """Rollouts on the test windows of their own traces, against rules, planner and the best untrained policy on
    validation.
    """
    found = pd.read_csv(results / "batch_rollouts.csv")
    found = found[found["learner"] == "rollout"]
    header = ["trace", "windows", "rule chosen on validation", "rollouts (range of seeds)", "ratio to the rule"]
    header += ["windows won", "ratio to the planner", "ratio to the best rule in hindsight"]
    header += ["best untrained policy on validation", "ratio to it"]
    rows = []
    for trace, backfill in ROLLOUTS:
        own = found[(found["trace"] == trace) & (found["backfill"] == backfill)]
        chosen, best, planner = (one(own, against=role) for role in ("chosen by mean", "hindsight", "planner"))
        cells = [_place(trace, backfill), f"{chosen['windows']}", f"`{chosen['rule']}` {chosen['baseline_mean']:.1f}"]
        cells += [_with_seeds(chosen), between(chosen), percent(chosen["win_rate"]), between(planner), between(best)]
        rows.append([*cells, *_untrained(results, trace, backfill, chosen["mean"])])
    return page(header, rows, "l" + 9 * "r")


def _untrained(results: Path, trace: str, backfill: str, mean: float) -> list[str]:
    """The untrained policy of the lowest validation mean with its test mean, and the ratio of a mean to it; empty
    where none was recorded.
    """
    found = pd.read_csv(results / "batch_predicted.csv")
    scenario = {"sdsc": "sdsc_sp2"}.get(trace, trace) + ("_easy" if backfill == "easy" else "")
    own = found[found["scenario"] == scenario]
    if own.empty:
        return ["", ""]
    best = own.loc[own["validation"].idxmin()]
    return [f"`{best['rule']}` {best['test']:.1f}", f"{mean / best['test']:.2f}"]


def _place(trace: str, backfill: str) -> str:
    return TRACES[trace] + (", EASY" if backfill == "easy" else "")


def _with_seeds(row: pd.Series, digits: int = 1) -> str:
    """A mean and, of several seeds, the least and the largest."""
    seeds = seeds_of(row["by_seed"])
    mean = f"{row['mean']:.{digits}f}"
    return f"{mean} ({min(seeds):.{digits}f} to {max(seeds):.{digits}f})" if len(seeds) > 1 else mean


def batch_evolution(results: Path) -> str:
    """The evolution strategy with the compute of the rollouts, and the rollouts of the same seeds."""
    found = pd.read_csv(results / "batch_rollouts.csv")
    header = [
        "trace",
        "CPU seconds: evolution, rollouts",
        "evolution strategy (seeds)",
        "to chosen",
        "to planner",
        "rollouts",
    ]
    rows = []
    for trace, backfill in ROLLOUTS:
        own = found[(found["trace"] == trace) & (found["backfill"] == backfill)]
        if not (own["learner"] == "evolution").any():
            continue
        chosen, planner = (one(own, learner="evolution", against=name) for name in ("chosen by mean", "planner"))
        other = one(own, learner="rollout", against="evolution")
        seconds = f"{chosen['cpu_seconds']:.0f}, {other['cpu_seconds']:.0f}"
        cells = [
            _place(trace, backfill),
            seconds,
            _with_seeds(chosen),
            between(chosen),
            between(planner),
            f"{other['mean']:.1f}",
        ]
        also = [
            between(other),
            between(other, "geometric_ratio"),
            _optional(other["standardised_log_ratio"]),
            percent(other["win_rate"]),
        ]
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
    """All recorded rules but the longest and the largest job first, planner and rollouts learned at load 0.9, where
    one thing is changed.
    """
    found = pd.read_csv(results / "batch_settings.csv", dtype={"by_seed": str})
    recorded = set(found.loc[found["against"] == "rule", "rule"])
    shown = [rule for rule in CORRECT_RULES if rule in recorded - {"ljf", "largest"}]
    rows = []
    for scenario, name in SETTINGS.items():
        own = found[found["trace"] == scenario]
        chosen, best, planner = (one(own, against=role) for role in ("chosen by mean", "hindsight", "planner"))
        means = [f"{one(own, against='rule', rule=rule)['baseline_mean']:.0f}" for rule in shown]
        cells = [
            name,
            *means,
            f"{planner['baseline_mean']:.0f}",
            f"{chosen['mean']:.0f}",
            f"{between(chosen)} `{chosen['rule']}`",
        ]
        rows.append([*cells, f"{between(best)} `{best['rule']}`", between(planner)])
    header = ["", *(f"`{rule}`" for rule in shown), "planner", "rollouts", "to chosen", "to hindsight", "to planner"]
    return page(header, rows, "l" + (len(header) - 1) * "r")


def batch_confirmation(results: Path) -> str:
    """Rollouts and the evolution strategy on logs that were read first after the recipe was fixed, at their own load
    and with compressed arrivals.
    """
    found = pd.read_csv(results / "batch_confirmation.csv", dtype={"by_seed": str})
    names = {
        "atlas": "LLNL-Atlas",
        "nasa": "NASA-iPSC",
        "atlas-busy": "LLNL-Atlas, load 0.9",
        "nasa-busy": "NASA-iPSC, load 0.9",
    }
    header = [
        "log",
        "learned by",
        "windows that differ",
        "chosen by mean",
        "best in hindsight",
        "planner",
        "learned (seeds)",
        "to chosen",
    ]
    rows = []
    for trace in found["learned_on"].unique():
        for learner in ("rollout", "evolution"):
            own = found[(found["trace"] == trace) & (found["learned_on"] == trace) & (found["learner"] == learner)]
            chosen, best, planner = (one(own, against=role) for role in ("chosen by mean", "hindsight", "planner"))
            cells = [names[trace], f"`{learner}`", f"{chosen['windows_differing']} of {chosen['windows']}"]
            cells += [f"`{row['rule']}` {row['baseline_mean']:.2f}" for row in (chosen, best)]
            cells += [f"{planner['baseline_mean']:.2f}", _with_seeds(chosen, digits=2)]
            cells += [between(row) for row in (chosen, best, planner)]
            rows.append([*cells, between(chosen, "geometric_ratio"), _optional(chosen["standardised_log_ratio"])])
    return page([*header, "to hindsight", "to planner", "geometric", "effect"], rows, "ll" + 10 * "r")


def _optional(value: float) -> str:
    """A number of two digits, or nothing where there is none."""
    return "" if pd.isna(value) else f"{value:.2f}"


def batch_networks(results: Path) -> str:
    """Variants of learning and of the network after equally many decisions; below them, some on other drawn jobs."""
    found = pd.read_csv(results / "batch_networks.csv")
    rows = []
    for seed, own in found.groupby("drawn_seed", sort=True):
        rows += _variants(own, "kernel", "" if seed == found["drawn_seed"].min() else f", jobs of seed {seed}")
    return page(["variant", *_variant_columns("the plain kernel")], rows, "lrlrrrrr")


def batch_networks_published(results: Path) -> str:
    """The published networks of value and policy, and windows kept by their range."""
    rows = _variants(pd.read_csv(results / "batch_networks_published.csv"), "kernel")
    return page(["variant", *_variant_columns("the plain kernel")], rows, "lrlrrrrr")


def batch_learners(results: Path) -> str:
    """The recipes of the stock learners after equally many decisions."""
    rows = [
        [f"`{name}`", *cells] for name, *cells in _variants(pd.read_csv(results / "batch_learners.csv"), "maskable_ppo")
    ]
    return page(["recipe", *_variant_columns("`maskable_ppo`")], rows, "lrlrrrrr")


def _variant_columns(first: str) -> list[str]:
    return [
        "CPU seconds",
        "seeds' means",
        "ratio to the chosen rule",
        "won",
        f"ratio to {first}, same seeds",
        "geometric",
        "won",
    ]


def _variants(found: pd.DataFrame, first: str, ending: str = "") -> list[list[str]]:
    """Rows of variants: each against the rule that validation chose and against the first
    of them.
    """
    rows = []
    for variant, own in found.groupby("variant", sort=False):
        (_, rule), *plain = own.sort_values("against", key=lambda names: names == first).iterrows()
        seeds = ", ".join(f"{mean:.0f}" for mean in seeds_of(rule["by_seed"]))
        cells = [
            str(variant).replace("f1", "`f1`") + ending,
            f"{rule['cpu_seconds']:.0f}",
            seeds,
            f"{between(rule)} `{rule['against']}`",
        ]
        also = [[between(row), between(row, "geometric_ratio"), percent(row["win_rate"])] for _, row in plain]
        rows.append([*cells, percent(rule["win_rate"]), *(also[0] if also else ["", "", ""])])
    return rows


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
    header = [
        "reward",
        "validation, best",
        "last",
        "test windows",
        "seeds",
        "to `f1`",
        "to `episodic`",
        "published best / last",
    ]
    return page(header, rows, "lrrrlrrr")


def _interval(row: pd.Series, name: str) -> str:
    return f"{row[name]:.0f} [{row[f'{name}_low']:.0f}, {row[f'{name}_high']:.0f}]"


EPOCHS = {
    ("ppo_published", 4): "`ppo_published`: policy 961, value 11,570 parameters, minibatches of 512",
    ("ppo_published", 14): "the same",
    ("ppo_published", 80): "the same",
    ("ppo_published under load", 14): "under a load of 6 on two cores",
    ("ppo_published under load", 80): "the same",
    ("ppo_published whole", 14): "whole observations stored, measured together with the fourth row",
}


def batch_ppo_epoch(results: Path) -> str:
    """What an epoch of PPO costs."""
    rows = []
    for row in pd.read_csv(results / "batch_ppo_epoch.csv").itertuples():
        rows.append(
            [EPOCHS[row.learner, row.passes], f"{row.passes}", f"{row.cpu_seconds:.1f}", f"{row.memory_gib:.2f} GiB"]
        )
    return page(
        ["an epoch of 25,600 decisions (100 environments, 256 steps each)", "passes", "CPU seconds", "memory at most"],
        rows,
        "lrrr",
    )


def batch_backfill_order(results: Path) -> str:
    """Rules with EASY, where the rule or the area says which jobs are looked at first."""
    found = pd.read_csv(results / "batch_backfill_order.csv")
    means = {f"by the {how}": [f"{mean:.1f}" for mean in found[f"mean_by_{how}"]] for how in ("rule", "area")}
    rows = [[name, *cells] for name, cells in means.items()]
    rows.append(["ratio", *(between(row) for _, row in found.iterrows())])
    return page(["order of backfilling", *(f"`{rule}`" for rule in found["rule"])], rows, "l" + len(found) * "r")


def batch_rule_speed(results: Path) -> str:
    """Thousands of jobs a second under two rules."""
    modes = ["none", "legacy", "easy", "conservative"]
    rows = []
    for row in pd.read_csv(results / "batch_rule_speed.csv").to_dict("records"):
        rows.append(
            [f"{batch_published_tables.TRACES[row['trace']]}, `{row['policy']}`", *(f"{row[mode]}" for mode in modes)]
        )
    return page(["", *modes], rows, "lrrrr")


def batch_environment_speed(results: Path) -> str:
    """Steps a second through the environments."""
    rows = []
    for row in pd.read_csv(results / "batch_environment_speed.csv").itertuples():
        rows.append([row.layout, row.backfill, f"{row.single_steps_per_s:,}", f"{row.vectorised_steps_per_s:,}"])
    return page(["layout", "backfilling", "`Batch-v0`", "vectorised, 64 windows"], rows, "llrr")


def batch_decision_latency(results: Path) -> str:
    """What a decision costs on one machine, in µs, as `schedlab batch latency` recorded it."""
    del results  # records of machines stand elsewhere
    records = REPOSITORY / "resources/measured/decision_latency"
    none, easy = (_medians(records / f"shared_virtual_machine{ending}.json") for ending in ("", "_easy"))
    rows = [[name, *(f"{cost[name]:.{cost[name] < 10:d}f}" for cost in (none, easy))] for name in none]
    return page(["µs a decision", "no backfilling", "EASY"], rows, "lrr")


def _medians(record: Path) -> dict[str, float]:
    """Medians of a record by policy."""
    return {each["policy"]: each["median"] for each in json.loads(record.read_text(encoding="utf-8"))["measured"]}


def batch_predicted(results: Path) -> str:
    """Rules by requests, the planner, and untrained bases over the rollouts' predictions."""
    found = pd.read_csv(results / "batch_predicted.csv")
    names = {"sdsc_sp2": "SDSC-SP2", "hpc2n": "HPC2N", "sdsc_sp2_easy": "SDSC-SP2, EASY", "hpc2n_easy": "HPC2N, EASY"}
    rules = list(dict.fromkeys(found["rule"]))
    rows = []
    for scenario, own in found.groupby("scenario", sort=False):
        means = own.set_index("rule")
        rows.append(
            [
                names[scenario],
                *(f"{means.loc[rule, 'validation']:.1f}, {means.loc[rule, 'test']:.1f}" for rule in rules),
            ]
        )
    return page(["validation, test", *(f"`{rule}`" for rule in rules)], rows)


def batch_prediction_errors(results: Path) -> str:
    """Share of jobs under-predicted, and the factor by which predictions are off, of jobs and of the median user."""
    found = pd.read_csv(results / "batch_prediction_errors.csv")
    rows = []
    for predictor, own in found.groupby("predictor", sort=False):
        cells = [PREDICTORS[predictor]]
        for row in own.itertuples():
            jobs, users = (
                f"{np.exp(size):.{size < np.log(10):d}f}" for size in (row.mean_absolute_log, row.user_median)
            )
            cells.append(f"{percent(row.under_predicted)}, {jobs} ({users})")
        rows.append(cells)
    return page(["predicted by", *found["trace"].unique()], rows)


def batch_history(results: Path) -> str:
    """The order from history on logs that it never saw: learned and untrained, the rival chosen on validation, and two
    other policies.
    """
    summary, headline = (pd.read_csv(results / f"batch/{name}.csv") for name in ("summary", "headline"))
    untrained = pd.read_csv(results / "batch_untrained_history.csv").set_index("scenario")["avg_bsld"]
    means = summary[(summary["metric"] == "avg_bsld") & (summary["split"] == "test")]
    asked = headline[(headline["recipe"] == "history") & (headline["group"] == "all")]
    rows = []
    for scenario, before in untrained.items():
        own = means[means["scenario"] == scenario]
        learned, chosen = one(own, recipe="history"), one(asked, scenario=scenario)["rival"]
        seeds = f"{learned['range_low']:.1f} to {learned['range_high']:.1f}"
        cells = [f"{one(own, policy=name)['value']:.1f}" for name in ("lxf_predicted", "smallest_area_true_times")]
        rival = f"`{chosen}` {one(own, policy=chosen)['value']:.1f}"
        rows.append([f"`{scenario}`", rival, f"{before:.1f}", f"{learned['value']:.1f} ({seeds})", *cells])
    header = ["scenario", "rival chosen on validation", "`history`, untrained", "`history`, learned (range of seeds)"]
    return page([*header, "`lxf_predicted`", "`smallest_area_true_times` (true run times)"], rows, "l" + 5 * "r")


TABLES = (
    *batch_published_tables.TABLES,
    batch_predicted,
    batch_prediction_errors,
    batch_ppo_epoch,
    batch_backfill_order,
    batch_rule_speed,
    batch_environment_speed,
    batch_decision_latency,
    batch_rollouts,
    batch_evolution,
    batch_settings,
    batch_transfer,
    batch_history,
    batch_confirmation,
    batch_networks,
    batch_networks_published,
    batch_learners,
    batch_rewards,
)
