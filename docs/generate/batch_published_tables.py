"""Tables of the batch study on the windows of the published tables: rules, planner and what was learned, beside the
published numbers.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from table_parts import REPOSITORY, page

from schedlab.evaluation.claims import Claim, read_claims
from schedlab.studies.batch.legacy import LEGACY_RULES

TRACES = {"lublin-1": "Lublin-1", "sdsc": "SDSC-SP2", "hpc2n": "HPC2N", "lublin-2": "Lublin-2"}
LEDGER = {"lublin-1": "lublin1", "sdsc": "sdsc-sp2", "hpc2n": "hpc2n", "lublin-2": "lublin2"}  # as the claims call them
MEASURES = (
    ("mean", 2),
    ("median", 2),
    ("wait_mean", 0),
    ("wait_median", 0),
)  # of the dissertation's tests, with their digits
LEARNED = ("planner", "evolution", "rollout")


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
        rules = own[~own["policy"].isin([*LEARNED, *LEGACY_RULES])]
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
    mended = {"wfp3": "WFP3 (RLScheduler's)", "unicep": "UNICEP (RLScheduler's)"}
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


def _ledger() -> dict[str, Claim]:
    return {claim.id: claim for claim in read_claims(REPOSITORY / "conf", "batch")["batch"].claims}


def _of(results: Path, backfill: str, trace: str | None = None) -> pd.DataFrame:
    """The record's rows of one trace, or of all."""
    found = pd.read_csv(results / "batch_published.csv")
    return found[(found["backfill"] == backfill) & (True if trace is None else found["trace"] == trace)]


def _mean(own: pd.DataFrame, policy: str) -> str:
    (value,) = own.loc[own["policy"] == policy, "avg_bsld"]
    return f"{value:.2f}"


def _range(own: pd.DataFrame, policy: str) -> str:
    """The mean over seeds, with the least and the largest."""
    seeds = own.loc[own["policy"] == policy, "avg_bsld"]
    return f"{seeds.mean():.2f} ({seeds.min():.2f} to {seeds.max():.2f})"


def _published(trace: str, backfill: str) -> str:
    protocol = "" if backfill == "none" else "-backfill"
    return f"{_ledger()[f'bsld-{LEDGER[trace]}{protocol}-rl'].published:.2f}"


TABLES = (
    batch_published_rollouts,
    batch_published_rollouts_backfill,
    batch_published_rules,
    batch_published_tests_learned,
    batch_published_easy,
)
