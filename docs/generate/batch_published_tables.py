"""Tables of the batch study on the windows of the published tables: rules, planner and what was learned, beside the
published numbers.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from table_parts import REPOSITORY, page, share

from schedlab.evaluation.claims import ClaimSettings, read_claims

TRACES = {"lublin-1": "Lublin-1", "sdsc": "SDSC-SP2", "hpc2n": "HPC2N", "lublin-2": "Lublin-2"}
LEDGER = {"lublin-1": "lublin1", "sdsc": "sdsc-sp2", "hpc2n": "hpc2n", "lublin-2": "lublin2"}  # as the claims call them
MEASURES = (
    ("mean", 2),
    ("median", 2),
    ("wait_mean", 0),
    ("wait_median", 0),
)  # of the dissertation's tests, with their digits
LEARNED = ("planner", "evolution", "rollout")


def batch_published_search(results: Path) -> str:
    """Searched linear priorities on the ten windows, one number a seed."""
    rows = []
    for trace, name in TRACES.items():
        own = _of(results, "none", trace)
        rows.append(
            [name, _published(trace, "none"), _mean(own, "f1"), _mean(own, "planner"), _seeds(own, "evolution")]
        )
    return page(["", "published RL", "`f1`", "planner", "searched"], rows, "lrrrr")


def batch_published_rollouts(results: Path) -> str:
    """Rollouts on the ten windows without backfilling, mean and range of the seeds."""
    return _rollouts(results, "none")


def batch_published_rollouts_backfill(results: Path) -> str:
    """The same rollouts under the published backfilling."""
    return _rollouts(results, "legacy")


def _rollouts(results: Path, backfill: str) -> str:
    shown = ("f1", "f2", "f4", "smallest")
    rows = []
    for trace, name in TRACES.items():
        own = _of(results, backfill, trace)
        rules = own[~own["policy"].isin(LEARNED) & ~own["policy"].str.endswith("_legacy")]
        best = rules.loc[rules["avg_bsld"].idxmin(), "policy"]
        cells = [name, _published(trace, backfill), *(_mean(own, rule) for rule in shown), _mean(own, "planner")]
        rows.append([*cells, f"`{best}` {_mean(own, best)}", _range(own, "rollout")])
    (seeds,) = set(_of(results, backfill)[lambda found: found["policy"] == "rollout"].groupby("trace").size())
    header = ["", "published RL", *(f"`{rule}`" for rule in shown), "planner", "best of twelve rules"]
    header.append(f"rollouts, mean of {seeds} seeds (least to largest)")
    return page(header, rows, "lrrrrrrlr")


def batch_published_rules(results: Path) -> str:
    """Rules on the ten windows, without and with the published backfilling; in brackets two of them as published."""
    rules = {"fcfs": "FCFS", "sjf": "SJF", "f1": "F1", "f2": "F2", "f3": "F3", "f4": "F4", "smallest": "smallest"}
    mended = {"wfp3": "WFP3 (as published)", "unicep": "UNICEP (as published)"}
    rows = []
    for trace, name in TRACES.items():
        both = [_of(results, backfill, trace) for backfill in ("none", "legacy")]
        pairs = {
            rule: " / ".join(_mean(own, rule) for own in both)
            for rule in (*rules, *mended, *(f"{rule}_legacy" for rule in mended))
        }
        rows.append(
            [name, *(pairs[rule] for rule in rules), *(f"{pairs[rule]} ({pairs[f'{rule}_legacy']})" for rule in mended)]
        )
    return page(["", *rules.values(), *mended.values()], rows)


def batch_published_easy(results: Path) -> str:
    """Three rules with the published backfilling and with the textbook's EASY."""
    traces = ("lublin-1", "sdsc", "hpc2n")
    rows = []
    for rule in ("fcfs", "sjf", "f1"):
        pairs = [
            ", ".join(_mean(_of(results, backfill, trace), rule) for backfill in ("legacy", "easy")) for trace in traces
        ]
        rows.append([rule.upper(), *pairs])
    first, *others = (TRACES[trace] for trace in traces)
    return page(["", f"{first}: published, EASY", *others], rows, "lrrr")


