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
from collections.abc import Callable, Sequence
from pathlib import Path

import batch_tables
import pandas as pd
import ramp_tables
from scale_tables import scale_limits, scale_measured, scale_slurm, scale_worked_out
from table_parts import REPOSITORY, between, one, page, seeds_of, share

from schedlab.config.claims import read_claims

BLOCK = re.compile(r"(<!-- from (?P<source>\S+): (?P<name>\w+) -->\n).*?(<!-- end of (?P=name) -->)", flags=re.S)


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


OWN = (hetero_contended, cloud_reinforce, cloud_beginnings, cloud_ablations, cloud_learners, processes_threads, workflow_cost, headlines)
SCALE = (scale_limits, scale_measured, scale_worked_out, scale_slurm)
TABLES: dict[str, Callable[[Path], str]] = {
    function.__name__: function for function in (*batch_tables.TABLES, *ramp_tables.TABLES, *SCALE, *OWN)
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
