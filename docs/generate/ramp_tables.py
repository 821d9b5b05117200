"""Tables of the ramp study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
from scipy import stats
from table_parts import REPOSITORY, page, share

from schedlab.config.composition import Composer, option_names
from schedlab.config.settings import SCALES
from schedlab.evaluation.claims import read_claims

SCENARIOS = {  # file of conf/scenario/ramp -> its content
    "uniform": "beta uniform between 0.1 and 1 (A), shipped graphs",
    "tight": "`uniform` with B: beta mostly between 0.15 and 0.4",
    "medium": "`uniform` with C: beta around 0.5",
    "loose": "`uniform` with D: beta mostly between 0.6 and 0.85",
    "free_blocks": "`uniform`; only degrees with a free block are valid",
    "placement": "`free_blocks`; a job stays on the servers of its most split ops, or takes any free servers",
    "torus": "`uniform` on a torus of 32 servers instead of RAMP",
    "quantum": "`uniform` with one of two quanta; numbers of shards for which no block exists are kept or rounded down",
    "servers": "`uniform` on 8 to 512 servers, with the same load per server",
    "interarrival": "`uniform` with an arrival every 50 to 12,000 s",
    "uniform_gaps": "`uniform` with random arrivals: exponential gaps, gamma gaps (bursts), or an hourly rate",
    "unlimited": "beta 1, an arrival every 200 to 3000 s",
    "network": "six traced models in ms, each alone on 8 to 128 servers and split over all of them",
    "published": "the published experiment with its defects; beta from A to D",
    "published_repaired": "`published_*` without the defects",
    "published_blocks": "`published_*`; only degrees with a free block are valid",
    "published_inside": "`published_blocks_*`; a job stays on the servers of its most split ops",
    "published_any_servers": "`published_blocks_*`; a job takes any free servers",
    "published_interarrival": "`published_a` with an arrival every 50 to 12,000 s",
    "published_exponential": "`published_*` with exponential gaps between arrivals",
    "published_ms": "the published graphs in ms, without the defects; beta from A to D",
    "published_ms_exponential": "`published_ms_*` with exponential gaps between arrivals",
    "defect": "`published_a` with one defect at a time, without defects, and with all",
    "defect_ms": "`defect_*` with the times of graphs in ms",
    "graphs_seen": "random graphs with times in ms, for learning ([notebook](../notebook/ramp_graph_policy.md))",
    "graphs_unseen": "further random graphs of the same generator",
    "graphs_traced": "the shipped (traced) graphs in ms",
    "graphs_profiles": "the published graphs in ms",
    "graphs_only": "each of the published graphs alone, for policies that learned on the other four",
}


def ramp_scenarios(_results: Path) -> str:
    """A row for each file of scenarios: names, content, and the scales at which they run."""
    composer, rows = Composer(REPOSITORY / "conf", "full"), []
    if missing := {*option_names(REPOSITORY / "conf/scenario/ramp")} ^ SCENARIOS.keys():
        raise KeyError(f"SCENARIOS and conf/scenario/ramp differ in {', '.join(sorted(missing))}")
    for file, content in SCENARIOS.items():
        scales: dict[str, list[str]] = {}
        members = dict(composer.members("scenario/ramp", file))
        for name, composed in members.items():
            scales.setdefault(_scales(composed.values.get("scales", SCALES)), []).append(name)
        most = max(scales, key=lambda shown: len(scales[shown]))
        others = [f"{', '.join(f'`{name}`' for name in scales[shown])}: {shown}" for shown in scales if shown != most]
        first, *_, last = [*members, *members]
        named = f"`{first}` to `{last}` ({len(members)})" if len(members) > 1 else f"`{first}`"
        rows.append([named, content, "; ".join([most, *others])])
    return page(["scenarios", "content", "scales"], rows)


def _scales(scales: Sequence[str]) -> str:
    return "all" if {*scales} == {*SCALES} else ", ".join(f"`{scale}`" for scale in scales)


def _blocked(results: Path) -> pd.Series:
    """Blocking rates of the study's record on test episodes, by scenario and policy; a policy that was learned there is
    called by its recipe.
    """
    found = pd.read_csv(results / "ramp/summary.csv", keep_default_na=False, na_values=[""], low_memory=False)
    found = found[(found["split"] == "test") & (found["metric"] == "blocking_rate")]
    policies = found["recipe"].where(found["trained_on"] == found["scenario"], found["policy"])
    return pd.Series(found["value"].to_numpy(), index=[found["scenario"], policies]).sort_index()


def ramp_learning(results: Path) -> str:
    """Blocking rates in the published setting: what an earlier program learned, and the study's record."""
    rates, learned = _blocked(results), pd.read_csv(results / "ramp_learning.csv").set_index("scenario")
    ledger = {claim.id: claim.published for claim in read_claims(REPOSITORY / "conf", "ramp")["ramp"].claims}
    own = [learned.loc[f"published_{letter}"] for letter in "abcd"]

    def of(policy: str) -> list[str]:
        return [share(rates[f"published_{letter}", policy]) for letter in "abcd"]

    fixed = [rates[f"published_blocks_{letter}"].filter(regex="^fixed-|para_max|sequential") for letter in "abcd"]
    rows = [
        ["`lp_bound`, a bound that no policy reaches", *of("lp_bound")],
        [
            "**`afterstate`** (informed), mean of five seeds",
            *(f"{share(row['blocking_rate'])} [{share(row['low'])}, {share(row['high'])}]" for row in own),
        ],
        ["`rollouts` at decision time (informed), one seed", *of("rollouts")],
        ["`table`, a tuned degree for each limit", *of("table")],
        ["best fixed degree, on five episodes", *(f"{share(found.min())} (`{found.idxmin()}`)" for found in fixed)],
        ["published PAC-ML", *(share(ledger[f"blocking-pac-ml-{letter}"]) for letter in "abcd")],
        ["mean speed-up, `afterstate`", *(share(row["speedup"], 2) for row in own)],
        ["mean speed-up, published PAC-ML", *(share(ledger[f"speedup-pac-ml-{letter}"], 2) for letter in "abcd")],
    ]
    return page(["", *"ABCD"], rows)