def batch_published_utilisation(results: Path) -> str:
    """Utilisation on the ten windows as published and here; in brackets what two of the rules reach as they are meant.
    The ledger alone.
    """
    del results
    ledger, rules = _ledger(), {"fcfs": "FCFS", "wfp3": "WFP3", "unicep": "UNICEP", "sjf": "SJF", "f1": "F1"}
    rows = []
    for protocol, words in (("", ""), ("-backfill", ", backfilling")):
        for trace, name in TRACES.items():
            stem = f"util-{LEDGER[trace]}{protocol}"
            cells = []
            for claim in (ledger[f"{stem}-{rule}"] for rule in rules):
                repaired = "" if claim.ours_repaired is None else f" ({share(claim.ours_repaired)})"
                cells.append(f"{share(claim.published)}, {share(claim.ours_reference)}{repaired}")
            learned = ledger[f"{stem}-rl"]
            rows.append([f"{name}{words}", *cells, f"{share(learned.published)}, {share(learned.ours_repaired)}"])
    return page(["", *rules.values(), "learned, rollouts here"], rows)


def batch_published_tests(results: Path) -> str:
    """The dissertation's tables: published, its baselines as it ran them, the rules as they are meant; its PPO. The
    ledger alone.
    """
    del results
    ledger = _ledger()
    kinds = {
        "test": ("mean bounded slowdown", 2),
        "median": ("median", 2),
        "wait-mean": ("mean wait in s", 0),
        "wait-median": ("median wait in s", 0),
    }
    rows = []
    for trace, name in {"hpc2n": "HPC2N", "hpc2n-backfill": "HPC2N, backfilling", "sdsc-sp2": "SDSC-SP2"}.items():
        for kind, (what, digits) in kinds.items():
            if f"{kind}-{trace}-fcfs" not in ledger:
                continue
            cells = [_three(ledger[f"{kind}-{trace}-{rule}"], digits) for rule in ("fcfs", "f1", "sjf", "smallest")]
            learned = [
                f"{claim.published:.{digits}f}"
                for id_, claim in ledger.items()
                if id_.startswith(f"{kind}-{trace}-ppo")
            ]
            if kind == "test":
                learned += [f"{claim.published:.2f}" for id_, claim in ledger.items() if id_.startswith(f"{trace}-ppo")]
            rows.append([f"{name}: {what}", *cells, ", ".join(learned)])
    return page(["", "FCFS", "F1", "SJF", "smallest", "PPO, published"], rows)


def batch_published_tests_learned(results: Path) -> str:
    """What was learned as the dissertation did, and rollouts, on its windows: a number a seed."""
    found = pd.read_csv(results / "batch_published_tests.csv")
    names = {"published_test_hpc2n": "HPC2N", "published_test_hpc2n_backfill": "HPC2N, backfilling in the test alone"}
    rows = []
    for (scenario, policy), own in found.groupby(["scenario", "policy"], sort=False):
        own = own.sort_values("seed")
        cells = [", ".join(f"{value:.{digits}f}" for value in own[key]) for key, digits in MEASURES]
        rows.append([names[scenario], f"`{policy}`", *cells, f"{own['cpu_seconds'].mean():.0f}"])
    header = ["", "learned", "mean bounded slowdown", "median", "mean wait in s", "median wait in s", "CPU seconds"]
    return page(header, rows, "llrrrrr")


def _three(claim: ClaimSettings, digits: int) -> str:
    return " / ".join(f"{value:.{digits}f}" for value in (claim.published, claim.ours_reference, claim.ours_repaired))


def _ledger() -> dict[str, ClaimSettings]:
    return {claim.id: claim for claim in read_claims(REPOSITORY / "conf", "batch")["batch"].claims}


def _of(results: Path, backfill: str, trace: str | None = None) -> pd.DataFrame:
    """The record's rows of one trace, or of all."""
    found = pd.read_csv(results / "batch_published.csv")
    return found[(found["backfill"] == backfill) & (True if trace is None else found["trace"] == trace)]


def _mean(own: pd.DataFrame, policy: str) -> str:
    (value,) = own.loc[own["policy"] == policy, "avg_bsld"]
    return f"{value:.2f}"


def _seeds(own: pd.DataFrame, policy: str) -> str:
    return ", ".join(f"{value:.2f}" for value in own[own["policy"] == policy].sort_values("seed")["avg_bsld"])


def _range(own: pd.DataFrame, policy: str) -> str:
    """The mean over seeds, with the least and the largest."""
    seeds = own.loc[own["policy"] == policy, "avg_bsld"]
    return f"{seeds.mean():.2f} ({seeds.min():.2f} to {seeds.max():.2f})"


def _published(trace: str, backfill: str) -> str:
    protocol = "" if backfill == "none" else "-backfill"
    return f"{_ledger()[f'bsld-{LEDGER[trace]}{protocol}-rl'].published:.2f}"


TABLES = (
    batch_published_search,
    batch_published_rollouts,
    batch_published_rollouts_backfill,
    batch_published_rules,
    batch_published_utilisation,
    batch_published_tests,
    batch_published_tests_learned,
    batch_published_easy,
)
