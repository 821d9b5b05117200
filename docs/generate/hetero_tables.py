"""Tables of the hetero study and of the simulator inside it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from table_parts import page, percent

CONTENDED = {
    "easy-sjf-high_mem_bw": "EASY, shortest job first, cores chosen for bandwidth",
    "easy-high_mem_bw": "EASY, cores chosen for bandwidth",
    "easy": "EASY, free cores with the lowest numbers",
    "conservative": "conservative backfilling, free cores with the lowest numbers",
    "reinforce-contended": "learned",
    "shortest-high_mem_bw": "best pair in hindsight",
    "shortest-high_gflops": "pair chosen on validation, and by a search with as many episodes",
    "random-random": "pair drawn at random at each decision",
}

PHYSICS = ("physics-step", "physics-proportional", "physics-fair", "physics-capped", "physics-failing")


def hetero_contended(results: Path) -> str:
    """Policies of the scenario `contended` on its test workloads, best first, with their ratio to the learned one."""
    found = pd.read_csv(results / "hetero_contended.csv")
    policies = (
        found[found["policy"].isin(CONTENDED)]
        .groupby("policy")
        .agg(mean=("mean", "mean"), geometric=("geometric_mean", "mean"), least=("mean", "min"), most=("mean", "max"))
    )
    learned = policies.loc["reinforce-contended"]
    rows = []
    for policy, row in policies.sort_values("mean").iterrows():
        spread = f" ({row['least']:.1f} to {row['most']:.1f})" if row["least"] < row["most"] else ""
        shown = [f"{row['mean']:.1f}{spread}", f"{row['geometric']:.1f}", f"{learned['mean'] / row['mean']:.2f}"]
        rows.append([f"`{policy}`", CONTENDED[str(policy)], *shown])
    header = ["policy", "", "mean bounded slowdown (range of seeds)", "geometric mean", "learned mean / this mean"]
    return page(header, rows, "llrrr")


def hetero_learning(results: Path) -> str:
    """Learning on `contended` with one thing changed, in the order of the record."""
    found = pd.read_csv(results / "hetero_learning.csv")
    rows = []
    for variant, own in found[found["learning_cpu_s"].notna()].groupby("variant", sort=False):
        scores = own["mean_bounded_slowdown"]
        means = f"{', '.join(f'{value:.1f}' for value in scores)}" + (
            f"; mean {scores.mean():.1f}" if len(own) > 1 else ""
        )
        seconds = own["learning_cpu_s"].mean()
        rows.append(
            [variant, means, ", ".join(map(str, own["place"])), f"{seconds:.0f}" if seconds >= 1 else f"{seconds:.1f}"]
        )
    return page(
        ["", "bounded slowdown, by seed", "place among the 36 pairs", "CPU seconds of learning a seed"], rows, "lllr"
    )


def hetero_hindsight(results: Path) -> str:
    """Playing the best pair at each decision, by what is tried."""
    rows = [
        [row.tried, str(row.pairs), f"{row.mean_bounded_slowdown:.1f}", f"{row.percent_changed:.0f} %"]
        for row in pd.read_csv(results / "hetero_hindsight.csv").itertuples()
    ]
    return page(["tried at each decision", "pairs", "bounded slowdown", "decisions that change"], rows, "lrrr")


def hetero_kth(results: Path) -> str:
    """Policies on the last pieces of a trace, best first."""
    found = pd.read_csv(results / "hetero_kth.csv")
    rows = []
    for policy, own in found.groupby("policy", sort=False):
        name = f"`{policy}`" + (f", seeds {', '.join(map(str, own['seed']))}" if len(own) > 1 else "")
        actions = own["actions"].dropna().astype(int)
        rows.append([name, ", ".join(f"{value:.1f}" for value in own["mean"]), ", ".join(map(str, actions))])
    return page(["policy", "bounded slowdown", "pairs that it plays"], rows)


def hetero_schedulers(results: Path) -> str:
    """Schedulers on cores that are alike and on cores that are not, best on the former first."""
    found = pd.read_csv(results / "hetero_rules.csv").set_index(["scenario", "policy"])
    forms = {
        "mean_bounded_slowdown": lambda value: f"{value:.0f}",
        "mean_wait_s": lambda value: f"{value / 3600:.1f}",
        "makespan_s": lambda value: f"{value / 3600:.1f}",
        "utilisation": lambda value: f"{value:.2f}",
        "energy_j": lambda value: f"{value / 1e6:.1f}",
    }
    rows = [
        [
            f"`{policy}`",
            *(
                f"{form(found.loc[('alike', policy), key])} / {form(found.loc[('trio', policy), key])}"
                for key, form in forms.items()
            ),
        ]
        for policy in found.loc["alike"].index
    ]
    return page(
        ["scheduler", "bounded slowdown", "waiting time (h)", "makespan (h)", "utilisation", "energy (MJ)"], rows
    )


def hetero_thesis(results: Path) -> str:
    """The thesis' pairs, and EASY on the primer, on the one workload of each scenario."""
    found = pd.read_csv(results / "hetero_rules.csv")
    pair = found["policy"].isin(["first-high_gflops", "shortest-high_gflops", "shortest-high_mem_bw"])
    found = found[pair | ((found["scenario"] == "primer_gaia") & (found["policy"] == "easy"))]
    rows = [
        [
            f"`{row.scenario}`",
            f"`{row.policy}`",
            f"{row.mean_bounded_slowdown:,.1f}",
            f"{row.mean_wait_s / 3600:.1f}",
            f"{row.makespan_s / 3600:.1f}",
            f"{row.energy_j / 1e9:.2f}",
            percent(row.oversubscription),
        ]
        for row in found.itertuples()
    ]
    head = ["scenario", "policy", "bounded slowdown", "waiting time (h)", "makespan (h)", "energy (GJ)"]
    return page([*head, "time over-subscribed"], rows, "llrrrrr")


