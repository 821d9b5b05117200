"""Sentences of the cloud study's pages with their numbers computed from docs/results and from conf/."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from page_sentences import REPOSITORY, RESULTS, missing, table

from schedlab.config.readers import read_yaml
from schedlab.evaluation.claims import read_claims

import cloud_page_tables as tables  # isort: skip  (page_sentences adds its folder)
from table_parts import share  # isort: skip

JOBS, PREFERENCES = tables.JOBS, tables.PREFERENCES


def rules(scale: str, *keys: str) -> pd.DataFrame:
    """What rules came to: means of seeds by these columns."""
    found = table("cloud_rules")
    return found[found["scale"] == scale].groupby(list(keys))[["regret", "time", "cost", "sla_met"]].mean()


def spread(values: np.ndarray) -> str:
    return f"{values.min():.0f} to {values.max():.0f} %"


def rule_sentences():
    found = rules("small", "rule", "scenario", "preference")["regret"]
    balanced = found.xs("balanced", level="preference").unstack("scenario")
    assert (balanced.loc["bayesian"] >= balanced.loc["static_start"]).sum() == 2
    yield "`bayesian` is no better than staying on two of the four"
    yield f"one step of looking ahead is within {share(found['goodput_greedy'].max(), 2)} of the best plan"
    yield f"the best constant is as good as the best plan within {share(found['oracle_static'].max())}"
    yield f"stays on the allocation that it starts from, at {share(found['static_start', 'cifar10', 'cost'])}"
    straight = table("cloud_straight").set_index(["beginning", "preference", "scenario"]).sort_index()["regret"]
    start = balanced.loc["static_start", list(JOBS)]
    assert (straight["similar", "balanced"][list(JOBS)] > start).sum() == 2
    yield f"staying on the start ({', '.join(share(value, 2) for value in start)} for balanced) is better on two of the four"
    full = rules("full", "scenario", "rule")["regret"]
    yield f"(`static_start`: {share(full['learners', 'static_start'])}, `static_min`: {share(full['learners', 'static_min'])};"
    nine = share(full["ablations_nine", "static_start"])
    yield f"`static_start` has a regret of {share(full['ablations', 'static_start'])} there (9 actions: {nine})"
    minutes = rules("full", "scenario", "rule", "preference").loc["minutes", "regret"]
    ranges = {name: [share(value, digits) for value in (minutes[name].min(), minutes[name].max())] for name, digits in DIGITS.items()}
    assert ranges["goodput_greedy"] == ranges["oracle_static"]
    texts = {name: " to ".join(ends) for name, ends in ranges.items()}
    yield (
        f"following that plan has a regret of {texts['oracle_dynamic']}, going straight to the best constant {texts['oracle_static']}, "
        f"`goodput_greedy` the same, `threshold` {texts['threshold']}, `static_start` {texts['static_start']}"
    )


DIGITS = {"oracle_dynamic": 4, "oracle_static": 4, "goodput_greedy": 4, "threshold": 2, "static_start": 2}


def learned_sentences():
    learned = table("cloud_reinforce")
    best = rules("small", "rule", "scenario", "preference").loc["oracle_dynamic"]
    dearer = learned[(learned["scenario"] == "movielens") & (learned["preference"] == "time")]["cost"].max()
    yield f"are up to {100 * (dearer / best.loc[('movielens', 'time'), 'cost'] - 1):.0f} % dearer than the best plan for time"
    yield from margin_sentences(learned.groupby(["scenario", "preference"])["regret"].mean())
    assert (rules("small", "rule", "scenario").loc["static_start", "sla_met"] == 5).all()
    met = learned.groupby(["scenario", "preference"])["sla_met"].agg(["min", "max"])
    assert (met["min"] == met["max"]).all()
    kept = met["max"].unstack()
    assert (kept.loc["squad"] == 5).all() and (kept.loc[["cifar10", "imagenet"]] <= 5).all().all()
    assert (kept.loc[["cifar10", "imagenet"]] < 5).any(axis=1).all()
    most, for_time = kept.loc["movielens"].drop("time").unique(), kept.loc["movielens", "time"]
    assert len(most) == 1
    yield f"on `movielens` alone ({most[0]:.0f} of 6, but for time {for_time:.0f}); on `cifar10` and `imagenet` fewer are met"
    means = learned.groupby(["scenario", "preference"])[["time", "cost", "sla_met"]].mean()
    for against in ("static_start", "static_max"):
        static, changes = rules("small", "rule", "scenario", "preference").loc[against], {}
        for preference, score in (("time", "time"), ("cost", "cost"), ("balanced", "sla_met")):
            ratios = means.xs(preference, level="preference")[score] / static.xs(preference, level="preference")[score]
            changes[score] = 100 * (ratios - 1 if score == "sla_met" else 1 - ratios)
        if against == "static_start":
            fewer = f"{-changes['sla_met'].mean():.0f} % fewer service levels for balanced ({spread(changes['sla_met'])}"
            yield f"for the preference time ({spread(changes['time'])}; claimed: 67.2)"
            yield f"less for cost ({spread(changes['cost'])}; claimed: 68.8), and meet {fewer}; claimed: 73.4 %"
        else:
            yield f"they cost {changes['cost'].mean():.0f} % less and meet {changes['sla_met'].mean():.0f} % more service levels"


def margin_sentences(learned: pd.Series):
    """Where the rule that has the model is not the best plan itself, and what became of it."""
    greedy = rules("small", "rule", "scenario", "preference").loc["goodput_greedy", "regret"]
    margin = greedy[greedy > 1e-6]
    won = [cell for cell in margin.index if learned[cell] < margin[cell]]
    assert sorted(won) == [("cifar10", "cost"), ("imagenet", "balanced"), ("imagenet", "cost"), ("imagenet", "resource")]
    lost = [cell for cell in margin.index if cell not in won]
    assert lost == [("movielens", "time")]
    yield "leaves something to win in five of the 16 cells: four are won (`cifar10` cost; `imagenet` balanced, cost and resource)"
    yield f"`movielens` time is lost, {share(learned[lost[0]])} against {share(margin[lost[0]])}; in the other {len(greedy) - len(margin)}"


def setting_sentences():
    """The search of settings for REINFORCE on movielens, preference time."""
    found = table("cloud_reinforce_settings").query("preference == 'time'").set_index(["seed", "settings"])["regret"].unstack()
    configured = found.pop("entropy=0.3 committed=0.25 imitated=4 distilled=0")
    assert found.shape == (2, 5) and found.ge(configured, axis="index").all(axis=None)
    yield f"the configured ones came to {share(configured.iloc[0])} and {share(configured.iloc[1])}"


def front_sentences():
    pytest.importorskip("moocore")
    learned, shares, exact, best = table("cloud_reinforce"), {}, {}, {}
    for job in JOBS:
        of_seeds = learned[learned["scenario"] == job].groupby("policy_seed")
        shares[job] = [tables.share_of_front(RESULTS, job, rows[["time", "cost"]].to_numpy()) for _, rows in of_seeds]
        exact[job] = tables.share_of_front(RESULTS, job, tables.best_plans(RESULTS, job))
        best[job] = share(exact[job], 2)
    mean = {job: share(float(np.mean(values)), 2) for job, values in shares.items()}
    ends = " to ".join(share(end(shares["movielens"]), 2) for end in (min, max))
    yield (
        f"`cifar10` {mean['cifar10']} ({best['cifar10']}), `imagenet` {mean['imagenet']} ({best['imagenet']}), "
        f"`movielens` {mean['movielens']} ({best['movielens']}; seeds from {ends}), `squad` {mean['squad']} ({best['squad']})"
    )
    weighted, movielens = supported_points("imagenet"), supported_points("movielens")
    whole = share(tables.share_of_front(RESULTS, "imagenet", weighted), 2)
    yield f"the {len(weighted)} points of the front of `imagenet` that are best for some weights of time and cost have {whole} of its"
    yield f"on `movielens` these are {len(movielens)}, with {share(tables.share_of_front(RESULTS, 'movielens', movielens), 2)}"
    assert min(shares["squad"]) == max(shares["squad"])
    yield f"With the four policies of `squad`, {share(shares['squad'][0])} in every seed"
    assert [job for job in JOBS if exact[job] >= 0.95] == ["squad"]
    yield f"within reach on `squad` alone (`cifar10`: {share(exact['cifar10'])})"
    yield from policy_set_sentences()


def supported_points(job: str) -> np.ndarray:
    """The points of a job's front that are best for some weights of time and cost."""
    front = tables.front(RESULTS, job, "front")
    units, shares_of_time = (front - front.min(axis=0)) / np.ptp(front, axis=0), np.linspace(0.0, 1.0, 10_001)[:, None]
    return front[np.unique((shares_of_time * units[:, 0] + (1.0 - shares_of_time) * units[:, 1]).argmin(axis=1))]


