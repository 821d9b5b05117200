"""Tables of the ramp study."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
from scipy import stats
from table_parts import REPOSITORY, one, page, seeds_of, share

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


def ramp_learning(results: Path) -> str:
    """Blocking rates in the published setting on the workflow's test episodes; the least fixed degree in bold."""
    found = pd.read_csv(results / "ramp_learning_exact.csv", dtype={"by_seed": str})
    times = pd.read_csv(results / "ramp_learning_cpu.csv")
    ledger = {claim.id: claim.published for claim in read_claims(REPOSITORY / "conf", "ramp")["ramp"].claims}

    def of(policy: str, table: pd.DataFrame = found) -> list[pd.Series]:
        return [one(table, scenario=f"published_{letter}", policy=policy) for letter in "abcd"]

    def cells(policy: str) -> list[str]:
        return [_with_interval(row) for row in of(policy)]

    fixed = found[found["policy"].str.startswith("fixed-")]
    least = fixed.groupby("scenario")["blocking_rate"].min().tolist()
    rows = [
        ["`lp_bound`, a bound that no policy reaches", *cells("lp_bound")],
        ["**`afterstate`** (informed), mean of five seeds", *cells("afterstate")],
        ["each seed", *(" ".join(map(share, seeds_of(row["by_seed"]))) for row in of("afterstate"))],
        ["`rollouts` at decision time (informed), one seed", *cells("rollouts")],
        ["`table`, a tuned degree for each limit", *cells("table")],
    ]
    for degree in sorted(int(name.removeprefix("fixed-")) for name in fixed["policy"].unique()):
        pairs = zip((row["blocking_rate"] for row in of(f"fixed-{degree}")), least, strict=True)
        shown = [f"**{share(rate)}**" if rate == lowest else share(rate) for rate, lowest in pairs]
        rows.append([f"fixed degree {degree}", *shown])
    rows += [
        ["published PAC-ML", *(share(ledger[f"blocking-pac-ml-{letter}"]) for letter in "abcd")],
        ["mean speed-up, `afterstate`", *(share(row["speedup"], 2) for row in of("afterstate"))],
        ["mean speed-up, published PAC-ML", *(share(ledger[f"speedup-pac-ml-{letter}"], 2) for letter in "abcd")],
    ]
    spent = [f"{row['least_s']:.0f} to {row['most_s']:.0f}" for row in of("afterstate", times)]
    return page(["", *"ABCD"], [*rows, ["CPU time of learning a seed, s", *spent]])


def _with_interval(row: pd.Series) -> str:
    """A blocking rate, with its interval where one was recorded: .170 [.166, .173]."""
    rate = share(row["blocking_rate"])
    return rate if pd.isna(row["low"]) else f"{rate} [{share(row['low'])}, {share(row['high'])}]"


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
    path = results / "ramp/summary.csv"
    if not path.is_file():
        return NOT_RECORDED
    found = pd.read_csv(path, keep_default_na=False, na_values=[""])
    found = found[(found["split"] == "test") & (found["metric"] == "blocking_rate")]
    names = found["recipe"].where(found["trained_on"] == found["scenario"], found["policy"])
    rates = dict(zip(zip(found["scenario"], names, strict=True), found["value"], strict=True))
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


GRAPH_PAIRS = (("graph", "ppo-summary"), ("graph", "fixed-6"), ("summary", "fixed-6"))


def graph_policies(results: Path) -> pd.DataFrame:
    """Blocking rates of policies that read a job's graph, and of others; `*`: a policy for each scenario."""
    found = pd.read_csv(results / "ramp_graph_policy.csv")
    return found.assign(policy=found["policy"].str.replace(r"-graphs-.*", "-graphs-*", regex=True))


