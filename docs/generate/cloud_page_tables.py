"""Tables of the cloud study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from table_parts import page, share

from schedlab.studies.cloud.learners.reinforce import Distance

JOBS = ("cifar10", "imagenet", "movielens", "squad")
PREFERENCES = ("balanced", "cost", "time", "resource")
WITH_MODEL = ("goodput_greedy", "oracle_static", "oracle_dynamic")


def _rules(results: Path, scale: str = "small") -> pd.DataFrame:
    """What rules came to at a scale."""
    found = pd.read_csv(results / "cloud_rules.csv")
    return found[found["scale"] == scale]


def cloud_rules(results: Path) -> str:
    """Regret of the rules on the four jobs, preference balanced."""
    found = _rules(results)
    means = found[found["preference"] == "balanced"].groupby(["rule", "scenario"])["regret"].mean()
    order = [
        "goodput_greedy",
        "oracle_static",
        "bayesian",
        "static_start",
        "static_default",
        "threshold",
        "horizontal",
        "options",
    ]
    names = {"bayesian": "bayesian, mean of three seeds"}
    rows = [
        [names.get(rule, rule), *(_regret(means[rule, job]) for job in JOBS)]
        for rule in [*order, "static_min", "static_max"]
    ]
    return page(["rule", *JOBS], rows)


def less_than_start(results: Path, goal: str) -> pd.Series:
    """Return how much less time or cost the policies learned for it take than the start allocation, % and mean over
    jobs, by seed.
    """
    found = pd.read_csv(results / "cloud_reinforce.csv")
    found, rules = found[found["preference"] == goal], _rules(results)
    start = rules[rules["rule"] == "static_start"].drop_duplicates("scenario").set_index("scenario")[goal]
    return (100 * (1 - found[goal] / found["scenario"].map(start))).groupby(found["policy_seed"]).mean()


def share_of_front(results: Path, job: str, points: np.ndarray) -> float:
    """Hypervolume of points, (n, 2) time and cost, as a share of that of a job's front."""
    from schedlab.studies.cloud.rules.pareto import measures

    return measures(points, front(results, job, "front"))["hypervolume"]


def front(results: Path, job: str, kind: str) -> np.ndarray:
    """The points, (n, 2) time and cost, of `front` (all plans) or `static_front`, by rising time, or of `one_goal`:
    for cost, for time.
    """
    found = pd.read_csv(results / "cloud_fronts.csv")
    return found.loc[
        (found["scale"] == "small") & (found["scenario"] == job) & (found["front"] == kind), ["time", "cost"]
    ].to_numpy()


def best_plans(results: Path, job: str) -> np.ndarray:
    """Time and cost of the best plans for the four preferences, (4, 2)."""
    found = _rules(results)
    return found.loc[(found["scenario"] == job) & (found["rule"] == "oracle_dynamic"), ["time", "cost"]].to_numpy()


WEIGHTS = tuple(np.linspace(0.0, 1.0, 11))  # of cost, the rest of time


def best_for_sums(results: Path, job: str) -> np.ndarray:
    """Time and cost of the best plans for eleven weighted sums of cost and time, (11, 2); none where they were not
    asked for.
    """
    found = _rules(results, "full")
    return found.loc[
        (found["scenario"] == f"{job}_front") & (found["rule"] == "oracle_dynamic"), ["time", "cost"]
    ].to_numpy()


def best_for_distances(results: Path, job: str) -> np.ndarray:
    """Time and cost of the plans of a job's front that are nearest to its ends by eleven weighted distances, (11,
    2).
    """
    plans = front(results, job, "front")
    distance = Distance.between(plans[0], plans[-1])
    nearest = [int(np.argmin(distance.of(f"{weight:.1f}:{1 - weight:.1f}:0", plans))) for weight in WEIGHTS[1:-1]]
    return plans[[0, *nearest, -1]]


def learned_for_weights(results: Path, job: str, policy: str) -> list[float]:
    """Share of a job's front that the policies learned for these weights have, by seed; empty where none were
    learned.
    """
    found = pd.read_csv(results / "cloud_front_policies.csv").query(f"policy == '{policy}-{job}-front'")
    return [share_of_front(results, job, rows[["time", "cost"]].to_numpy()) for _, rows in found.groupby("policy_seed")]


def learned_for_preferences(results: Path, job: str) -> list[float]:
    """Share of a job's front that the policies learned for the four preferences have, by seed."""
    found = pd.read_csv(results / "cloud_reinforce.csv").query(f"scenario == '{job}'")
    return [share_of_front(results, job, rows[["time", "cost"]].to_numpy()) for _, rows in found.groupby("policy_seed")]


