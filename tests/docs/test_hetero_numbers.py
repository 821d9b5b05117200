"""Sentences of the pages on hetero, its simulator and its workloads, with their numbers from docs/results, the ledger and the goals."""

from __future__ import annotations

from statistics import median

import pandas as pd
import pytest
import yaml
from page_sentences import REPOSITORY, below, ledger, missing, table

from schedlab.workloads.swf import NAMES

HOUR = 3600


def hetero_sentences():
    rules = table("hetero_rules").set_index(["scenario", "policy"])
    more = {column: sorted(100 * (rules.loc["trio", column] / rules.loc["alike", column] - 1)) for column in ("makespan_s", "energy_j")}
    (least, most), (least_energy, most_energy) = ((values[0], values[-1]) for values in more.values())
    yield f"takes {least:.0f} to {most:.0f} % longer and {least_energy:.0f} to {most_energy:.0f} % more energy than on cores that are alike"
    first, shortest, easy = (rules.loc[("primer_gaia", name)] for name in ("first-high_gflops", "shortest-high_gflops", "easy"))
    others = [rules.loc[("primer_mixed", name)] for name in ("first-high_gflops", "shortest-high_gflops")]
    slowdowns = [row["mean_bounded_slowdown"] for row in (first, shortest, *others)]
    longer = [100 * (after["makespan_s"] / before["makespan_s"] - 1) for before, after in ((first, shortest), others)]
    gaia, mixed = (f"from {slowdowns[row]:,.0f} to {slowdowns[row + 1]:.1f}" for row in (0, 2))
    yield f"mean bounded slowdown {gaia}, on 10,002 cores {mixed}"
    yield f"the makespan gets {longer[0]:.0f} and {longer[1]:.0f} % longer"
    waits = [row["mean_wait_s"] / HOUR for row in (easy, shortest, first)]
    text = f"(`easy`, {easy['mean_bounded_slowdown']:.1f}) has lower mean waiting times than either pair: "
    yield text + f"{waits[0]:.0f} h, against {waits[1]:.0f} h and {waits[2]:.0f} h."
    memory, flops = (rules.loc[("consequences_gaia", f"shortest-high_{name}")] for name in ("mem_bw", "gflops"))
    shares = [100 * row["oversubscription"] for row in (memory, flops)]
    yield f"{shares[0]:.0f} % of the cores' time with `shortest-high_mem_bw`, {shares[1]:.0f} % with `shortest-high_gflops`"
    yield (
        f"The slowdown is {memory['mean_bounded_slowdown']:.1f} instead of {flops['mean_bounded_slowdown']:.1f}, but makespan "
        f"({memory['makespan_s'] / HOUR:.1f} and {flops['makespan_s'] / HOUR:.1f} h) and energy "
        f"({memory['energy_j'] / 1e9:.2f} and {flops['energy_j'] / 1e9:.2f} GJ) are higher"
    )


def contended_sentences():
    rows = table("hetero_contended")
    learned = rows[rows["policy"] == "reinforce-contended"].set_index("seed").sort_index()
    chosen, best = (row for _, row in table("hetero_comparisons").iterrows())
    assert (chosen["against"], best["against"], chosen["seeds"], chosen["workloads"]) == ("best_fixed_pair", "shortest-high_mem_bw", 5, 20)
    interval = {row["against"]: f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f}" for row in (chosen, best)}
    yield (
        f"by {below(chosen['ratio'])} % on average** (ratio of means {chosen['ratio']:.2f}, 95 % interval over seeds and workloads "
        f"{interval['best_fixed_pair']})"
    )
    ratios = learned["ratio_to_chosen_pair"]
    assert ((ratios < 1).sum(), ((ratios == 1) & (learned["actions"] == 1)).sum()) == (4, 1)
    yield "Four of the five are better, one is that pair"
    yield (
        f"They win {100 * chosen['won']:.0f} % of the workloads, lose {100 * chosen['lost']:.0f} % and tie on the rest (win rate "
        f"{chosen['win_rate']:.2f}; effect size {chosen['effect_size']:.2f}"
    )
    yield f"nothing is won: ratio {best['ratio']:.2f} ({interval['shortest-high_mem_bw']}), win rate {best['win_rate']:.2f}"
    changing = learned[learned["actions"] > 1]
    assert sorted(changing["actions"].unique()) == [2, 3]
    (other,) = changing.index[changing["percent_other"] > 0]
    assert other == learned["mean"].idxmin()
    yield (
        f"Four change their action with the state, among two or three pairs: seed {other}, the best of them, plays others than "
        f"`shortest-*` in {changing.loc[other, 'percent_other']:.0f} % of its decisions, the rest never"
    )


