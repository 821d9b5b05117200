"""More sentences of the pages of the ramp study with their numbers from results, ledger and the programs themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from page_sentences import REPOSITORY, RESULTS, ledger, missing, table

from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.studies.ramp.compat.published import BETAS, SHIPPED
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.generator import generated_graphs
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.graphs.settings import GeneratorSettings
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.simulator.compiled import fast_tables
from schedlab.studies.ramp.simulator.distributions import DistributionSettings, alternatives
from schedlab.studies.ramp.simulator.simulation import Simulation

import ramp_tables  # isort: skip  (page_sentences adds its folder)
from ramp_traced_graphs import line  # isort: skip
from table_parts import one, seeds_of, share  # isort: skip


GRAPHS = ("seen", "unseen", "profiles", "traced")
GOALS = pd.Series({"a": 0.175, "b": 0.190, "c": 0.116, "d": 0.083})


def of_learners(name, policy="afterstate", column="blocking_rate"):
    """A recorded value of each distribution."""
    found = table(name)
    return found[found["policy"] == policy].set_index("scenario")[column].rename(lambda scenario: scenario.removeprefix("published_"))


def listed(values, digits=3):
    """Four values as sentences have them: A .1, B .2, C .3 and D .4."""
    texts = [f"{letter.upper()} {share(value, digits)}" for letter, value in values.items()]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def learning_sentences():
    earlier = one(table("ramp_learning_trials"), scenario="published_d", policy="afterstate-one-round")
    yield f"with three seeds (D: five, {share(earlier['low'])} to {share(earlier['high'])})"
    learned = one(table("ramp_learning"), scenario="published_a", policy="afterstate")
    yield f"nor near the afterstate learner's {share(learned['blocking_rate'])}"
    rates = table("ramp_learning").pivot(index="scenario", columns="policy", values="blocking_rate")
    gains = rates.filter(like="fixed-").min(axis=1) - rates["table"]
    assert gains.min() > -5e-6
    yield f"The tuned table (one seed) is at most {share(gains.max())} below the best fixed degree"
    more = (rates["rollouts"] - rates["afterstate"]).map(share)
    worse = (rates["rollouts"] - rates.filter(like="fixed-").min(axis=1))["published_b"]
    less = (rates["afterstate"] - rates["rollouts"])["published_d"]
    yield (
        f"block {more['published_a']} and {more['published_c']} more than the networks on A and C, on B {share(worse)} more than the best "
        f"fixed degree, and {share(less)} less than the networks on D"
    )
    dqn = table("ramp_dqn").set_index("policy")["by_seed"].drop("dqn").astype(float).map(share)
    yield (
        f"On the same 6 test episodes para_min blocks {dqn['para_min']}, fixed_4 {dqn['fixed_4']}, fixed_2 {dqn['fixed_2']}, "
        f"fixed_8 {dqn['fixed_8']}"
    )


def cost_sentences():
    jobs = table("workflow_cost").query("study == 'ramp'")
    yield f"At `scale=small` the study's {jobs['jobs'].sum()} jobs take {jobs['cpu_s'].sum():.0f} CPU seconds by Snakemake's count"


def goal_sentences():
    seen, unseen = (of_learners(name) for name in ("ramp_learning", "ramp_learning_exact"))
    for name, count in (("ramp_learning", 40), ("ramp_learning_exact", 20)):
        assert set(of_learners(name, column="seeds")) == {5} and set(of_learners(name, column="episodes")) == {count}
    below, later = (GOALS - rates for rates in (seen, unseen))
    assert (below > 0).all() and (later > 0).to_dict() == {"a": True, "b": True, "c": True, "d": False}
    yield f"over the 40 episodes {listed(below, 4)} below them"
    row = one(table("ramp_learning_exact"), scenario="published_d", policy="afterstate")
    seeds = [share(rate, 4) for rate in sorted(seeds_of(row["by_seed"]))]
    yield (
        f"over the workflow's 20 {listed(later[:3], 4)} below, **D {share(-later['d'], 4)} above** (interval {share(row['low'])} to "
        f"{share(row['high'])}, seeds {seeds[0]} to {seeds[-1]})"
    )
    aims = pd.Series({"a": 0.171, "b": 0.180, "c": 0.108, "d": 0.077})
    yield f"({', '.join(map(share, aims))}), is reached on B and, over the workflow's 20, on A"
    assert [letter for letter in "abcd" if seen[letter] <= aims[letter]] == ["b"]
    assert [letter for letter in "abcd" if unseen[letter] <= aims[letter]] == ["a", "b"]
    spent = table("ramp_learning_cpu").query("policy == 'afterstate'")
    yield f"{spent['least_s'].min()} to {spent['most_s'].max()} CPU seconds of the allowed 1,800"
    shorter = of_learners("ramp_learning_trials", "afterstate-shorter") - GOALS
    assert (shorter > 0).to_dict() == {"a": True, "b": False, "c": False, "d": True}
    yield f"The shorter recipe reached the goals on B and C; A was {share(shorter['a'])} away, D {share(shorter['d'])}"
    rollouts = of_learners("ramp_learning", "rollouts")
    assert rollouts["d"] < seen["d"]
    yield f"what a network loses of the rollouts that it is fitted to (`rollouts`, {share(rollouts['d'])})"


def speedup_sentences():
    found = of_learners("ramp_learning_exact", column="speedup")
    texts = [share(value, 2) for value in found]
    yield f"are {', '.join(texts[:3])} and {texts[3]} times as fast as on one device"
    fixed = [of_learners("ramp_learning_exact", f"fixed-{degree}", "speedup") for degree in (4, 16, 4, 2)]
    values = [share(one[letter], 2 if letter == "b" else 3) for one, letter in zip(fixed, "abcd", strict=True)]
    published = [ledger("ramp")[f"speedup-pac-ml-{letter}"].published for letter in "abcd"]
    yield f"published agent's {published[0]}, {published[1]}, {published[2]} and {share(published[3])} are what one degree"
    yield f"fixed 4, 16, 4 and 2 have {', '.join(values[:3])} and {values[3]} here"
    row = one(table("ramp_learning_exact"), scenario="published_a", policy="afterstate")
    pairs = sorted(zip(seeds_of(row["speedup_by_seed"]), seeds_of(row["by_seed"]), strict=True), reverse=True)
    (first, second), others = pairs[:2], pairs[2:]
    assert max(first[1], second[1]) < min(rate for _, rate in others)
    fast, rates = [share(speed, 1) for speed, _ in others], sorted(share(rate) for _, rate in others)
    both = f"{share(first[0], 1)} and {share(second[0], 1)} there and block {share(first[1])} and {share(second[1])}"
    yield f"two seeds have {both}, the other three {fast[-1]} to {fast[0]} and {rates[0]} to {rates[-1]}"
    rates, repaired = (of_learners("ramp_learning_repaired", column=column) for column in ("blocking_rate", "speedup"))
    blocked, faster = ([share(value, digits) for value in values] for values, digits in ((rates, 3), (repaired, 2)))
    yield f"they block {', '.join(blocked[:3])} and {blocked[3]}, at speed-ups of {', '.join(faster[:3])} and {faster[3]}"


def recipe_trial_sentences():
    found = table("ramp_recipe_trials").query("seed == 10")
    rates = found.set_index(["trial", "beta"])["blocking_rate"]
    regression, other = "linear values: ridge regression on the returns", "linear values whose soft choice has the highest mean return"
    assert rates["the same, searched from there", "A"] == rates[other, "A"]  # nothing better
    yield (
        f"from the second base it ends at {share(rates['the same, searched, from the second base', 'A'])}, and from a start that blocks "
        f"{share(rates[regression, 'A'] - rates[other, 'A'])} less than the regression it finds nothing better"
    )
    first = found["trial"].tolist().index("the same, and the base's rollouts (the recipe)")
    both = found[first:].query("beta == 'D'").set_index("trial")["blocking_rate"]
    yield f"On D networks of both rounds end between {share(both.min())} and {share(both.max())}"
    fits = both[["the same, and the base's rollouts (the recipe)", "the same, another seed of the fit"]]
    assert (fits.min(), fits.max()) == (both.min(), both.max())  # as far apart


def data_trial_sentences():
    found = table("ramp_recipe_trials").query("seed > 10")
    rates = {beta: rows.groupby("trial", sort=False)["blocking_rate"] for beta, rows in found.groupby("beta")}

    def of(beta, trial):
        return [share(rate) for rate in rates[beta].get_group(trial)]

    values = found[found["beta"] == "A"]["blocking_rate"].tolist()
    linear = found["trial"].tolist().index("linear values, searched for 400 generations")
    assert found["beta"].iloc[linear] == "A"
    fitted = sorted(map(share, values[linear + 1 :]))
    yield f"its linear values block {share(values[linear])}, and a network of their rollouts {fitted[0]} to {fitted[-1]}"
    few, (least, most) = of("D", "network of 16 episodes of the base, 64 samples"), of("D", "network of both, 80 episodes, with regret")
    yield f"from 16 episodes of the base to 80 it goes from {few[0]} to {least} and {most}"
    fits = rates["D"].agg(["min", "max", "size"]).query("size == 2")
    apart = float((fits["max"] - fits["min"]).round(4).max())
    yield f"Fits to the same decisions are up to {share(apart)} apart"
    first = "second round: rollouts of the network of 32 units, 24 episodes, 8 samples"
    regret = share(values[linear - 2])
    yield f"on A {regret} instead of {' and '.join(of('A', first))}"
    small = of("A", "the same, 32 units, of 48 episodes")[0]
    alone = of("D", "second round: rollouts of a network of 32 units, 16 episodes, 8 samples, with regret")[0]
    both = of("D", "the same, and 48 episodes of the base")[0]
    yield f"(A {small} to {regret}, D {alone} to {both})"


def load_sentences():
    rules = table("ramp_rules")
    rates = rules[(rules["part"] == "loads") & (rules["rule"] == "para_max")].set_index("setting")["blocking_rate"]
    first, second, usual = (f"{rates[seconds]:.2f}" for seconds in ("50", "100", "1000"))
    (late,) = {f"{rates[seconds]:.2f}" for seconds in ("6000", "12000")}
    yield f"the published rules give {first}, {second}, {usual} at 1000 and {late} from 6000 on for para_max"


def graph_policy_sentences():
    found = ramp_tables.graph_policies(RESULTS)
    rates = found.set_index(["policy", "scenario", "seed"])["blocking_rate"].sort_index()
    graph, summary = ({name: rates[policy, f"graphs_{name}"] for name in GRAPHS} for policy in ("ppo-graph", "ppo-summary"))

    def apart(policy: str, other: str, name: str) -> str:
        mean, half = ramp_tables.graph_difference(found, policy, other, f"graphs_{name}")
        return f"{ramp_tables.signed(mean)} ± {share(half)}"

    seen, unseen, profiles, traced = (apart("ppo-graph", "ppo-summary", name) for name in GRAPHS)
    assert all((graph[name] < summary[name]).all() and len(graph[name]) == 5 for name in GRAPHS[:2])  # with each of five seeds
    yield "mean of **five learning seeds**"
    yield (
        f"with each of five seeds**: {share(graph['seen'].mean())} against {share(summary['seen'].mean())} ({seen}) on those that they "
        f"learned on and {share(graph['unseen'].mean())} against {share(summary['unseen'].mean())} ({unseen}) on unseen ones"
    )
    yield f"on the published ones it is {profiles}, on our traced ones {traced}"
    means = {name: ramp_tables.graph_difference(found, "ppo-graph", "ppo-summary", f"graphs_{name}") for name in GRAPHS}
    assert [name for name, (mean, half) in means.items() if abs(mean) > half] == ["seen", "unseen"]  # does not carry over
    yield f"(the graph policy blocks {share(graph['traced'].min())} to {share(graph['traced'].max())} on the traced ones)"
    with_seed_0 = [share(rates[f"ppo-{name}", "graphs_unseen", 0]) for name in ("durations", "graph", "summary")]
    yield "blocks {} on unseen graphs with seed 0, where the graph policy has {} and the summary {}".format(*with_seed_0)
    fixed = found[found["policy"].str.startswith("fixed-") & (found["scenario"] != "graphs_traced")]
    best = fixed.loc[fixed.groupby("scenario")["blocking_rate"].idxmin(), "policy"]
    assert set(best) == {"fixed-6"} and set(fixed["episodes"]) == {10}
    yield "On the traced ones degree 4 is the best, and neither gets below it in the mean"
    of_traced = {name: rates[name, "graphs_traced"].mean() for name in ("fixed-4", "fixed-6", "fixed-8", "ppo-graph", "ppo-summary")}
    assert min(of_traced, key=of_traced.get) == "fixed-4"
    first, second = ([apart(f"ppo-{name}", "fixed-6", where) for where in GRAPHS[:3]] for name in ("graph", "summary"))
    yield (
        f"graph policy is {first[0]} on the graphs that it learned on and {first[1]} on unseen ones, the summary {second[0]} and "
        f"{second[1]}; on the published graphs both block more ({first[2]} and {second[2]})"
    )


def graph_oracle_sentences():
    found = table("ramp_graph_policy")
    found = found.assign(policy=found["policy"].str.replace(r"-graphs-.*", "", regex=True))
    means = found.groupby(["policy", "scenario"])["blocking_rate"].mean()
    tuned, values = (
        "{}, {} and {}".format(*(share(means[policy, f"graphs_{name}"]) for name in ("seen", "unseen", "profiles")))
        for policy in ("table", "afterstate")
    )
    yield f"blocks {tuned} where it learned"
    yield f"they block {values}"


def traced_sentences():
    found = table("ramp_traced_graphs").set_index(["from", "graph"])
    theirs, ours = found.loc["published"], found.loc["ours"]
    ranks = ours[["rank_forward", "rank_backward"]].stack().dropna()
    assert len(ranks) == 8  # both passes of the four networks on pictures
    yield f"op times have rank correlations of {ranks.min():.2f} to {ranks.max():.2f} with the measured ones"
    read = 100 * (1 - theirs["without_input"] / theirs["sequential_jct"])
    yield (
        f"the op `Input` takes {read['alexnet']:.0f} % of AlexNet's step, {read['resnet18']:.0f} % of ResNet-18's, "
        f"{read['squeezenet']:.0f} % of SqueezeNet's"
    )
    shorter = theirs["sequential_jct"] / ours["without_input"]
    yield f"Without `reading_rate` jobs are {shorter.min():.1f} to {shorter.max():.1f} times shorter than the published ones"
    slower = theirs["without_input"] / ours["without_input"]
    yield f"is {slower['squeezenet']:.1f} times as slow as reckoned, VGG-16 {100 * (slower['vgg16'] - 1):.0f} %"


def generated_sentences():
    values = {
        "name": "drawn",
        "seed": 0,
        "graphs": {"source": "generated"},
        "cluster": {"memory": 1e12},
        "jobs": {"time_unit": "ms", "interarrival": {"kind": "fixed", "value": 1.0}},
        "management": {"quantum": 1e-5, "illegal_degrees": "round_down"},
        "episodes": {"end": 60.0},
    }
    graphs = generated_graphs(GeneratorSettings(count=40), 0)
    tables = fast_tables(Simulation(validate(RampScenario, values), graphs))
    speed = tables.sequential / tables.durations[:, tables.actions.tolist().index(16)]
    memory = np.array([training_graph(graph).total_memory for graph in graphs])
    times, sizes = (np.corrcoef(speed, np.log(other))[0, 1] for other in (tables.sequential, memory))
    yield (
        f"the speed-up at 16 goes from {speed.min():.2f} to {speed.max():.1f}, median {np.median(speed):.1f}; its correlation with the "
        f"logarithm of sequential time is {times:.2f}, with that of memory {sizes:.2f}. The largest needs {memory.max() / 1e9:.0f} GB"
    )


def distribution_sentences():
    betas = {letter: validate(DistributionSettings, BETAS[letter] | {"extremes": None}) for letter in "BCD"}
    deviations, means = [], []
    for given in betas.values():
        drawn = given.model_copy(update={"shape": "drawn"})
        streams = [alternatives(drawn, generator(seed, "beta"))[0].mean for seed in range(30)]
        deviations.append(f"{np.std(streams, ddof=1):.2f}")
        means.append(f"{alternatives(given, generator(0, 'beta'))[0].mean:.3f}")
    claims = ledger("ramp")
    published = [f"{claims[f'beta-{letter.lower()}-mean'].published:.3f}" for letter in betas]
    (deviation,) = set(deviations)
    moments, exact = (f"{texts[0]}, {texts[1]} and {texts[2]}" for texts in (published, means))
    yield f"over 30 streams the means of B, C and D have a standard deviation of {deviation} each (published samples: means {moments})"
    yield f"nothing is drawn: means {exact}"


def test_the_numbers_of_traced_graphs_are_those_of_the_shipped_files():
    recorded = table("ramp_traced_graphs").set_index(["from", "graph"]).loc["ours"]
    for graph in read_graphs(REPOSITORY / SHIPPED):
        found = line(graph, 50, join_sinks=True)
        assert recorded.loc[graph.name, list(found)].to_dict() == pytest.approx(found, rel=1e-5), graph.name
    assert len(recorded) == 5


@pytest.mark.parametrize(
    ("page", "sentences"),
    [
        ("ramp", learning_sentences),
        ("ramp", cost_sentences),
        ("ramp", goal_sentences),
        ("ramp", speedup_sentences),
        ("ramp", recipe_trial_sentences),
        ("ramp", data_trial_sentences),
        ("ramp", load_sentences),
        ("ramp_graph_policy", graph_policy_sentences),
        ("ramp_graph_policy", graph_oracle_sentences),
        ("ramp_graphs", traced_sentences),
        ("ramp_graphs", generated_sentences),
        ("ramp_graphs", distribution_sentences),
    ],
)
def test_numbers_in_sentences_of_ramp_are_computed(page, sentences):
    assert missing(page, sentences) == []