PLACEMENTS = {"first fit": "published_blocks", "inside": "published_inside", "any servers": "published_any_servers"}
PLACED = (
    "fixed-2",
    "fixed-4",
    "fixed-6",
    "fixed-8",
    "para_max",
    "para_min",
    "table",
    "rollouts",
    "block-rollouts",
    "afterstate",
)
NOT_RECORDED = "Not recorded yet; `schedlab record full ramp` writes it after a finished run."


def ramp_placement(results: Path) -> str:
    """Blocking rates by placement: first fit / inside / any servers, with one mask; the least of a column in bold."""
    if not (results / "ramp/summary.csv").is_file():
        return NOT_RECORDED
    rates = _blocked(results).to_dict()
    columns = {letter: [f"{scenario}_{letter}" for scenario in PLACEMENTS.values()] for letter in "abcd"}
    least = {
        letter: min((rates[key] for key in rates if key[0] in own and key[1] in PLACED), default=None)
        for letter, own in columns.items()
    }

    def cell(policy: str, letter: str) -> str:
        own = [rates.get((scenario, policy)) for scenario in columns[letter]]
        shown = ("-" if rate is None else share(rate) for rate in own)
        bold = (f"**{text}**" if rate == least[letter] else text for rate, text in zip(own, shown, strict=True))
        return " / ".join(bold)

    rows = [
        [f"`{policy}`", *(cell(policy, letter) for letter in columns)]
        for policy in PLACED
        if any((scenario, policy) in rates for own in columns.values() for scenario in own)
    ]
    return page([" / ".join(PLACEMENTS), *"ABCD"], rows)


def ramp_graph_policy(results: Path) -> str:
    """Blocking rates of policies that read a job's graph and of others: the mean of the learning seeds, in brackets the
    least and the most; below them differences on the same episodes.
    """
    found = pd.read_csv(results / "ramp_graph_policy.csv")
    rates = found.set_index(["scenario", "policy", "seed"])["blocking_rate"].sort_index()
    scenarios, rows = list(dict.fromkeys(found["scenario"])), []
    named = {"ppo-durations": "`ppo-durations` (informed, 1 seed)"}
    for policy in ("ppo-graph", "ppo-summary", "ppo-durations", "fixed-6", "fixed-4"):
        own = [rates[scenario, policy] for scenario in scenarios]
        spread = (f" ({share(seeds.min())} to {share(seeds.max())})" if len(seeds) > 1 else "" for seeds in own)
        cells = (f"{share(seeds.mean())}{text}" for seeds, text in zip(own, spread, strict=True))
        rows.append([named.get(policy, f"`{policy}`"), *cells])
    for policy, other in (("ppo-graph", "ppo-summary"), ("ppo-graph", "fixed-6"), ("ppo-summary", "fixed-6")):
        cells = (_difference(rates[scenario, policy], rates[scenario, other]) for scenario in scenarios)
        rows.append([f"`{policy}` less `{other}`", *cells])
    return page(["", *(f"`{name}`" for name in scenarios)], rows)


def _difference(rates: pd.Series, others: pd.Series) -> str:
    """How much more a policy blocks than another one: the mean over the learning seeds, and half of a 95 % t
    interval.
    """
    apart = (rates - (others if len(others) > 1 else others.iloc[0])).to_numpy()
    half = stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5
    return f"{'-' if apart.mean() < 0 else '+'}{share(abs(apart.mean()))} ± {share(half)}"