def cloud_fronts(results: Path) -> str:
    """The size and ends of each front, and what best plans, learned policies and constant allocations have of its
    hypervolume.
    """
    rows: dict[str, list[str]] = {name: [] for name in FRONT_ROWS}
    for job in JOBS:
        points = front(results, job, "front")
        dollars = "${:.0f}" if points[-1, 1] > 100 else "${:.1f}" if points[-1, 1] > 10 else "${:.2f}"
        first, last = (f"{time:,.0f} s {dollars.format(cost).replace('$0.', '$.')}" for time, cost in points[[0, -1]])
        best = best_plans(results, job)
        sets = [best, np.concatenate([best, front(results, job, "one_goal")]), best_for_sums(results, job)]
        sets += [best_for_distances(results, job), front(results, job, "static_front")]
        shares = [[share_of_front(results, job, own)] if len(own) else [] for own in sets]
        shares.insert(1, learned_for_preferences(results, job))
        shares.insert(4, learned_for_weights(results, job, "reinforce"))
        shares.insert(6, learned_for_weights(results, job, "chebyshev"))
        cells = [
            f"{len(points)}, {first} to {last}",
            *(share(float(np.mean(found)), 2) if found else "-" for found in shares),
        ]
        for name, cell in zip(FRONT_ROWS, cells, strict=True):
            rows[name].append(cell)
    return page(["", *JOBS], [[name, *cells] for name, cells in rows.items()])


FRONT_ROWS = (
    "plans on the front, time and cost of its ends",
    "hypervolume of the best plans for four preferences",
    "hypervolume of policies learned for these, mean of five seeds",
    "hypervolume of the best plans for four preferences, for cost alone and for time alone",
    "hypervolume of the best plans for eleven weighted sums of cost and time",
    "hypervolume of policies learned for these sums, mean of five seeds",
    "hypervolume of the nearest plans by eleven weighted distances",
    "hypervolume of policies learned for these distances, mean of five seeds",
    "hypervolume of constant allocations",
)


def cloud_front_parts(results: Path) -> str:
    """Share of the front's hypervolume that a set learned by distances has without its additions, each seed."""
    found = pd.read_csv(results / "cloud_front_parts.csv").set_index(["scenario", "variant"])["hypervolume"]
    told = {
        "all": "all three",
        "no sharing": "without sharing",
        "no branches": "without branches",
        "not distilled": "not distilled",
    }
    rows = [
        [name, ", ".join(map(share, found["movielens_front", variant]))]
        for variant, name in (told | {"none": "none of them"}).items()
    ]
    return page(["", "hypervolume on `movielens`, two seeds"], rows)


def cloud_straight(results: Path) -> str:
    """Regret of going straight to what a beginning points at, for the four preferences."""
    found = pd.read_csv(results / "cloud_straight.csv").set_index(["beginning", "scenario", "preference"])["regret"]
    modes = ("historical", "similar", "baseline")
    rows = [
        [mode, *(", ".join(share(max(0.0, found[mode, job, name]), 2) for name in PREFERENCES) for job in JOBS)]
        for mode in modes
    ]
    return page(["", *JOBS], rows)


def episodes_to_gain(results: Path) -> pd.Series:
    """Return the episodes to 95 % of the cold start's gain, mean of the preferences, by job, beginning and seed."""
    return (
        pd.read_csv(results / "cloud_initialisation.csv").groupby(["scenario", "beginning", "seed"])["episodes"].mean()
    )


def cloud_initialisation(results: Path) -> str:
    """Episodes that REINFORCE needs from each beginning, a number a seed, or one where they are equal."""
    found, rows = episodes_to_gain(results), []
    for job in JOBS:
        each = [
            [f"{episodes:,.0f}" for episodes in found[job, mode]]
            for mode in ("cold", "historical", "baseline", "similar")
        ]
        rows.append([job, *(" and ".join(dict.fromkeys(numbers)) for numbers in each)])
    return page(["", "cold", "historical", "baseline (and five intervals of probes)", "similar"], rows)


FITTED = {
    "cifar10": "ResNet-18 / CIFAR-10",
    "imagenet": "ResNet-50 / ImageNet",
    "ncf": "NeuMF / MovieLens",
    "bert": "BERT-base / SQuAD",
}


