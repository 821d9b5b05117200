"""More sentences of docs/adaptation.md, and those of docs/errata.md on adaptation, with their numbers from the ledger."""

from __future__ import annotations

import re

import pytest
from page_sentences import ledger, missing, text_of

from table_parts import share  # isort: skip  (page_sentences adds its folder)


def ranks_by_seed(text: str) -> list[list[int]]:
    """Ranks on the five scenarios, a list for each seed, of a ledger's `1 1 17 1 22 | 1 1 17 2 22`."""
    return [[int(rank) for rank in seed.split()] for seed in text.split(" | ")]


def page_sentences():
    claims = ledger("adaptation")
    seeds = [ranks_by_seed(claim.ours_reference) for name, claim in claims.items() if name.startswith("ranks-") and claim.ours_reference]
    spans = [max(ranks) - min(ranks) for ranks_of_seeds in seeds for ranks in zip(*ranks_of_seeds, strict=True)]
    yield f"seeds of the same run differ by up to {max(spans)} ranks"
    best, constant = claims["best-learned"], claims["constant-011-accuracy"]
    (noise,) = re.findall(r"noise of (\.\d+ to \.\d+)", best.note)
    yield (
        f"The difference between {share(best.ours_reference, 4)} and the constant's {share(constant.ours_reference, 4)} is a fraction of "
        f"the noise of one result ({noise})"
    )
    (mean,) = re.findall(r"whose mean is (0\.\d+)", best.note)
    yield f"(best of 18 runs, whose mean is {share(float(mean), 4)})"
    middle = claims["ranks-middle"]
    yield f"| from scratch on middle | {middle.published} | {middle.ours_reference.replace(' | ', ', ')} (three) |"
    own = claims["scratch-ranks"]
    ours = re.sub(r"[a-z]+ ", "", own.ours_reference).replace(";", ",")
    yield f"| ranks on the own scenario, from scratch | {own.published} | {ours} | {own.ours_repaired} |"
    equal, within = (100 * claims[name].ours_reference / 640 for name in ("epochs-equal", "epochs-within-one"))
    yield f"| equal 65 %, within one 99 % | {equal:.0f} %, {within:.1f} % |"
    left = claims["time-left"]
    yield f"| {left.ours_reference:.2f} s, {left.note.split(' %')[0]} % |"
    whole, back, apart = ((claims[name].ours_reference, claims[name].ours_repaired) for name in ("record-epochs", "tree-1", "tree-3"))
    yield f"(28 epochs left: {back[0]:,.0f} epochs become {back[1]:,.0f}; the published simulations {whole[0]:,.0f} become {whole[1]:,.0f})"
    yield f"(27 epochs left, 9 apart: {apart[0]:,.0f} become {apart[1]:.0f})"


def errata_sentences():
    claims = ledger("adaptation")
    dead, accuracy = claims["dead-classes"], claims["dead-classes-accuracy"]
    yield (
        f"{dead.ours_reference:g} of 10 classes dead; "
        f"mean accuracy {share(accuracy.ours_reference, 2)} instead of {share(accuracy.ours_repaired, 2)}"
    )
    noise = claims["fresh-optimizer-noise"]
    yield f"noise of one result x {noise.ours_reference / noise.ours_repaired:.1f}"
    was, now = re.findall(r"\.\d\d", noise.note)
    yield f"the share of the variance that is due to the sequence falls from {now} to {was}. ```"
    relu = claims["head-relu-mean"]
    yield f"(three replicates) the mean is {share(relu.ours_reference)} instead of {share(relu.ours_repaired)}"
    worst = claims["batch-norm-worst"]
    yield f"worst sequence {share(worst.ours_reference)} instead of {share(worst.ours_repaired)}"
    training, evaluation = claims["function-training"], claims["function-evaluation"]
    yield f"(outputs change by {evaluation.ours_reference:.0e}, relative)".replace("e-06", "e-6")
    yield f"outputs change by {100 * training.ours_reference:.0f} % in training mode"
    yield f"{evaluation.ours_repaired:.1e} in evaluation mode, {100 * training.ours_repaired:.1f} % in training mode".replace("e-07", "e-7")
    first, second, third = claims["temperature-episodes"].ours_reference.split()
    yield f"explore in the first {first}, {second} and {third} of 10,000 episodes"
    yield f"over after {first} to {third} of 10,000 episodes"
    yield f"with probability {share(claims['temperature-certain'].ours_reference)} at any temperature just above 1"
    early, middle = (ranks_by_seed(claims[f"ranks-{name}"].published) for name in ("early", "middle"))
    for published, name in ((early, "early"), (middle, "middle")):
        assert published[0] in ranks_by_seed(claims[f"ranks-{name}"].ours_reference), name
    yield f"From scratch on early: ranks {claims['ranks-early'].published} over the five scenarios with seed 1"
    yield f"on middle {claims['ranks-middle'].published} with seed 2, likewise"
    own, mean = claims["ranks-early-late-t10"], re.findall(r"whose mean is 0(\.\d+)", claims["best-learned"].note)
    yield f"Early to late at temperature 10 keeps the parent's rank {ranks_by_seed(own.ours_reference)[0][-1]} on late"
    constant = share(claims["constant-011-accuracy"].published, 4)
    yield f"The mean accuracy of 18 such runs is {mean[0]}; the constant sequence 011 has {constant}"
    epochs = [int(claims[name].ours_reference) for name in ("epochs-equal", "epochs-within-one")]
    text = f"{epochs[0]} of the 640 recorded runs get the recorded number of epochs, {epochs[1] - epochs[0]} are off by one and "
    yield text + f"{640 - epochs[1]} by two"
    yield f"{epochs[0]} of 640 recorded runs have the pinned number of epochs"


@pytest.mark.parametrize(("page", "sentences"), [("adaptation", page_sentences), ("errata", errata_sentences)])
def test_numbers_in_sentences_are_those_of_the_ledger(page, sentences):
    assert missing(page, sentences, least=6) == []


def test_the_dead_classes_of_ten_initialisations_have_the_mean_of_the_ledger():
    text = text_of("errata")
    (counts,) = re.findall(r"ten initialisations trained to the end of the budget: ([\d, and]+) of 10 classes are dead", text)
    numbers = [int(number) for number in re.findall(r"\d+", counts)]
    assert len(numbers) == 10
    assert sum(numbers) / 10 == pytest.approx(ledger("adaptation")["dead-classes"].ours_reference)


def test_ranks_of_policies_themselves_and_of_the_ledger_are_alike():
    """The ranks that the errata set beside the parents' are those of the ledger, by seed."""
    text = text_of("errata")
    first, second = re.search(r"late to early to middle (\d+) and \d+ \(seed 0\) and (\d+) and \d+ \(seed 1\)", text).groups()
    assert [int(first), int(second)] == [
        ranks[2] for ranks in ranks_by_seed(ledger("adaptation")["ranks-late-early-middle"].ours_reference)
    ]