def ramp_graph_policy(results: Path) -> str:
    """Blocking rates by policy and scenario: the mean of the learning seeds, in brackets the least and the most."""
    found = graph_policies(results)
    knowing = ["ppo-durations", "table-graphs-*", "afterstate-graphs-*"]
    order = ["ppo-graph", "ppo-summary", *knowing, "fixed-6", "fixed-4", "fixed-8", "para_min", "para_max"]
    scenarios, episodes, rows = list(dict.fromkeys(found["scenario"])), found["episodes"].max(), []
    for policy in order:
        own = found[found["policy"] == policy]
        rates = {scenario: part["blocking_rate"] for scenario, part in own.groupby("scenario")}
        cells = [graph_cell(rates[scenario]) if scenario in rates else "-" for scenario in scenarios]
        seeds, times = own["seed"].nunique(), own["learning_cpu_s"]
        said = ["informed"] * (policy in knowing)
        if times.any() and seeds < found["seed"].nunique():
            said.append(f"{seeds} seed{'s' if seeds > 1 else ''}")
        if (fewer := own["episodes"].max()) < episodes:
            said.append(f"first {fewer} episodes")
        spent = (
            f"{times.min():.0f} to {times.max():.0f}"
            if times.nunique() > 1
            else f"{times.max():.0f}"
            if times.any()
            else "-"
        )
        rows.append([f"`{policy}`" + (f" ({', '.join(said)})" if said else ""), *cells, spent])
    return page(["", *(f"`{name}`" for name in scenarios), "CPU time of learning, s"], rows)


def graph_cell(rates: pd.Series) -> str:
    """Return the mean of the seeds, and the least and the most where there are several."""
    return share(rates.mean()) + (f" ({share(rates.min())} to {share(rates.max())})" if len(rates) > 1 else "")


def graph_difference(found: pd.DataFrame, policy: str, other: str, scenario: str) -> tuple[float, float]:
    """Return how much more a policy blocks than another one: mean over the learning seeds and half of a 95 % t
    interval.
    """
    rates = found[found["scenario"] == scenario].set_index(["policy", "seed"])["blocking_rate"]
    of_other = rates[other]
    apart = (rates[policy] - (of_other if len(of_other) > 1 else of_other.iloc[0])).to_numpy()
    return float(apart.mean()), float(stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5)


def ramp_graph_differences(results: Path) -> str:
    """By how much policies differ on the same episodes, with the spread of the learning seeds."""
    found = graph_policies(results)
    pairs = {f"`ppo-{name}` less `{other}`": (f"ppo-{name}", other) for name, other in GRAPH_PAIRS}
    scenarios, rows = list(dict.fromkeys(found["scenario"])), []
    for name, pair in pairs.items():
        apart = [graph_difference(found, *pair, scenario) for scenario in scenarios]
        rows.append([name, *(f"{signed(mean)} ± {share(half)}" for mean, half in apart)])
    return page(["", *(f"`{name}`" for name in scenarios)], rows)


def signed(value: float) -> str:
    """Return a difference as the pages write it: -.012, +.003."""
    return f"{'-' if value < 0 else '+'}{share(abs(value))}"


def predicted_rollouts(results: Path) -> str:
    """Rollouts with predicted durations beside the fixed degree that is best on validation, and informed policies."""
    if not (file := results / "predicted_rollouts.csv").is_file():
        return "Not recorded yet; `python docs/generate/ramp_predicted.py scores` writes it."
    found, rows = pd.read_csv(file), []
    for scenario, own in found.groupby("scenario", sort=False):
        validation, rates = (
            own[own["split"] == split].pivot_table(index="unit", columns="policy", values="blocking_rate")
            for split in ("validation", "test")
        )
        (policy,) = (name for name in rates if name.startswith("predicted-"))
        fixed = str(validation[[name for name in rates if name.startswith("fixed-")]].mean().idxmin())
        apart = rates[policy] - rates[fixed]
        half = stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5
        means = {re.sub("-graphs-.*", "", name): share(rates[name].mean()) for name in rates}
        others = [means.get(name, "-") for name in ("afterstate", "table", "para_max", "para_min")]
        best = f"{means[fixed]} (`{fixed}`)"
        difference = f"{signed(apart.mean())} ± {share(half)}"
        won = f"{(apart < 0).sum()} of {len(apart)}"
        rows.append([f"`{scenario}`", f"**{share(rates[policy].mean())}**", best, *others, difference, won])
    header = ["", "predicted", "best fixed", "`afterstate`", "`table`", "`para_max`", "`para_min`"]
    return page([*header, "predicted less fixed", "episodes won"], rows)


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
        rows.append(
            [f"quantum {named.get(setting, setting)}", *(share(one(own, rule=rule)["blocking_rate"]) for rule in rules)]
        )
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