def hetero_objectives(results: Path) -> str:
    """The pair with the largest time-weighted sum of each objective."""
    rows = [
        [
            f"`{row.objective}`",
            f"`{row.best_pair}`",
            f"{row.mean_slowdown:.1f}" if row.mean_slowdown < 100 else f"{row.mean_slowdown:.0f}",
            f"{row.mean_waiting_time_h:.1f}",
            f"{row.makespan_h}",
            f"{row.energy_gj:.2f}",
        ]
        for row in pd.read_csv(results / "hetero_objectives.csv").itertuples()
    ]
    return page(
        ["objective", "its best pair", "mean slowdown", "mean waiting time (h)", "makespan (h)", "energy (GJ)"], rows
    )


def hetero_sensitivity(results: Path) -> str:
    """Values of the queue's variation by its sensitivity."""
    found = pd.read_csv(results / "hetero_sensitivity.csv")
    rows = [
        ["decisions at which v is 0.5", *(f"{value:g} %" for value in found["percent_at_half"])],
        ["decisions at which v is 0 or 1", *(f"{value:g} %" for value in found["percent_at_ends"])],
        ["values that v takes", *map(str, found["values"])],
    ]
    return page(["s", *(f"{value:g}" for value in found["queue_sensitivity"])], rows)


def hetero_launch(results: Path) -> str:
    """Episodes until an agent prefers the right pairs, by what was changed."""
    found = pd.read_csv(results / "hetero_launch.csv", keep_default_na=False)
    rows = []
    for (agent, changed), own in found.groupby(["agent", "changed"], sort=False):
        name, _, value = changed.partition(" ")
        rows.append(
            [
                f"`{agent}`",
                f"`{name}` {value}" if changed else "",
                ", ".join(map(str, own.sort_values("seed")["episodes"])),
            ]
        )
    return page(["agent", "changed", "episodes, by seed"], rows)


def hetero_stock(results: Path) -> str:
    """Stock learners on the learning case."""
    rows = []
    for row in pd.read_csv(results / "hetero_stock.csv").itertuples():
        exact = row.lowest_probability == 1
        probabilities = "1, 1" if exact else f"{row.lowest_probability:.4f}, {row.highest_probability:.4f}"
        name = f"`{row.learner}`" + (" (greedy)" if row.learner == "dqn" else "")
        rows.append([name, probabilities, f"{row.least_cpu_s:.1f} to {row.most_cpu_s:.1f}"])
    return page(["learner", "lowest and highest probability", "CPU seconds a seed"], rows)


def hetero_speed(results: Path) -> str:
    """CPU seconds of an episode by platform and pair."""
    found = pd.read_csv(results / "hetero_speed.csv")
    cores, rows = {"gaia": "gaia, 2,280 cores", "mixed": "mixed, 10,002 cores"}, []
    for row in found[found["case"].str.startswith("episode")].itertuples():
        _, platform, pair = row.case.split()
        rows.append(
            [cores.pop(platform, platform), f"`{pair}`", f"{row.median_cpu_s:.2f} s", f"{row.fastest_cpu_s:.2f} s"]
        )
    return page(["platform", "pair", "one episode, median", "fastest"], rows)


def hetero_physics(results: Path) -> str:
    """Mean bounded slowdown and rank of each policy under each physics, best with HDeepRM's physics first."""
    found = pd.read_csv(results / "hetero_physics.csv")
    means = found.pivot_table("mean_bounded_slowdown", "policy", "scenario")
    ranks, rows = means.rank(method="min").astype(int), []
    for policy in means.sort_values("physics-step").index:
        cells = [f"{means.loc[policy, name]:.2f} ({ranks.loc[policy, name]})" for name in PHYSICS]
        rows.append([f"`{policy}`", *cells])
    return page(["policy", *(f"`{name}`" for name in PHYSICS)], rows, "lrrrrr")


def batsim_simulator(results: Path) -> str:
    """Cases of benchmarks/simulator.py."""
    rows = [
        [
            f"`{row.case}`",
            f"{row.jobs:,}",
            f"{row.seconds:.2f}",
            f"{row.jobs_per_s:,}",
            f"{row.memory_mb:,.1f}",
            f"{row.bytes_per_job:,}",
        ]
        for row in pd.read_csv(results / "batsim_simulator.csv").itertuples()
    ]
    return page(["case", "jobs", "seconds", "jobs/s", "memory, MB", "bytes/job"], rows, "lrrrrr")


def batsim_profile(results: Path) -> str:
    """Shares of a case's time by part of the code."""
    found = pd.read_csv(results / "batsim_profile.csv")
    rows = [[row.part, percent(row.share)] for row in found[found["share"] >= 0.005].itertuples()]
    return page(["part", "share of the time"], rows, "lr")


TABLES = (
    hetero_contended,
    hetero_learning,
    hetero_hindsight,
    hetero_physics,
    hetero_kth,
    hetero_schedulers,
    hetero_thesis,
    hetero_objectives,
    hetero_sensitivity,
    hetero_launch,
    hetero_stock,
    hetero_speed,
    batsim_simulator,
    batsim_profile,
)