def policy_set_sentences():
    """Eleven policies, learned by weighted sums and by weighted distances."""
    found = table("cloud_front_policies")
    sums = found[found["policy"].str.startswith("reinforce-")].groupby(["scenario", "preference"])["regret"].mean()
    yield f"has a mean regret of at most {share(sums.max())} for every weight"
    jobs = ("imagenet", "movielens", "cifar10")
    at_best = [share(tables.share_of_front(RESULTS, job, tables.best_for_sums(RESULTS, job)), 2) for job in jobs]
    yield f"the best plans for these sums have {at_best[0]} and {at_best[1]} themselves (those of `cifar10` {at_best[2]}:"
    fast, cheap = (tables.best_for_sums(RESULTS, job) for job in jobs[:2])
    ends = tables.front(RESULTS, "imagenet", "front")
    early = (fast[:, 0] - ends[0, 0] < 0.01 * np.ptp(ends[:, 0])).sum()
    yield f"{early} of the eleven lie in the fastest hundredth of the front of `imagenet`"
    yield f"{np.isclose(cheap, cheap[-1]).all(axis=1).sum()} are the cheapest plan of `movielens`"
    shares = {job: tables.learned_for_weights(RESULTS, job, "chebyshev") for job in jobs}
    assert all(len(seeds) == 5 for seeds in shares.values())
    told = {job: f"{share(float(np.mean(seeds)))} (seeds from {share(min(seeds))} to {share(max(seeds))})" for job, seeds in shares.items()}
    yield f"on `imagenet` they have {told['imagenet']}, on `movielens` {told['movielens']}, on `cifar10` {told['cifar10'][:-1]};"
    assert all(np.mean(seeds) >= 0.95 for seeds in shares.values())
    short = {job: 0.95 - min(seeds) for job, seeds in shares.items() if min(seeds) < 0.95}
    assert set(short) == {"imagenet", "cifar10"}
    yield f"single seeds of `imagenet` and `cifar10` fall short of it by at most {share(max(short.values()))}"
    assert all(tables.share_of_front(RESULTS, job, tables.best_for_distances(RESULTS, job)) > 0.95 for job in JOBS)
    yield "Eleven plans chosen so have more than .95 on every job"