def predicted_durations(results: Path) -> str:
    """Errors of predicted durations: of each published graph if it was left out, and over sets of graphs."""
    found = pd.read_csv(results / "predicted_durations.csv")
    degrees, rows = [name for name in found if name.startswith("degree_") and name != "degree_1"], []
    for scenario, own in found.groupby("scenario", sort=False):
        wrong = 100 * (own[degrees] - 1)
        if len(own) == 1:
            graph = own["graph"].item()
            rows.append([graph, "the other four published graphs", *(f"{value:+.1f}" for value in wrong.iloc[0])])
            continue
        sizes = [f"{size:.1f}, {most:.1f}" for size, most in zip(wrong.abs().mean(), wrong.abs().max(), strict=True)]
        rows.append([f"`{scenario}`, mean and largest size", "`graphs_seen`", *sizes])
    header = ["error of", "model fitted on", *(f"degree {name.removeprefix('degree_')}" for name in degrees)]
    return page(header, rows, "llrrrrr")


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
    rates = _blocked(results)
    scenarios = {"1000": "published_a"}
    for name in rates.index.unique(0):
        if name.startswith("published_interarrival_"):
            scenarios[name.rpartition("_")[2]] = name
    gaps = sorted(scenarios, key=int)
    rows = [[rule, *(share(rates[scenarios[gap], rule]) for gap in gaps)] for rule in ("para_max", "para_min")]
    return page(["s", *gaps], rows)


def ramp_quantum(results: Path) -> str:
    """Blocking rates of the traced graphs by what is done about degrees that have no block."""
    rates, rules = _blocked(results), ("para_max", "fixed-8", "fixed-4")
    named = {
        "quantum_kept": "quantum 0.01, illegal degrees kept",
        "quantum_rounded": "quantum 0.01, rounded down",
        "quantum_short": "quantum 0.00029",
    }
    rows = [[name, *(share(rates[scenario, rule]) for rule in rules)] for scenario, name in named.items()]
    return page(["", *(f"`{rule}`" for rule in rules)], rows)


def ramp_traced_graphs(results: Path) -> str:
    """The published graphs and ours, a cell for both."""
    found = pd.read_csv(results / "ramp_traced_graphs.csv").set_index(["graph", "from"])
    names = {
        "alexnet": "AlexNet",
        "gnmt": "GNMT",
        "resnet18": "ResNet-18",
        "squeezenet": "SqueezeNet",
        "vgg16": "VGG-16",
    }
    columns: dict[str, tuple[str, Callable[[float], str]]] = {
        "ops": ("num_ops", "{:.0f}".format),
        "deps": ("num_deps", "{:.0f}".format),
        "sequential JCT": ("sequential_jct", "{:.0f}".format),
        "the same without input": ("without_input", "{:.0f}".format),
        "largest op": ("max_cost", "{:.3g}".format),
        "memory (GB)": ("total_memory", lambda value: f"{value / 1e9:.2f}"),
        "largest memory (MB)": ("max_memory", lambda value: f"{value / 1e6:.0f}"),
        "depth": ("depth", "{:.0f}".format),
    }
    rows = []
    for graph, name in names.items():
        cells = [
            " / ".join(form(found.loc[(graph, side), key]) for side in ("published", "ours"))
            for key, form in columns.values()
        ]
        rows.append([name, *cells])
    return page(["", *columns], rows)


def ramp_recipe_trials(results: Path) -> str:
    """Stages of the recipe of the afterstate learner and variants of them on A and D, on validation episodes."""
    found = pd.read_csv(results / "ramp_recipe_trials.csv")
    rates = found.assign(blocking_rate=found["blocking_rate"].map(share)).pivot(
        index="trial", columns="beta", values="blocking_rate"
    )
    return page(["", *"AD"], [[trial, *rates.loc[trial, ["A", "D"]]] for trial in found["trial"].unique()])


def ramp_defects(results: Path) -> str:
    """Blocking rates with each defect of the published simulator alone, with none and with all."""
    rates = _blocked(results)
    names = {"none": "none (`mode: default`)", "all": "all (`mode: reference`)"}
    columns = [(rule, unit) for unit in ("s", "ms") for rule in ("para_max", "para_min")]
    alone = [name.removeprefix("defect_ms_") for name in rates.index.unique(0) if name.startswith("defect_ms_")]
    rows = []
    for switch in ("none", *(name for name in alone if name not in names), "all"):
        cells = (share(rates[f"defect_{'ms_' * (unit == 'ms')}{switch}", rule]) for rule, unit in columns)
        rows.append([names.get(switch, f"`{switch}`"), *cells])
    return page(["switch", *(f"{rule}, {unit}" for rule, unit in columns)], rows, "lrrrr")


TABLES = (
    ramp_scenarios,
    ramp_learning,
    ramp_placement,
    ramp_graph_policy,
    predicted_durations,
    ramp_baselines,
    ramp_loads,
    ramp_quantum,
    ramp_traced_graphs,
    ramp_recipe_trials,
    ramp_defects,
)
