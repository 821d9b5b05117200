"""Tables of the cloud study, from the record of its run at scale full: docs/results/cloud/summary.csv."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from table_parts import page, share

JOBS = ("cifar10", "imagenet", "movielens", "squad")
NOT_RECORDED = "Not recorded yet: `snakemake --cores 2 cloud --config scale=full && schedlab record full cloud`."
GROUPS = ("rule", "planner", "search", "published", "learned", "oracle")
Form = Callable[[float], str]


def _summary(results: Path) -> pd.DataFrame | None:
    """The summary's rows on test units, by the name a page calls a policy (`named`): its recipe, of a rule its name."""
    path = results / "cloud/summary.csv"
    if not path.is_file():
        return None
    found = pd.read_csv(path, keep_default_na=False, na_values=[""])
    found = found[found["split"] == "test"]
    trained = found["trained_on"].notna()
    return found.assign(named=found["recipe"].where(trained, found["policy"]))


def _cell(rows: pd.DataFrame, form: Form) -> str:
    """A mean, and in brackets the smallest and the largest seed's where these differ as written; empty: no such row."""
    if len(rows) != 1:
        return "" if rows.empty else "?"
    row = rows.iloc[0]
    low, high = form(row["range_low"]), form(row["range_high"])
    wide = row["range_over"] == "seeds" and low != high
    return form(row["value"]) + (f" ({low} to {high})" if wide else "")


def _table(
    results: Path,
    rows: Mapping[str, Mapping[str, str]],
    columns: Mapping[str, tuple[Mapping[str, str], Form]],
    first: str = "",
) -> str:
    """A table of summary values: label of a row -> columns of the summary with their values, and so of a column."""
    found = _summary(results)
    if found is None:
        return NOT_RECORDED
    cells = []
    for label, of_row in rows.items():
        line = [label]
        for of_column, form in columns.values():
            chosen = found
            for column, value in (of_column | of_row).items():
                chosen = chosen[chosen[column] == value]
            line.append(_cell(chosen, form))
        cells.append(line)
    return page([first, *columns], cells)


def _jobs(metric: str, form: Form, suffix: str = "") -> dict[str, tuple[Mapping[str, str], Form]]:
    return {job: ({"scenario": job + suffix, "metric": metric}, form) for job in JOBS}


def cloud_policies(results: Path) -> str:
    """Regret of every policy on the four jobs, mean of the preferences, by group and then by its mean over jobs."""
    found = _summary(results)
    if found is None:
        return NOT_RECORDED
    regrets = found[(found["metric"] == "regret") & found["scenario"].isin(JOBS)]
    means = regrets.groupby(["kind", "named"])["value"].mean()
    rows = []
    for kind in GROUPS:
        if kind in means.index.get_level_values("kind"):
            for name in means[kind].sort_values(kind="stable").index:
                own = regrets[regrets["named"] == name]
                cells = [_cell(own[own["scenario"] == job], _regret) for job in JOBS]
                rows.append([kind, f"`{name}`", *cells])
    return page(["group", "policy", *JOBS], rows)


def cloud_saved(results: Path) -> str:
    """What the paper claims, against staying on the start allocation: mean of the four jobs."""
    found = _summary(results)
    if found is None:
        return NOT_RECORDED
    means = found[found["scenario"].isin(JOBS)].groupby(["named", "metric"])["value"].mean()
    rows = []
    for name in ("reinforce", "multi-policy", "goodput_greedy", "fitted_logs", "random-search", "oracle_dynamic"):
        numbers = [means.get((name, metric)) for metric in ("time_saved", "cost_saved", "levels_gained")]
        rows.append([f"`{name}`", *("" if number is None else f"{number:.1f}" for number in numbers)])
    header = ["time saved (`time`), %", "cost saved (`cost`), %", "change of service levels met (`balanced`), %"]
    return page(["", *header], rows, "lrrr")