def cloud_fits(results: Path) -> str:
    """How well the performance model fits recorded step times."""
    found = pd.read_csv(results / "cloud_fits.csv").set_index("model")
    columns = ["median_relative_error", "interpolation_median_relative_error", "extrapolation_median_relative_error"]
    rows = []
    for model, name in FITTED.items():
        of_all, between, beyond = (f"{100 * found.loc[model, column]:.1f} %" for column in columns)
        rows.append([name, f"{found.loc[model, 'rows']:,.0f}", of_all, f"{between}, {beyond}"])
    return page(
        ["model", "rows", "median relative error", "of placements left out: between measured ones, beyond them"], rows
    )


HELD_OUT = {
    "rows": "a fifth of the rows left out",
    "batches": "each batch left out",
    "scalability": "up to 64 GPUs from 1 to 16",
    "constants": "penalties chosen on the other three",
    "any constant": "the worst of 20 pairs of penalties",
    "alone": "step times alone, absolute errors",
    "epochs": "four placements with a batch each, each left out",
}


def cloud_fit_held_out(results: Path) -> str:
    """How the fit does on what it was not made on."""
    found = pd.read_csv(results / "cloud_fit_held_out.csv").set_index(["check", "model"])["median_relative_error"]
    rows = [[told, *(f"{100 * found[check, model]:.1f} %" for model in FITTED)] for check, told in HELD_OUT.items()]
    return page(["median relative error", *FITTED.values()], rows)


def cloud_reinforce(results: Path) -> str:
    """Regret of the learned policies, mean and worst seed, beside that of the best rule without a model."""
    found = pd.read_csv(results / "cloud_reinforce.csv")
    rules = _rules(results)
    best = (
        rules[~rules["rule"].isin(WITH_MODEL)]
        .groupby(["scenario", "preference", "rule"])["regret"]
        .mean()
        .groupby(level=[0, 1])
        .min()
    )
    rows = []
    for job in JOBS:
        regret = found[found["scenario"] == job].groupby("preference")["regret"]
        cells = [
            f"{_regret(regret.mean()[name])}, {_regret(regret.max()[name])}; {share(best[job, name])}"
            for name in PREFERENCES
        ]
        rows.append([f"{job}: mean, worst; rule" if job == "cifar10" else job, *cells])
    return page(["", *PREFERENCES], rows)


def cloud_beginnings(results: Path) -> str:
    """What REINFORCE reaches from each beginning, and with adapted weights: means of preferences, range of the
    seeds where they differ.
    """
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
        by_preference = ", ".join(share(max(0.0, means[key]), 2) for key in PREFERENCES)
        columns = {
            "severity": lambda value: share(value, 2),
            "time": "{:.0f}".format,
            "cost": lambda value: share(value, 2),
        }
        others = [_spread(own, column, form) for column, form in columns.items()]
        rows.append([name, _spread(own, "regret", _regret), by_preference, *others])
    return page(["", "regret", "for balanced, cost, time, resource", "severity", "time, s", "cost, $"], rows)


def cloud_learners(results: Path) -> str:
    """Regret of all learners on one problem, the best first."""
    found = pd.read_csv(results / "cloud_learners.csv")
    names = {
        "reinforce": "`reinforce`",
        "dqn": "DQN",
        "multi-policy": "`multi_policy`",
        "maskable-ppo": "PPO with masks",
    }
    lengths = {"reinforce": "9,600 episodes", "multi-policy": "2,400 episodes"}
    regrets = {name: found.loc[found["policy"] == f"{name}-learners", "regret"] for name in [*names, "ppo", "a2c"]}
    rows = []
    for policy, of in sorted(regrets.items(), key=lambda item: item[1].mean()):
        length = lengths.get(policy, "64,000 decisions, 3,200 episodes")
        rows.append(
            [names.get(policy, policy.upper()), length, str(len(of)), _regret(of.mean()), ", ".join(map(_regret, of))]
        )
    return page(["learner", "learned on", "seeds", "regret, mean", "each seed"], rows)


def _spread(rows: pd.DataFrame, column: str, form: Callable[[float], str]) -> str:
    """Mean of seeds and preferences, and in brackets the smallest and the largest seed's mean where these differ as
    written.
    """
    seeds = rows.groupby("policy_seed")[column].mean()
    low, high = form(seeds.min()), form(seeds.max())
    return form(seeds.mean()) + (f" ({low} to {high})" if low != high else "")


def _regret(value: float) -> str:
    return share(max(0.0, value))  # rounding of floats gives -1e-16


TABLES: tuple[Callable[[Path], str], ...] = (
    *(
        cloud_rules,
        cloud_fronts,
        cloud_front_parts,
        cloud_straight,
        cloud_initialisation,
        cloud_fits,
        cloud_fit_held_out,
    ),
    *(cloud_reinforce, cloud_beginnings, cloud_ablations, cloud_learners),
)