def cpu_of_episode(variant: str) -> str:
    """CPU ms of an episode with its share of the update, mean over the seeds."""
    found = table("hetero_learning")
    found = found[found["variant"] == variant]
    return f"{1e3 * (found['learning_cpu_s'] / found['episodes'].astype(float)).mean():.2g}"


def learning_sentences():
    compiled, simulated = (cpu_of_episode(name) for name in ("as configured", "observation small, 240 episodes"))
    yield f"The compiled kernel takes {compiled} ms an episode with its share of the update, the simulator {simulated} (with `small`)"
    learned = table("hetero_learning").dropna(subset="learning_cpu_s").groupby("variant")["mean_bounded_slowdown"]
    mean, configured = learned.mean(), learned.get_group("as configured")
    pairs = table("hetero_learning").query("learning_cpu_s.isna()").set_index("variant")["mean_bounded_slowdown"]
    best = pairs.idxmin()
    yield (
        f"240 are too few with either observation (means {mean['observation small, 240 episodes']:.1f} and {mean['240 episodes']:.1f}); "
        f"2,000 come to {mean['2,000 episodes']:.1f} and 12,000 to {mean['as configured']:.1f} on average, where the best pair, `{best}`, "
        f"has {pairs.min():.1f}"
    )
    changed = mean[["with a critic", "half the hidden units"]]
    assert ((changed - mean["as configured"]).abs() < configured.max() - configured.min()).all()
    yield f"a critic ({changed.iloc[0]:.1f}) or half the hidden units ({changed.iloc[1]:.1f}) change less than another seed does"
    found = table("hetero_hindsight").set_index("tried")["mean_bounded_slowdown"]
    both, job, core = (found[f"which {what}"] for what in ("job and which core", "job", "core"))
    yield f"from {found['nothing']:.1f} to {both:.1f}; with the core policy held it reaches {job:.1f}, with the job policy held {core:.1f}"
    assert found["nothing"] > core > job > both
    yield "So more of it lies in *which job* than in *which cores*"
    rows = table("hetero_contended").drop_duplicates("policy").set_index("policy")["mean"]
    shortest = rows[rows.index.str.startswith("shortest-")]
    assert len(shortest) == 6
    yield f"the six `shortest-*` pairs come to {shortest.min():.1f} to {shortest.max():.1f} on the test"


def kth_sentences():
    found = table("hetero_kth")
    learned, mean = found[found["policy"] == "actor-critic-kth"], found.drop_duplicates("policy").set_index("policy")["mean"]
    assert (learned["actions"] == 1).all() and set(learned["mean"]) == {mean["shortest-high_gflops"], mean["shortest-high_mem_bw"]}
    assert (learned["mean"] == mean["shortest-high_gflops"]).sum() == 2
    yield "Each seed plays one pair throughout, two of them `shortest-high_gflops`"
    search, chosen = mean["best_fixed_pair-equal"], mean["best_fixed_pair"]
    assert learned["mean"].max() < min(search, chosen)
    yield f"The search of equal compute finds a worse pair ({search:.1f}), and so does the choice on validation ({chosen:.1f})"
    assert (found["workloads"] == 6).all() and len(learned) == 3
    yield "6 pieces, three seeds)"


