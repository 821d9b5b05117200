"""Tables of the batch study."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
from table_parts import REPOSITORY, between, one, page, percent, seeds_of

from schedlab.evaluation.claims import read_claims
from schedlab.studies.batch.prediction_errors import PREDICTORS

TRACES = {"lublin1": "Lublin-1", "sdsc_sp2": "SDSC-SP2", "hpc2n": "HPC2N", "lublin2": "Lublin-2"}
PREDICTED = {"sdsc_sp2": "SDSC-SP2", "hpc2n": "HPC2N", "sdsc_sp2_easy": "SDSC-SP2, EASY", "hpc2n_easy": "HPC2N, EASY"}
COMPARED = ("sjf", "f1", "smallest_area", "planner")  # with the rules on predicted run times
DRAWN = [(trace, backfill) for backfill in ("none", "easy") for trace in ("lublin-1", "lublin-2")]


def _slowdowns(results: Path) -> pd.Series:
    """Mean bounded slowdowns of the study's record by scenario, policy and split."""
    found = pd.read_csv(results / "batch/summary.csv", low_memory=False)
    return found[found["metric"] == "avg_bsld"].set_index(["scenario", "policy", "split"])["value"].sort_index()


def batch_published_rules(results: Path) -> str:
    """Rules on the ten windows, without and with the published backfilling; in brackets two of them as published."""
    rules = {"fcfs": "FCFS", "sjf": "SJF", "f1": "F1", "f2": "F2", "f3": "F3", "f4": "F4", "smallest": "smallest"}
    mended = {"wfp3": "WFP3 (RLScheduler's)", "unicep": "UNICEP (RLScheduler's)"}
    means = _slowdowns(results)

    def both(trace: str, rule: str) -> str:
        return " / ".join(f"{means[f'published_{trace}{how}', rule, 'test']:.2f}" for how in ("", "_backfill"))

    rows = [
        [
            name,
            *(both(trace, rule) for rule in rules),
            *(f"{both(trace, rule)} ({both(trace, f'{rule}_legacy')})" for rule in mended),
        ]
        for trace, name in TRACES.items()
    ]
    return page(["", *rules.values(), *mended.values()], rows)


def batch_published_easy(results: Path) -> str:
    """Three rules with the published backfilling and with the textbook's EASY."""
    means, traces = _slowdowns(results), ("lublin1", "sdsc_sp2", "hpc2n")
    rows = [
        [
            rule.upper(),
            *(
                ", ".join(f"{means[f'published_{trace}_{how}', rule, 'test']:.2f}" for how in ("backfill", "easy"))
                for trace in traces
            ),
        ]
        for rule in ("fcfs", "sjf", "f1")
    ]
    first, *others = (TRACES[trace] for trace in traces)
    return page(["", f"{first}: published, EASY", *others], rows, "lrrr")


def batch_predicted(results: Path) -> str:
    """Rules by requests, the planner, and the same rules on predicted run times: on validation and on test windows."""
    means = _slowdowns(results)
    rules = [*COMPARED, *(f"{rule}_predicted" for rule in ("shortest", "f1", "smallest_area", "costly_per_area"))]
    rows = [
        [
            name,
            *(", ".join(f"{means[scenario, rule, split]:.1f}" for split in ("validation", "test")) for rule in rules),
        ]
        for scenario, name in PREDICTED.items()
    ]
    return page(["validation, test", *(f"`{rule}`" for rule in rules)], rows)


def batch_rollouts(results: Path) -> str:
    """Rollouts on drawn traces like the published ones, against the chosen rule, the planner and the searched
    priority.
    """
    found = pd.read_csv(results / "batch_rollouts.csv")
    rows = []
    for trace, backfill in DRAWN:
        own = found[(found["trace"] == trace) & (found["backfill"] == backfill)]
        chosen, planner, search = (one(own, against=role) for role in ("chosen by mean", "planner", "evolution"))
        seeds = seeds_of(chosen["by_seed"])
        learned = f"{chosen['mean']:.1f} ({min(seeds):.1f} to {max(seeds):.1f})"
        name = f"like {trace.title()}" + (", EASY" if backfill == "easy" else "")
        cells = [name, f"`{chosen['rule']}` {chosen['baseline_mean']:.1f}", learned]
        rows.append([*cells, between(chosen), between(planner), between(search)])
    header = ["trace", "rule chosen on validation", "rollouts (range of seeds)", "ratio to the rule"]
    return page([*header, "ratio to the planner", "ratio to `evolution`"], rows, "lrrrrr")


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
    """Two rules, planner and rollouts learned at load 0.9, where one thing is changed."""
    found = pd.read_csv(results / "batch_settings.csv", dtype={"by_seed": str})
    rows = []
    for scenario, name in SETTINGS.items():
        own = found[found["trace"] == scenario]
        chosen, planner = (one(own, against=role) for role in ("chosen by mean", "planner"))
        means = [one(own, against="rule", rule=rule)["baseline_mean"] for rule in ("fcfs", "f1")]
        cells = [f"{mean:.0f}" for mean in (*means, planner["baseline_mean"], chosen["mean"])]
        rows.append([name, *cells, f"{between(chosen)} `{chosen['rule']}`", between(planner)])
    header = ["", "`fcfs`", "`f1`", "planner", "rollouts", "ratio to the chosen rule", "ratio to the planner"]
    return page(header, rows, "lrrrrrr")


def batch_networks(results: Path) -> str:
    """Variants of learning, networks and stock learners after equally many decisions, against the chosen rule."""
    rows = []
    for row in pd.read_csv(results / "batch_networks.csv").to_dict("records"):
        name = re.sub(r"\b(f1|\w+_kernel|mlp_v1|ppo\w*|a2c|dqn|ddpg)\b", r"`\1`", row["variant"])
        seeds = ", ".join(f"{mean:.0f}" for mean in seeds_of(row["by_seed"]))
        rows.append([name, f"{row['cpu_seconds']:.0f}", seeds, between(pd.Series(row))])
    return page(["variant", "CPU seconds", "seeds' means", "ratio to `f1`"], rows, "lrlr")


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
    batch_published_rules,
    batch_published_easy,
    batch_predicted,
    batch_prediction_errors,
    batch_decision_latency,
    batch_rollouts,
    batch_settings,
    batch_history,
    batch_networks,
    batch_rewards,
)
