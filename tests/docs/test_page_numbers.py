"""Numbers of the documentation that come from runs are those of docs/results and of the ledgers, in tables and in sentences.

A sentence is written here with its numbers computed; the page has to have it, whatever its line breaks.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from page_sentences import REPOSITORY, RESULTS, below, ledger, missing, table

import batch_tables  # isort: skip  (page_sentences adds its folder)
import cloud_page_tables  # isort: skip
import page_tables  # isort: skip
from table_parts import one, seeds_of, share  # isort: skip


def tables() -> list[Path]:
    """Tables of results; test_measurements.py holds the lists of single measurements."""
    return [path for path in sorted(RESULTS.glob("*.csv")) if not path.name.startswith("measurements_")]


def test_every_table_is_what_the_results_make():
    stale = [path.name for path in page_tables.pages() if page_tables.refreshed(path.read_text()) != path.read_text()]
    assert stale == [], "run: python benchmarks/page_tables.py"


def test_every_table_stands_in_one_page():
    found = [match["name"] for path in page_tables.pages() for match in page_tables.BLOCK.finditer(path.read_text())]
    assert sorted(found) == sorted(page_tables.TABLES)
    marked = sum(path.read_text().count("<!-- from ") for path in page_tables.pages())
    assert marked == len(found)  # a begin without its end would be passed over


def test_every_result_is_named_in_a_page():
    text = "".join(path.read_text() for path in page_tables.pages())
    assert [path.name for path in tables() if f"results/{path.name}" not in text] == []


def test_the_list_of_results_says_which_of_them_name_their_configuration():
    row = r"^\| `(\w+\.csv)` \| (?:`python ([\w/.]+)|measured by hand: )[^|]*\| ([^|]+) \|$"
    listed = re.findall(row, (RESULTS / "README.md").read_text(), flags=re.M)
    assert [name for name, *_ in listed] == [path.name for path in tables()]
    for name, program, said in listed:
        assert not program or (REPOSITORY / program).is_file(), program  # none where it was measured by hand
        columns = set(pd.read_csv(RESULTS / name, nrows=0).columns) & {"config_hash", "configuration"}
        if said.startswith("none"):
            assert "config_hash" not in columns, name
        else:
            (column,) = columns
            assert said == f"`{column}`"
            assert pd.read_csv(RESULTS / name, dtype=str)[column].str.fullmatch("[0-9a-f]{12,16}").all(), name


def test_another_result_makes_another_table(tmp_path, monkeypatch, capsys):
    results = Path(shutil.copytree(RESULTS, tmp_path / "results"))
    file = results / "ramp_learning.csv"
    rows = pd.read_csv(file, dtype={"by_seed": str})
    learned = (rows["scenario"] == "published_a") & (rows["policy"] == "afterstate")
    was = share(rows.loc[learned, "blocking_rate"].item())
    rows.loc[learned, "blocking_rate"] = 0.2793
    rows.to_csv(file, index=False)
    page = (REPOSITORY / "docs/ramp.md").read_text()
    assert "| **`afterstate`** | .279 |" in page_tables.refreshed(page, results)
    stale = tmp_path / "page.md"
    stale.write_text(page.replace(f"| **`afterstate`** | {was} |", "| `afterstate` | .278 |"))
    assert stale.read_text() != page
    monkeypatch.setattr(page_tables, "REPOSITORY", tmp_path)
    monkeypatch.setattr(page_tables, "pages", lambda: [stale])
    monkeypatch.setattr(page_tables, "refreshed", lambda text: page)
    assert page_tables.main(["--check"]) == 1
    assert page_tables.main([]) == 0 and stale.read_text() == page
    assert page_tables.main(["--check"]) == 0
    assert capsys.readouterr().out.splitlines() == ["page.md: is not up to date", "page.md: brought up to date"]


def test_the_published_windows_of_batch_are_those_of_the_ledger():
    claims, page = ledger("batch"), (REPOSITORY / "docs/batch_learning.md").read_text()
    tables = re.findall(r"rollouts, mean of 5 seeds \(least to largest\) \|\n\|[-:|]+\|\n((?:\|.*\n)+)", page)
    assert len(tables) == 2
    for rows, backfill in zip(tables, ("", "-backfill"), strict=True):
        for row in rows.splitlines():
            name, published, *_, seeds = [cell.strip() for cell in row.strip("|").split("|")]
            claim = claims[f"bsld-{name.lower().replace('lublin-', 'lublin')}{backfill}-rl"]
            assert published == f"{claim.published:.2f}"
            assert float(seeds.split()[0]) == pytest.approx(claim.ours_repaired, abs=0.006)


def test_the_loads_of_ramp_are_those_of_the_ledger():
    claims, page = ledger("ramp"), (REPOSITORY / "docs/ramp.md").read_text()
    assert page.count("| s | 50 |") == 1
    (head, most, least) = [line.strip("|").split("|") for line in re.search(r"(\| s \| 50 .*)\n.*\n(.*)\n(.*)\n", page).groups()]
    for seconds in (50, 100, 6000, 12000):
        column = [cell.strip() for cell in head].index(str(seconds))
        for cells, rule in ((most, "para-max"), (least, "para-min")):
            assert cells[column].strip() == share(claims[f"load-{rule}-{seconds}"].ours_reference), (rule, seconds)


def test_the_effects_of_defects_are_those_of_the_results():
    """Rows of the errata whose switch was measured alone: para_max and para_min in s, then in ms."""
    found = table("ramp_rules").set_index(["part", "setting", "rule"])["blocking_rate"]
    measured = {setting for part, setting, _ in found.index if part.startswith("defects")} - {"none", "all"}
    rows = re.findall(r"^\| \d+ \|.*\| `(\w+)` \|((?: \.\d+ \|){4}) `", (REPOSITORY / "docs/errata.md").read_text(), flags=re.M)
    assert {switch for switch, _ in rows} == measured
    for switch, cells in rows:
        expected = [share(found[f"defects, {unit}", switch, rule]) for unit in ("s", "ms") for rule in ("para_max", "para_min")]
        assert re.findall(r"\.\d+", cells) == expected, switch


BUSY = ("atlas-busy", "nasa-busy")  # logs whose jobs were drawn together to a load of 0.9


def batch_sentences():
    search, rollouts = table("batch_search"), table("batch_rollouts")

    def searched(trace, against, backfill="none"):
        return one(search, trace=trace, learned_on=trace, against=against, backfill=backfill)

    def rolled(trace, against, backfill="none"):
        return one(rollouts, learner="rollout", trace=trace, against=against, backfill=backfill)

    traces = ("sdsc", "hpc2n", "lublin-1", "lublin-2")
    chosen = {trace: searched(trace, "chosen by mean") for trace in traces}
    gains = sorted(1 - row["ratio"] for row in chosen.values())
    planner = [below(searched(trace, "planner")["baseline_mean"] / chosen[trace]["baseline_mean"]) for trace in traces]
    yield f"beats the chosen rule on every trace, by {100 * gains[0]:.0f} to {100 * gains[-1]:.0f} %"
    yield f"On SDSC-SP2 it loses {-int(below(searched('sdsc', 'planner')['ratio']))} % to it on the test windows"
    yield (
        f"The planner itself, in which nothing is learned, is {planner[0]} % below the chosen rule on SDSC-SP2, {planner[1]} % on HPC2N "
        f"and {planner[2]} and {planner[3]} % on the drawn traces"
    )
    yield f"In {chosen['hpc2n']['windows_differing']} of its {chosen['hpc2n']['windows']} windows the policies differ at all"
    mean = {trace: rolled(trace, "chosen by mean") for trace in traces}
    easy = {trace: below(rolled(trace, "chosen by mean", "easy")["ratio"]) for trace in traces}
    yield f"HPC2N is {below(mean['hpc2n']['ratio'])} % below the chosen rule (20 % were asked)"
    yield f"{below(mean['lublin-1']['ratio'])} and {below(mean['lublin-2']['ratio'])} % (5 % were asked)"
    yield (
        f"With EASY, HPC2N is {easy['hpc2n']} % below the chosen rule, the trace like Lublin-2 {easy['lublin-2']} %, "
        f"SDSC-SP2 {easy['sdsc']} %, and the trace like Lublin-1 {easy['lublin-1']} %"
    )
    reaching = [trace for trace in traces for role in ("planner", "hindsight") if rolled(trace, role, "easy")["ratio_high"] >= 1]
    assert reaching == ["sdsc"] and rolled("sdsc", "planner", "easy")["ratio_high"] >= 1  # "with an interval that reaches 1"
    assert {row["seeds"] for row in (*mean.values(), *(rolled(trace, "chosen by mean", "easy") for trace in traces))} == {5}
    yield (
        f"SDSC-SP2 without backfilling is {below(mean['sdsc']['ratio'])} % below the chosen rule where 20 % were asked, "
        f"and no better than the planner ({rolled('sdsc', 'planner')['ratio']:.2f})"
    )
    yield f"on SDSC-SP2 {below(rolled('sdsc', 'evolution')['ratio'])} % lower in the mean with an interval that reaches 1"
    evolution = {trace: one(rollouts, learner="rollout", trace=trace, against="evolution", backfill="none") for trace in traces}
    drawn = " and ".join(below(evolution[trace]["ratio"]) for trace in traces[2:])
    yield f"on HPC2N by {below(evolution['hpc2n']['ratio'])} % and on the drawn ones by {drawn} %"
    theirs = [one(rollouts, learner="evolution", trace=trace, against="planner", backfill="none")["cpu_seconds"] for trace in traces]
    times = sorted(their / evolution[trace]["cpu_seconds"] for their, trace in zip(theirs, traces, strict=True))
    yield f"takes it {times[0]:.1f} to {times[-1]:.1f} times the CPU seconds of the rollouts"
    effects = sorted(-mean[trace]["standardised_log_ratio"] for trace in traces)
    yield f"{effects[0]:.2f} to {effects[-1]:.2f} standard deviations of the windows' log ratios below the chosen rule"
    settings, loads = table("batch_settings"), [name for name in batch_tables.SETTINGS if name == "lublin" or "load" in name]
    chosen, best = ([one(settings, trace=name, against=role) for name in loads] for role in ("chosen by mean", "hindsight"))
    ratios = [[row["ratio"] for row in rows] for rows in (chosen, best)]
    yield f"here they are {below(max(ratios[0]))} to {below(min(ratios[0]))} % below it"
    yield f"which is `f1` at every load, {below(max(ratios[1]))} to {below(min(ratios[1]))} %"
    assert {row["rule"] for row in chosen if row["ratio_high"] < 1} == {"sjf"} and {row["rule"] for row in best} == {"f1"}
    assert [row["trace"] for row in best if row["ratio_high"] < 1] == ["lublin_load_60"]  # "at a load of 0.6 alone"
    default = one(settings, trace="lublin", against="chosen by mean")
    ends = seeds_of(default["by_seed"])
    won = f"{100 * default['win_rate']:.0f} % of windows won; seeds {min(ends):.0f} to {max(ends):.0f}"
    yield f"({default['ratio']:.2f} with an interval around 1, {won})"
    unseen = table("batch_confirmation")
    logs = [unseen[(unseen["trace"] == name) & (unseen["learned_on"] == name) & (unseen["learner"] == "rollout")] for name in BUSY]
    first, second = (" and ".join(below(one(log, against=role)["ratio"]) for log in logs) for role in ("chosen by mean", "evolution"))
    yield f"rollouts are {first} % below the chosen rule, with intervals that end below 1, and {second} % below the evolution strategy"
    assert max(one(log, against="chosen by mean")["ratio_high"] for log in logs) < 1
    assert min(one(log, against="evolution")["ratio_high"] for log in logs) >= 1  # "may be chance on both logs"
    assert min(one(log, against="planner")["ratio_high"] for log in logs) >= 1
    assert [one(log, against="hindsight")["ratio_high"] < 1 for log in logs] == [False, True] and set(unseen["seeds"]) == {5}
    kept = f"{one(logs[0], against='chosen by log')['baseline_mean']:.4g}"
    assert one(logs[0], against="planner")["by_seed"].split().count(kept) == 1  # "one of the five seeds keeps `f2` itself"
    by_log = [one(log, against="chosen by log") for log in logs]
    rules = [f"(`{row['rule']}`, {below(row['ratio'])} %" for row in by_log]
    yield f"{rules[0]} behind rollouts) and worse on NASA-iPSC {rules[1]})"
    yield f"(geometric mean {mean['hpc2n']['geometric_ratio']:.2f}, and policies differ in {mean['hpc2n']['windows_differing']}"
    networks = table("batch_networks")
    networks = networks[networks["drawn_seed"] == 1]
    rule = networks[networks["against"] == "f1"].set_index("variant")
    ends = [mean for variant in rule.index if "cloned" not in variant for mean in seeds_of(rule["by_seed"][variant])]
    bad = sum(mean > 2 * rule["baseline_mean"].iloc[0] for mean in ends)
    kernel, cloned = (seeds_of(rule["by_seed"][name]) for name in ("kernel", "kernel, cloned from f1"))
    yield f"{bad} of the {len(ends)} seeds without a clone end above twice `f1`"
    yield f"One seed of the plain kernel ends at {min(kernel):.0f} and another at {max(kernel):.0f}"
    yield f"failed in none of five seeds ({min(cloned):.0f} to {max(cloned):.0f})"
    yield f"where `f1`, the rule chosen on validation, has {rule['baseline_mean'].iloc[0]:.1f}"


def ramp_sentences():
    rules = table("ramp_rules")
    masks = rules[rules["part"] == "masks"].set_index(["setting", "rule"])
    shares = {rule: [f"{100 * value:.0f}" for value in masks.loc[("degrees", rule), "no_free_block"]] for rule in ("para_min", "random")}
    texts = {rule: f"{', '.join(values[:3])} and {values[3]} %" for rule, values in shares.items()}
    assert (masks.loc[("degrees", "para_max"), ["no_free_block", "limit_exceeded"]] == 0).all(axis=None)
    assert masks.loc[("degrees", "para_min"), "too_few_workers"].iloc[3] == pytest.approx(0.5, abs=0.05)
    yield f"under para_max nothing but a lack of free workers; under para_min {texts['para_min']} on A to D had no free block"
    yield f"under random {texts['random']}"
    rates = [list(map(share, masks.loc[(mask, "para_min"), "blocking_rate"])) for mask in ("degrees", "blocks")]
    before, after = (f"{', '.join(values[:3])} and {values[3]}" for values in rates)
    yield f"changes para_min from {before} to {after}"
    tuning = table("ramp_tuning").dropna(subset="blocked_rung_1")
    best = [share(value) for value in sorted(tuning["blocked_rung_1"])]
    assert best.count(".187") == best.count(".201") == 2
    yield f"Two of the best end at {best[0]} and two at {best[best.index('.201')]}"


def hetero_sentences():
    ratio = table("hetero_contended").set_index("policy").loc["reinforce-contended", "ratio_to_chosen_pair"].mean()
    yield f"by {below(ratio)} % on average** (ratio of means {ratio:.2f}"
    case = [ledger("hetero")[f"case-makespan-{name}"].published for name in ("high-gflops", "high-mem-bw", "low-power")]
    yield f"end after {case[0]:.4f} s (`high_gflops`), {case[1]:.2f} s (`high_mem_bw`, 563.182 J) and {case[2]:.0f} s (`low_power`)"


def cloud_sentences():
    started = cloud_page_tables.episodes_to_gain(RESULTS)
    less = {job: below((started[job, "historical"] / started[job, "cold"]).mean()) for job in cloud_page_tables.JOBS}
    yield f"With logs {less['cifar10']}, {less['imagenet']}, {less['movielens']} and {less['squad']} % less (claimed: 60 %)"
    saved = started["cifar10", "baseline"] / started["cifar10", "cold"]
    yield f"mislead, on `cifar10` {below(saved[0])} % less and {-int(below(saved[1]))} % more"
    more = 100 * (started["imagenet", "baseline"] / started["imagenet", "cold"] - 1)
    yield f"{more[0]:.0f} % and {more[1]:.0f} % more"
    dearer = [job for job in cloud_page_tables.JOBS if (started[job, "similar"] > 2 * started[job, "historical"]).all()]
    assert sorted(dearer) == ["cifar10", "movielens", "squad"]
    regret = table("cloud_reinforce").groupby(["scenario", "preference"])["regret"].max()
    yield f"whose regret is at most {share(regret['movielens', 'time'])}"
    claims = ledger("cloud")
    for name, text in (("time-reduction", "{:.0f} % less time for the preference time"), ("cost-reduction", "cost {:.0f} % less for cost")):
        yield text.format(claims[name].ours_repaired)


def adaptation_sentences():
    claims = ledger("adaptation")
    best, ceiling = claims["best-learned"], claims["five-scenarios"]
    published, ours = share(best.published, 4), share(best.ours_reference, 4)
    yield f"| mean accuracy over five scenarios, best learned policy | {published} | {ours} (best of 18 runs"
    yield f"| {share(ceiling.ours_repaired, 4)} (the ceiling) |"
    assert published == share(claims["constant-011-accuracy"].published, 4)
    yield f"| constant 011: ranks from early to late | {claims['constant-011-ranks'].published} | equal |"
    epochs = [claims[name].ours_reference for name in ("epochs-equal", "epochs-within-one")]
    yield f"| runs with the recorded number of epochs, of 640 | | {epochs[0]:.0f} ({epochs[1]:.0f} within one) |"
    for name, row in (("early", "from scratch on early: ranks from early to late"), ("middle", "from scratch on middle")):
        yield f"| {row} | {claims[f'ranks-{name}'].published} |"
    first, second = claims["ranks-early"].ours_reference.split(" | ")
    yield f"| {first} and {second} (two seeds) |"
    first, second = claims["ranks-late"].ours_reference.split(" | ")
    yield f"| {claims['ranks-late'].published} | {first} and {second} (two) |"
    whole = claims["ranks-early-middle-late"]
    yield f"| {whole.published} | {whole.ours_reference} (one) |"


def errata_sentences():
    adaptation = ledger("adaptation")
    norm, relu, worst = (adaptation[name] for name in ("batch-norm-mean", "head-relu-mean", "batch-norm-worst"))
    yield f"mean test accuracy {share(norm.ours_repaired, 4)} calibrated and {share(norm.ours_reference, 4)} default"
    yield f"worst sequence {share(worst.ours_repaired, 4)} and {share(worst.ours_reference, 4)}"
    yield f"(three replicates) the mean is {share(relu.ours_reference)} instead of {share(relu.ours_repaired)}"
    dead, noise, nothing = (adaptation[name] for name in ("dead-classes-accuracy", "fresh-optimizer-noise", "fresh-optimizer-none"))
    yield f"Mean test accuracy {share(dead.ours_reference)} with it, {share(dead.ours_repaired)} without"
    yield f"the noise of one result is {share(noise.ours_reference, 4)} instead of {share(noise.ours_repaired, 4)}"
    yield f"doing nothing ends at {share(nothing.ours_reference)} instead of {share(nothing.ours_repaired)}"
    epochs = adaptation["record-epochs"]
    yield f"{epochs.ours_reference:,.0f} epochs become {epochs.ours_repaired:,.0f}"
    batch = ledger("batch")
    wfp3, waiting = batch["bsld-lublin1-wfp3"], batch["test-hpc2n-sjf"]
    yield f"Lublin-1: {wfp3.ours_reference:.2f} instead of {wfp3.ours_repaired:.2f}"
    yield f"HPC2N, SJF: {waiting.ours_reference:.2f} instead of {waiting.ours_repaired:.2f}"
    hetero = ledger("hetero")
    case = [hetero[f"case-energy-{name}"] for name in ("high-gflops", "low-power")]
    texts = [f"{claim.ours_reference:,.0f} J instead of {claim.ours_repaired:.0f} J" for claim in case]
    yield f"learning case: {texts[0]} (`high_gflops`), {texts[1]} (`low_power`)"
    ramp = ledger("ramp")
    both = [ramp[f"blocking-para-{name}-a"] for name in ("max", "min")]
    texts = [[share(getattr(claim, mode)) for claim in both] for mode in ("ours_repaired", "ours_reference")]
    yield f"without any defect: para_max {texts[0][0]}, para_min {texts[0][1]}"
    yield f"Mode reference, with all: {texts[1][0]}, {texts[1][1]}"
    rules = table("ramp_rules").set_index(["part", "setting", "rule"])["blocking_rate"]
    none, everything = ([share(rules["defects, ms", mode, rule]) for rule in ("para_max", "para_min")] for mode in ("none", "all"))
    yield f"para_max {texts[0][0]}, para_min {texts[0][1]}; in ms {none[0]}, {none[1]}."
    yield f"with all: {texts[1][0]}, {texts[1][1]}; in ms {everything[0]}, {everything[1]}."


SENTENCES = {
    "batch_learning": batch_sentences,
    "ramp": ramp_sentences,
    "hetero": hetero_sentences,
    "cloud": cloud_sentences,
    "adaptation": adaptation_sentences,
    "errata": errata_sentences,
}


@pytest.mark.parametrize("page", SENTENCES)
def test_numbers_in_sentences_are_those_of_the_results(page):
    assert missing(page, SENTENCES[page], least=2) == []
