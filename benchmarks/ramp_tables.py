"""Tables of the ramp study."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from table_parts import REPOSITORY, one, page, seeds_of, share

from schedlab.config.claims import read_claims


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


def ramp_baselines(results: Path) -> str:
    """Blocking rates of the published system's baselines, in brackets the published ones, from the ledger."""
    del results
    ledger = {claim.id: claim for claim in read_claims(REPOSITORY / "conf", "ramp")["ramp"].claims}
    rows = []
    for rule in ("para_max", "para_min", "random"):
        claims = [ledger[f"blocking-{rule.replace('_', '-')}-{letter}"] for letter in "abcd"]
        rows.append([rule, *(f"{share(claim.ours_reference)} ({share(claim.published)})" for claim in claims)])
    return page(["rule", *"ABCD"], rows)


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


TABLES = (ramp_learning, ramp_graph_policy, ramp_baselines, ramp_loads, ramp_quantum)