def ablation_sentences():
    found = table("cloud_ablations")
    needed = found.groupby(["policy", "policy_seed"])["episodes_needed"].mean().unstack(0)
    saved = {name: 100 * (1 - needed[f"reinforce-{name}"] / needed["reinforce-fixed"]) for name in ("historical", "baseline")}
    whole = {name: 100 * (1 - needed[f"reinforce-{name}"].mean() / needed["reinforce-fixed"].mean()) for name in saved}
    yield (
        f"With logs a learner explores {whole['historical']:.0f} % less (claimed: 60), with short probes {whole['baseline']:.0f} % less, "
        f"{saved['baseline'].min():.0f} to {saved['baseline'].max():.0f} by seed"
    )
    of_weights = found.groupby("policy")["severity"].mean()
    ledger = {claim.id: claim.ours_repaired for claim in read_claims(REPOSITORY / "conf", "cloud")["cloud"].claims}
    assert ledger["exploration-historical"] == pytest.approx(whole["historical"], abs=0.05)
    assert ledger["exploration-probes"] == pytest.approx(whole["baseline"], abs=0.05)
    lower = 100 * (1 - of_weights["reinforce-adapted"] / of_weights["reinforce-fixed"])
    assert ledger["adapted-weights"] == pytest.approx(lower, abs=0.05)
    of = found.groupby(["policy", "preference"])[["episodes_needed", "severity"]].mean()
    probes, cold = (
        {name: of.loc[(f"reinforce-{policy}", name), "episodes_needed"] for name in PREFERENCES} for policy in ("baseline", "fixed")
    )
    yield f"mislead for time ({probes['time']:,.0f} episodes against {cold['time']:,.0f})"
    yield f"help most for cost ({probes['cost']:,.0f} against {cold['cost']:,.0f})"
    severity = {name: share(of.loc[(f"reinforce-{name}", "time"), "severity"], 2) for name in ("adapted", "fixed")}
    yield f"mostly for time ({severity['adapted']}, fixed {severity['fixed']})"
    weights = table("cloud_weights").set_index(["way", "preference"])["severity"]
    assert weights["adapted", "balanced"] == weights["adapted", "time"]
    assert (weights["not divided"] == weights["fixed"]).all()
    yield (
        f"the adapted reward's best has a severity of {share(weights['adapted', 'time'], 2)} for balanced and time (8 cores), "
        f"the fixed one's {share(weights['fixed', 'time'], 2)} (4 cores)"
    )
    yield f"over the four preferences {share(weights['adapted'].mean(), 2)} and {share(weights['fixed'].mean(), 2)}, as learned"