def ramp_recipes(results: Path) -> str:
    """What was tried for the recipe of the afterstate learner, on validation episodes."""
    found = pd.read_csv(results / "ramp_recipes.csv")
    rates = {(recipe, beta): share(rate) for recipe, beta, rate in found.itertuples(index=False)}
    worse = "linear values, searched from a worse base"
    rates["linear values, searched", "B"] += f" ({rates[worse, 'B']} from a worse base)"
    recipes = [recipe for recipe in found["recipe"].unique() if recipe != worse]
    return page(["", *"ABCD"], [[recipe, *(rates.get((recipe, beta), "-") for beta in "ABCD")] for recipe in recipes])


def ramp_recipe_trials(results: Path) -> str:
    """Stages of the recipe and variants of them on A and D, on validation episodes: learning seed 10."""
    found = pd.read_csv(results / "ramp_recipe_trials.csv").query("seed == 10")
    rates = found.assign(blocking_rate=found["blocking_rate"].map(share)).pivot(
        index="trial", columns="beta", values="blocking_rate"
    )
    return page(["", *"AD"], [[trial, *rates.loc[trial, ["A", "D"]].fillna("-")] for trial in found["trial"].unique()])


def ramp_data_trials(results: Path) -> str:
    """Later trials with other learning seeds, in the order of the trials; several fits to the same decisions
    side by side.
    """
    found = pd.read_csv(results / "ramp_recipe_trials.csv").query("seed > 10")
    found = found.assign(run=(found["trial"] != found["trial"].shift()).cumsum())
    rows = []
    for _, run in found.groupby("run"):
        rates = " / ".join(map(share, run["blocking_rate"]))
        first = run.iloc[0]
        rows.append([first["trial"], *(rates if first["beta"] == beta else "-" for beta in "AD")])
    return page(["", *"AD"], rows)


def ramp_dqn(results: Path) -> str:
    """Short runs of the DQN."""
    found = pd.read_csv(results / "ramp_dqn.csv", dtype={"by_seed": str})
    rates = {
        policy: share(float(rate))
        for policy, rate in zip(found["policy"], found["by_seed"], strict=True)
        if policy != "dqn"
    }
    rows = []
    for row in found[found["policy"] == "dqn"].itertuples():
        said = f"where para_max has {rates['para_max']}" if row.split == "test" else "best point of the curve"
        blocked = ", ".join(map(share, seeds_of(row.by_seed)))
        spent = [f"{row.decisions:,.0f}", f"{row.cpu_s:.0f}"]
        rows.append(
            [row.values, row.seeds.replace(" ", ", "), *spent, blocked, f"{row.episodes} {row.split} episodes, {said}"]
        )
    return page(["settings", "seeds", "decisions", "CPU s", "blocking rate", "scored on"], rows)


def ramp_defects(results: Path) -> str:
    """Blocking rates with each defect of the published simulator alone, with none and with all."""
    names = {"none": "none (`mode: default`)", "all": "all (`mode: reference`)"}
    rates = pd.read_csv(results / "ramp_rules.csv").drop_duplicates()
    rates = rates[rates["part"].str.startswith("defects, ")].set_index(["part", "setting", "rule"])["blocking_rate"]
    columns = [(rule, unit) for unit in ("s", "ms") for rule in ("para_max", "para_min")]
    rows = [
        [
            names.get(setting, f"`{setting}`"),
            *(share(rates[f"defects, {unit}", setting, rule]) for rule, unit in columns),
        ]
        for setting in rates.index.unique("setting")
    ]
    return page(["switch", *(f"{rule}, {unit}" for rule, unit in columns)], rows, "lrrrr")


TABLES = (
    ramp_scenarios,
    ramp_learning,
    ramp_placement,
    ramp_graph_policy,
    ramp_graph_differences,
    predicted_durations,
    predicted_rollouts,
    ramp_baselines,
    ramp_loads,
    ramp_quantum,
    ramp_traced_graphs,
    ramp_recipes,
    ramp_recipe_trials,
    ramp_data_trials,
    ramp_dqn,
    ramp_defects,
)
