"""What does each candidate of the ramp study's recipe block, and what with other settings? A CSV on standard output.

    SCHEDLAB_DATA=DIR python benchmarks/ramp_recipe.py BETA [--seed 30] [--training 64] [--set KEY=VALUE ...]
    [--episodes 40]

The recipe is conf/learner/ramp/afterstate_rounds.yaml with the settings that `--set` changes, learned in the published
setting of a distribution of beta (A to D) from so many training episodes. Every candidate that validation would choose
from plays episodes that neither learning, nor its validation, nor any test sees: settings can be compared here and
leave the test episodes unseen. Seeds with which a recipe is made flatter it, so that these are others than those of the
workflow. Candidates are numbered as the learner makes them: the networks of the bases, those of the second round alone
and with the rollouts of the base.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from schedlab.config.contract import Budget
from schedlab.config.data_paths import find_data
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.learners.afterstate.learner import Training
from schedlab.studies.ramp.learners.afterstate.policy import play
from schedlab.studies.ramp.learners.settings import AfterstateSettings
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.scenario import published_scenario
from schedlab.studies.ramp.simulator.compiled import episode_arrivals

RECIPE = Path(__file__).parents[1] / "conf/learner/ramp/afterstate_rounds.yaml"


def rates(problem: RampProblem, settings: AfterstateSettings, seed: int, training: int, episodes: int) -> pd.DataFrame:
    """Return a row for each candidate: its blocking rate on validation and on episodes apart from it."""
    (tables, outlook), end, root = problem.compiled, problem.scenario.episodes.end, problem.scenario.seed
    apart = [
        episode_arrivals(problem.simulation, tables, derive_seed(root, "ramp", "apart", number))
        for number in range(episodes)
    ]
    learner = Training(problem, settings, seed, lambda *_, **__: None, Budget())
    rows: list[dict[str, Any]] = []
    for kept in learner.candidates(training):
        blocked = [(len(each.times) - play(kept, tables, outlook, each, end)) / each.arrived for each in apart]
        number, rate = 1 + sum(row["form"] == kept.form for row in rows), sum(blocked) / episodes
        rows.append({"form": kept.form, "number": number, "validation": learner.validated(kept), "apart": rate})
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("beta", choices=list("ABCD"))
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--training", type=int, default=64, help="training episodes that rollouts of each base decide")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the recipe to change")
    parser.add_argument("--episodes", type=int, default=40, help="episodes that candidates are compared on")
    given = parser.parse_args()
    recipe = yaml.safe_load(RECIPE.read_text())
    recipe |= {key: yaml.safe_load(value) for key, _, value in (change.partition("=") for change in given.set)}
    settings = validate(AfterstateSettings, {key: value for key, value in recipe.items() if key != "name"})
    problem = RampProblem(published_scenario(given.beta, compat=True), read_graphs(find_data("graphs")))
    before = time.process_time()
    found = rates(problem, settings, given.seed, given.training, given.episodes)
    found.insert(0, "beta", given.beta)
    found.to_csv(sys.stdout, index=False, float_format="%.4f")
    print(f"{time.process_time() - before:.0f} CPU seconds", file=sys.stderr)


if __name__ == "__main__":
    main()