def job_sentences():
    noise = read_yaml(REPOSITORY / "conf/training_job/cifar10.yaml")["gradient_noise"]
    yield f"(`cifar10` from {share(noise[0], 1)} to {noise[-1]:.0f})"


def fit_sentences():
    found = table("cloud_fit_held_out").set_index(["check", "model"])["median_relative_error"]
    fitted = table("cloud_fits").set_index("model")["median_relative_error"]
    assert set(fitted.index) == set(found["epochs"].index)
    seen = 100 * fitted
    yield f"how far a job is from the form: {seen.min():.0f} to {seen.max():.0f} % here"
    yield f"within {share(100 * (found['constants'] - fitted).abs().max(), 1)} % of these on the fourth"
    yield f"a placement left out is missed by up to {100 * found['epochs'].max():.0f} %"


def part_sentences():
    """What a set learned by distances has without each of the additions."""
    both = table("cloud_front_parts").set_index(["scenario", "variant", "seed"])["hypervolume"].unstack()
    found, imagenet = both.loc["movielens_front"], both.loc["imagenet_front"].map(share)
    with_one = found.loc[["no sharing", "not distilled"]].to_numpy()
    assert (found.loc["none"].to_numpy() < with_one).all() and (with_one < found.loc["all"].to_numpy()).all()
    yield f"without one of them the set has {share(with_one.min())} to {share(with_one.max())}"
    assert found.loc["no branches"].equals(found.loc["all"])
    yield "hypervolume came out without them, with both seeds"
    assert imagenet.loc["all", 1] == imagenet.loc["no branches", 1]
    whole, less = imagenet.loc["all"], imagenet.loc["no branches"]
    yield f"from {whole[0]} to {less[0]} with one seed, and stays at {whole[1]} with the other"


SENTENCES = [
    rule_sentences,
    learned_sentences,
    front_sentences,
    ablation_sentences,
    job_sentences,
    fit_sentences,
    setting_sentences,
    part_sentences,
]


@pytest.mark.parametrize("sentences", SENTENCES)
def test_numbers_in_sentences_are_those_of_the_results(sentences):
    assert missing("cloud", sentences) == []