def cloud_fronts(results: Path) -> str:
    """Share of each front's hypervolume that best plans and learned policies have."""
    rows: dict[str, dict[str, str]] = {
        "best plans for four preferences": {"named": "oracle_dynamic"},
        "learned for these": {"named": "reinforce"},
        "best constant allocations for these": {"named": "oracle_static"},
    }
    four = _table(results, rows, _jobs("hypervolume", _two))
    if four == NOT_RECORDED:
        return four
    rows = {
        "best plans for eleven weighted sums": {"named": "oracle_dynamic"},
        "learned for these sums": {"named": "reinforce"},
        "learned for eleven weighted distances": {"named": "chebyshev"},
    }
    eleven = _table(results, rows, _jobs("hypervolume", _two, "_front"))
    return "\n".join([four, *eleven.splitlines()[2:]])


def cloud_front_parts(results: Path) -> str:
    """Share of the front of `movielens` that policies learned by distances have without their additions."""
    rows = {
        "all three": "chebyshev-movielens-front",
        "without sharing": "chebyshev-no-sharing",
        "without branches": "chebyshev-no-branches",
        "not distilled": "chebyshev-not-distilled",
        "none of them": "chebyshev-no-additions",
    }
    column = {"hypervolume": ({"scenario": "movielens_front", "metric": "hypervolume"}, share)}
    return _table(results, {label: {"policy": policy} for label, policy in rows.items()}, column)


def cloud_trainings(results: Path) -> str:
    """Trainings of the job until the regret first was at most .05, from each beginning and by search."""
    names = ("reinforce", "reinforce-from-logs", "reinforce-from-probes", "random-search", "bayesian-search")
    rows = {f"`{name}`": {"named": name} for name in names}
    return _table(results, rows, _jobs("episodes_needed", _thousands), "policy")


def cloud_needed(results: Path) -> str:
    """Trainings of a job until a search knew its allocation, with the interval over jobs and seeds, and for how many
    jobs it did.
    """
    found = _summary(results)
    names = {"jobs_recorded": "recorded jobs", "jobs_drawn": "drawn jobs", "jobs_left_out": "jobs left out"}
    if found is None or not found["scenario"].isin(names).any():
        return NOT_RECORDED
    searches = {
        "search_known_model": "performance model",
        "search_fitted": "fitted model",
        "search_gaussian_process": "Gaussian process",
        "search_parzen": "Parzen estimator, TPE",
        "search_halving": "successive halving",
        "search_random": "random search",
        "search_reinforce": "REINFORCE on each job",
        "reinforce-jobs": "REINFORCE on the drawn jobs",
    }
    lines = []
    for policy, label in searches.items():
        line = [f"`{policy}` ({label})"]
        for scenario in names:
            rows = found[(found["policy"] == policy) & (found["scenario"] == scenario)].set_index("metric")
            line += [_interval(rows, "trainings_needed", _few), _interval(rows, "above_best", _percent)]
            line.append(f"{rows['value']['found']:.0%}" if "found" in rows.index else "")
        lines.append(line)
    heads = [f"{name}: {what}" for name in names.values() for what in ("trainings", "above the best", "found")]
    return page(["search", *heads], lines)


def _interval(rows: pd.DataFrame, metric: str, form: Form) -> str:
    """A mean with its interval; empty where there is none."""
    if metric not in rows.index:
        return ""
    mean, low, high = (form(float(rows[column][metric])) for column in ("value", "ci_low", "ci_high"))
    return mean + (f" [{low}, {high}]" if low != high else "")


def _few(value: float) -> str:
    return f"{value:,.2g}" if value < 10 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{round(value, 3) + 0.0:.1%}"  # + 0.0 makes 0 of -0


def cloud_limits(results: Path) -> str:
    """What policies reach on the job with a deadline and a budget, and whether they keep both."""
    found = _summary(results)
    if found is None or not (found["scenario"] == "limits").any():
        return NOT_RECORDED
    names = ("oracle_dynamic", "oracle_static", "goodput_greedy", "fitted_logs", "reinforce-limits")
    names += ("multi-policy-limits", "horizontal", "threshold", "random", "static_start", "static_max")
    columns: dict[str, tuple[Mapping[str, str], Form]] = {
        "limits kept": ({"scenario": "limits", "metric": "limits_kept"}, _two),
        "regret": ({"scenario": "limits", "metric": "regret"}, _regret),
        "time, s": ({"scenario": "limits", "metric": "time"}, "{:.0f}".format),
        "cost, $": ({"scenario": "limits", "metric": "cost"}, _two),
    }
    return _table(results, {f"`{name}`": {"named": name} for name in names}, columns)