def choices_sentences():
    found = table("hetero_objectives").set_index("objective")
    energy, both = (found.loc[name] for name in ("energy_consumption", "edp"))
    times = round(energy["mean_slowdown"] / both["mean_slowdown"], -2)
    saved = below(energy["energy_gj"] / both["energy_gj"])
    yield f"saves {saved} % of the energy of `edp`'s pair, at a slowdown {times:.0f} times as large"
    claims = ledger("hetero")
    sizes = [int(claims[f"observation-{name}"].ours_repaired) for name in ("minimal", "normal")]
    few, many = ((size + 1) * 16 + 3 * 17 * 16 + 17 * 5 for size in sizes)
    yield f"there are {few:,} of them with `minimal` observations and {many:,} with `normal` ones of Gaia"
    as_configured, wide, fast = (episodes("actor_critic", changed) for changed in ("", "hidden 64", "lr 0.02"))
    yield f"64 learn the thesis' case in {100 * wide / as_configured:.0f} % of the episodes of 16"
    assert fast / as_configured == pytest.approx(0.5, abs=0.05)
    yield "at 0.02 the thesis' case is learned in half the episodes"


def episodes(agent: str, changed: str = "") -> float:
    """Median over the seeds of the episodes that an agent needed."""
    found = pd.read_csv(REPOSITORY / "docs/results/hetero_launch.csv", keep_default_na=False)
    return median(found.loc[(found["agent"] == agent) & (found["changed"] == changed), "episodes"])


def launch_sentences():
    reinforce, critic = episodes("reinforce"), episodes("actor_critic")
    assert critic / reinforce == pytest.approx(0.5, abs=0.05)
    yield f"the critic takes the mean away and needs half as many episodes (medians {reinforce} and {critic})"


def model_sentences():
    yield f"An episode of `contended` with its share of the update takes {cpu_of_episode('as configured')} ms, a small part"
    speed = table("hetero_speed").set_index("case")
    small, normal = (speed.loc[f"observe gaia {name}"] for name in ("small", "normal"))
    texts = [f"{row['decisions_per_s']:,.0f} decisions/s" for row in (small, normal)]
    shares = [f"{row['percent_observing']:.0f} %" for row in (small, normal)]
    best = [f"{row['most_decisions_per_s']:,.0f}" for row in (small, normal)]
    yield f"{texts[0]} with `small` observations (median; {best[0]} at best), of which the observations take {shares[0]} of the time"
    yield f"{texts[1]} ({best[1]}) with `normal` ones, which take {shares[1]}"
    for name in ("reinforce", "actor-critic"):
        assert "seeds 0 to 4 is above 0.99" in ledger("hetero")[f"case-learned-{name}"].note
    yield "a probability above 0.99 after 1,600 episodes for each of the seeds 0 to 4"


def batsim_sentences():
    goals = yaml.safe_load((REPOSITORY / "benchmarks/goals.yaml").read_text())
    real = [goals[f"hetero/simulator[delay-{hosts}-fcfs]"]["original"] for hosts in (128, 2280)]
    yield f"with the same FCFS scheduler was measured at {real[0].split()[0]} (128 hosts) and {real[1]} (2,280 hosts)"


def batsim_model_sentences():
    core = table("batsim_simulator").set_index("case").loc["million-core"]
    each = 1e6 * core["seconds"] / core["jobs"]
    yield f"a delay job takes {each:.0f} us and leaves {core['bytes_per_job']:.0f} bytes, output files included"
    yield f"a million take {core['seconds']:.0f} s (case `million-core`"


def workloads_sentences():
    yield f"need the whole log: {8 * len(NAMES)} bytes a job"


def errata_sentences():
    learned = table("hetero_contended").query("policy == 'reinforce-contended'")["ratio_to_chosen_pair"]
    yield f"told what each action would start, they are {below(learned.mean())} % better than the pair chosen on validation"


def hetero_page_sentences():
    yield from hetero_sentences()
    yield from contended_sentences()
    yield from learning_sentences()
    yield from kth_sentences()


SENTENCES = {
    "hetero": hetero_page_sentences,
    "hetero_choices": choices_sentences,
    "hetero_launch": launch_sentences,
    "hetero_model": model_sentences,
    "batsim": batsim_sentences,
    "batsim_model": batsim_model_sentences,
    "workloads": workloads_sentences,
    "errata": errata_sentences,
}


@pytest.mark.parametrize("page", SENTENCES)
def test_numbers_in_sentences_are_those_of_the_results(page):
    assert missing(page, SENTENCES[page]) == []
