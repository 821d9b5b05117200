"""How often 95 % intervals hold the true value where it is known: python docs/generate/interval_coverage.py

Writes docs/results/interval_coverage.csv, which docs/reference/tables.md shows. Scores are drawn from known laws again
and again, and each drawing has its interval by the functions that `summarise` calls. A score is a level plus an effect
of the seed, one of the block and one of both, whose shares of the variance are the model; the effect of a block is to
one half the same for all policies. A ratio is against the rival that is chosen on as many other blocks; what its
interval should hold is the ratio to that rival, with any seeds and blocks. Two scenarios have either nothing in common,
or the effects of seeds and of blocks. Fewer resamples than a study's 2,000 do not
matter: one case stands with both.

coverage  share of intervals that hold the true value
width     mean width over 2 x 1.96 standard deviations of the estimates, which an interval would have that knew them
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from table_parts import one, page

from schedlab.config.files import write_text
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation.rivals import Ratio, Side, Streams, against_chosen, pooled
from schedlab.evaluation.statistics import Sample, Statistic, compare, estimate

OUT = Path(__file__).resolve().parents[1] / "results/interval_coverage.csv"
LEVEL = 10.0  # of scores of which ratios are taken, in standard deviations of a score
NORMAL = 1.959964  # quantile of an interval of 95 %
MODELS = {  # shares of seeds, blocks and both
    "seeds dominate": (0.8, 0.1, 0.1),
    "blocks dominate": (0.1, 0.8, 0.1),
    "equal": (1 / 3, 1 / 3, 1 / 3),
    "interaction dominates": (0.1, 0.1, 0.8),
    "interaction alone": (0.0, 0.0, 1.0),
}
LAWS = {"normal": 0.0, "skewness 1.75": 0.5, "skewness 6.2": 1.0}  # skewed: lognormal with this sigma
RIVALS = {  # by how much the means of rivals lie above the policy's
    "one": (0.0,),
    "five, one clearly best": (0.0, 3.0, 3.0, 3.0, 3.0),
    "five equal": (0.0,) * 5,
    "two that differ slightly": (0.0, 0.2),
    "one, two scenarios pooled": (0.0,),
    "one, two scenarios with the same blocks and seeds": (0.0,),
}
APART, SHARED = list(RIVALS)[-2:]
FEW = ("one", SHARED)  # also with three blocks


@dataclass(frozen=True)
class Case:
    """What is estimated (value, difference or ratio), of which model, with how many seeds of policy and rivals (1: a
    rule) and blocks.
    """

    quantity: str
    model: str
    law: str = "normal"
    rivals: str = ""
    seeds: int = 5
    rival_seeds: int = 0
    blocks: int = 20
    statistic: Statistic = "mean"
    resamples: int = 500


def cases() -> Iterator[Case]:
    """Yield every line of the table."""
    for model in MODELS:
        for seeds in (5, 3):
            yield from (Case("value", model, seeds=seeds, statistic=statistic) for statistic in ("mean", "iqm"))
        yield from (Case("value", model, law) for law in LAWS if law != "normal")
    yield Case("value", "equal", resamples=2000)
    yield from (Case("value", "blocks", law, seeds=1) for law in LAWS)
    yield from (Case("value", "blocks", seeds=1, blocks=blocks) for blocks in (3, 5))
    for model in MODELS:
        yield from (Case("difference", model, rival_seeds=seeds) for seeds in (1, 5))
    for model in ("seeds dominate", "equal"):
        for rivals in RIVALS:
            yield from (Case("ratio", model, rivals=rivals, rival_seeds=seeds) for seeds in (1, 5))
    for model in ("seeds dominate", "equal"):
        for rivals in FEW:
            yield from (Case("ratio", model, rivals=rivals, rival_seeds=seeds, blocks=3) for seeds in (1, 5))
    for model in ("seeds dominate", "equal"):
        for rivals in ("one", "five equal"):
            yield from (Case("ratio", model, rivals=rivals, seeds=3, rival_seeds=seeds) for seeds in (1, 3))


class Drawing:
    """Scores of one repetition: policies on the same blocks, half of whose effects they share. A policy that is drawn
    again keeps the effects of its seeds and blocks.
    """

    def __init__(self, case: Case, rng: np.random.Generator) -> None:
        self.rng, self.sigma = rng, LAWS[case.law]
        self.of_seed, self.of_block, self.of_both = np.sqrt(MODELS.get(case.model, (0.0, 1.0, 0.0)))
        self.shared = 0.5 if case.rival_seeds else 0.0
        self.hard = [self.effects(case.blocks) for _ in ("test", "validation")]
        self.kept: dict[str, tuple[np.ndarray, list[np.ndarray]]] = {}

    def effects(self, *shape: int) -> np.ndarray:
        """Draw effects of mean 0 and variance 1."""
        normal = self.rng.normal(size=shape)
        if not self.sigma:
            return normal
        square = self.sigma**2
        return (np.exp(self.sigma * normal) - np.exp(square / 2)) / np.sqrt(np.exp(square) * np.expm1(square))

    def side(self, policy: str, seeds: int, mean: float, scenario: str = "") -> Side:
        """Draw a policy's scores on the test blocks and on those of validation, of the same seeds (1: of a rule).

        scenario  before the names of its blocks
        """
        if policy not in self.kept:
            luck = self.of_seed * self.effects(seeds, 1) if seeds > 1 else np.zeros((1, 1))
            self.kept[policy] = luck, [self.effects(hard.size) for hard in self.hard]
        (luck, owns), samples = self.kept[policy], []
        for split, hard, own in zip(("test", "validation"), self.hard, owns, strict=True):
            block = self.of_block * (np.sqrt(self.shared) * hard + np.sqrt(1 - self.shared) * own)
            values = mean + luck + block + self.of_both * self.effects(seeds, hard.size)
            units = tuple(f"{scenario}{split}-{number:03d}" for number in range(hard.size))
            samples.append(Sample(values, np.ones_like(values), np.array(units), tuple(range(seeds)), units, seeds > 1))
        return Side(*samples)


def interval(case: Case, rng: np.random.Generator) -> tuple[float, ...]:
    """Draw scores; return the estimate, the ends of its interval and the true value (of a ratio their logarithms)."""
    settings = StatisticsSettings(statistic=case.statistic, resamples=case.resamples)
    if case.quantity == "ratio":
        means = RIVALS[case.rivals]
        streams = partial(generator, int(rng.integers(2**62)))
        first = Drawing(case, rng)
        drawn = {"": first} | ({"a": Drawing(case, rng)} if case.rivals == APART else {})
        found = [scenario(case, means, settings, one, streams, name) for name, one in drawn.items()]
        if case.rivals == SHARED:
            found.append(scenario(case, means, settings, first, streams))
        ratio = pooled(found)
        truth = LEVEL / (LEVEL + means[int(ratio.rival[-1])])
        return tuple(np.log([ratio.ratio, ratio.ci_low, ratio.ci_high, truth]))
    drawn = Drawing(case, rng)
    policy = drawn.side("ours", case.seeds, 0.0).test
    if case.quantity == "value":
        found = estimate(policy, settings, rng, fewest=3)
    else:
        found = compare(policy, drawn.side("theirs", case.rival_seeds, 0.0).test, "lower", settings, rng).difference
    return found.value, found.ci_low, found.ci_high, 0.0


def scenario(
    case: Case,
    means: Sequence[float],
    settings: StatisticsSettings,
    drawn: Drawing,
    streams: Streams,
    name: str = "",
) -> Ratio:
    """Draw a policy and its rivals, whose names are that of the scenario and their places; return the ratio to the
    chosen one.
    """
    policy = drawn.side(f"{name}ours", case.seeds, LEVEL, name)
    rivals = {f"{name}{place}": (case.rival_seeds, LEVEL + mean, name) for place, mean in enumerate(means)}
    sides = {rival: drawn.side(rival, *values) for rival, values in rivals.items()}
    return against_chosen(f"{name}ours", policy, sides, "lower", settings, streams)


def coverage(case: Case, repetitions: int) -> dict[str, object]:
    """Return a line of the table."""
    rng = generator(0, "interval coverage", *(str(value) for value in vars(case).values()))
    value, low, high, truth = np.array([interval(case, rng) for _ in range(repetitions)]).T
    return vars(case) | {
        "repetitions": repetitions,
        "coverage": round(float(np.mean((low <= truth) & (truth <= high))), 4),
        "width": round(float(np.mean(high - low) / (2 * NORMAL * np.std(value - truth))), 3),
    }


def interval_values(results: Path) -> str:
    """Coverage of intervals of values and differences."""
    columns = {
        "mean of five seeds": {},
        "mean of three": {"seeds": 3},
        "interquartile mean of five": {"statistic": "iqm"},
        "of three": {"seeds": 3, "statistic": "iqm"},
        "difference to a rule": {"rival_seeds": 1},
        "to a learned policy": {"rival_seeds": 5},
    }
    quantities = ["difference" if "rival_seeds" in wanted else "value" for wanted in columns.values()]
    cases = [
        (
            model,
            [Case(quantity, model, **wanted) for quantity, wanted in zip(quantities, columns.values(), strict=True)],
        )
        for model in MODELS
    ]
    return _table(results, ["what varies", *columns], cases)


def interval_ratios(results: Path) -> str:
    """Coverage of intervals of ratios of five seeds to the rival chosen."""
    columns = [(seeds, model) for seeds in (1, 5) for model in ("equal", "seeds dominate")]
    header = [f"{'rules' if seeds == 1 else 'learned'}: {model}" for seeds, model in columns]
    cases = [
        (rivals, [Case("ratio", model, rivals=rivals, rival_seeds=seeds) for seeds, model in columns])
        for rivals in RIVALS
    ]
    cases += [
        (
            f"{rivals}; three blocks",
            [Case("ratio", model, rivals=rivals, rival_seeds=seeds, blocks=3) for seeds, model in columns],
        )
        for rivals in FEW
    ]
    return _table(results, ["rivals", *header], cases)


def _table(results: Path, header: Sequence[str], cases: Sequence[tuple[str, Sequence[Case]]]) -> str:
    """A table of coverages, with the relative width in brackets; cases: name of a row, what stands in its cells."""
    rows = pd.read_csv(results / "interval_coverage.csv", keep_default_na=False)
    lines = []
    for name, there in cases:
        found = [one(rows, **vars(case)) for case in there]
        lines.append([name, *(f"{100 * row['coverage']:.1f} % ({row['width']:.2f})" for row in found)])
    return page(header, lines, "l" + "r" * len(lines[0][1:]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description="Measure by simulation how often intervals hold the true value.")
    parser.add_argument("--repetitions", type=int, default=6000)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    rows = []
    for case in cases():
        rows.append(coverage(case, given.repetitions))
        print(rows[-1], flush=True)
    write_text(given.out, pd.DataFrame(rows).to_csv(index=False))
    return 0


TABLES = (interval_values, interval_ratios)


if __name__ == "__main__":
    sys.exit(main())