def cloud_beginnings(results: Path) -> str:
    """What REINFORCE reaches from each beginning, and with adapted weights, on limits of which one is always broken."""
    variants = {
        "fixed weights, `cold`": "reinforce-fixed",
        "fixed weights, `historical`": "reinforce-historical",
        "fixed weights, `baseline`": "reinforce-baseline",
        "adapted weights, `cold`": "reinforce-adapted",
    }
    columns: dict[str, tuple[Mapping[str, str], Form]] = {
        "regret": ({"metric": "regret"}, _regret),
        "severity of violations": ({"metric": "severity"}, _two),
        "service levels met": ({"metric": "sla_met"}, "{:.2f}".format),
        "trainings to a regret of .05": ({"metric": "episodes_needed"}, _thousands),
    }
    rows = {label: {"scenario": "ablations", "policy": policy} for label, policy in variants.items()}
    return _table(results, rows, columns)


def cloud_ablations(results: Path) -> str:
    """What the multi-policy actor-critic reaches with and without its parts."""
    variants = {
        "all parts": "multi-policy-all",
        "no reset": "multi-policy-no-reset",
        "one policy for all": "multi-policy-one-policy",
        "no SLA term": "multi-policy-no-sla",
    }
    rows = {label: {"scenario": "ablations", "policy": policy} for label, policy in variants.items()}
    rows["9 actions"] = {"scenario": "ablations_nine", "policy": "multi-policy-nine-actions"}
    rows["staying on the start allocation"] = {"scenario": "ablations", "policy": "static_start"}
    columns: dict[str, tuple[Mapping[str, str], Form]] = {
        "regret": ({"metric": "regret"}, _regret),
        "severity": ({"metric": "severity"}, _two),
        "time, s": ({"metric": "time"}, "{:.0f}".format),
        "cost, $": ({"metric": "cost"}, _two),
    }
    return _table(results, rows, columns)


def cloud_learners(results: Path) -> str:
    """Regret of all learners on one problem, the best first, and of what decides without learning there."""
    found = _summary(results)
    if found is None:
        return NOT_RECORDED
    found = found[(found["scenario"] == "learners") & (found["metric"] == "regret")]
    shown = found[found["trained_on"].notna() | found["policy"].isin(["static_start", "goodput_greedy"])]
    rows = []
    for row in shown.sort_values("value", kind="stable").itertuples():
        mean, low, high = map(_regret, (row.value, row.range_low, row.range_high))
        of_seeds = f"{low} to {high}" if row.range_over == "seeds" else ""
        rows.append([f"`{row.named}`", str(row.seeds), mean, of_seeds])
    return page(["policy", "seeds", "mean regret", "range over the seeds"], rows)


def cloud_minutes(results: Path) -> str:
    """Regret where decisions come each minute."""
    names: Sequence[str] = ("oracle_dynamic", "oracle_static", "goodput_greedy", "threshold", "static_start")
    column = {"regret": ({"scenario": "minutes", "metric": "regret"}, lambda value: share(max(0.0, value), 4))}
    return _table(results, {f"`{name}`": {"named": name} for name in names}, column)


def _regret(value: float) -> str:
    return share(max(0.0, value))  # rounding of floats gives -1e-16


def _two(value: float) -> str:
    return share(value, 2)


def _thousands(value: float) -> str:
    return f"{value:,.0f}"


TABLES: tuple[Callable[[Path], str], ...] = (
    *(cloud_policies, cloud_saved, cloud_fronts, cloud_front_parts, cloud_trainings),
    *(cloud_beginnings, cloud_ablations, cloud_learners, cloud_minutes, cloud_needed, cloud_limits),
)
