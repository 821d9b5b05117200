"""What the ramp study's DQN costs, and how often it blocks beside rules, in the published setting with its defects;
one CSV.

    python benchmarks/ramp_dqn.py speed [--graphs DIR]
    python benchmarks/ramp_dqn.py blocking [--graphs DIR] [--beta A] [--seeds 0 1] [--steps 16000] [--episodes 10]
        [--out FILE.csv]

Values are those of conf/learner/ramp/dqn.yaml. CPU time of one core. Policies are chosen on validation episodes and
scored on others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedlab.config.contract import LearnPaths, Phase, Policy, PolicySpec
from schedlab.config.readers import read_yaml
from schedlab.config.schema import validate
from schedlab.learning.prioritised_dqn.actors import Actor
from schedlab.learning.prioritised_dqn.learner import NStep, QNetwork, errors, vector_reader
from schedlab.learning.replay_memory import PrioritisedReplay
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.learners.dqn import RampDQNLearner
from schedlab.studies.ramp.learners.settings import RampDQNSettings
from schedlab.studies.ramp.learners.stock import SeenProblem
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import published_scenario

VALUES = Path(__file__).resolve().parent.parent / "conf/learner/ramp/dqn.yaml"
RULES: dict[str, tuple[str, dict[str, int]]] = {
    "para_max": ("para_max", {}),
    "para_min": ("para_min", {}),
    "fixed_2": ("fixed", {"degree": 2}),
    "fixed_4": ("fixed", {"degree": 4}),
    "fixed_8": ("fixed", {"degree": 8}),
}


def values_of_learner() -> dict[str, Any]:
    """Return the values of the learner's file."""
    return {name: value for name, value in read_yaml(VALUES).items() if name != "name"}


def per_second(count: int, work: Callable[[], object]) -> float:
    """Return how often a second a call does its work, of which it does `count`."""
    began = time.process_time()
    work()
    return count / (time.process_time() - began)


def print_speed(problem: RampProblem) -> None:
    """Print decisions a second, random and by the network, and gradient steps a second."""
    settings = validate(RampDQNSettings, values_of_learner())
    seen = SeenProblem(problem, settings.environment)
    env = seen.env(seen.units("train")[0], 0)
    online, target = (
        QNetwork(vector_reader(settings, env.observation_space), int(env.action_space.n), settings) for _ in range(2)
    )
    actor, rounds = (
        Actor(0, settings, partial(NStep, settings.n_steps, settings.gamma), {"a": seen}, ("a",), 0),
        4000 // settings.train_freq,
    )
    rows = [row for _ in range(rounds) for row in actor.play(online.values, 1.0).rows]
    for name, epsilon in (("random", 1.0), ("by the network", 0.0)):
        rate = per_second(
            rounds * settings.train_freq, lambda e=epsilon: [actor.play(online.values, e) for _ in range(rounds)]
        )
        print(f"decisions, {name}: {rate:,.0f}/s")
    replay = PrioritisedReplay(settings.buffer_size, settings.alpha, settings.eps)
    replay.add({name: np.stack([row[name] for row in rows]) for name in rows[0]}, np.ones(len(rows)))
    random, batch = np.random.default_rng(0), settings.batch_size

    def update() -> None:
        places, _, columns = replay.draw(random, batch, 0.4)
        _, wrong = errors(online, target, columns, settings.double)
        wrong.abs().mean().backward()
        replay.set_errors(places, wrong.detach().numpy())

    update()
    print(f"draws of {batch}: {per_second(500, lambda: [replay.draw(random, batch, 0.4) for _ in range(500)]):,.0f}/s")
    print(
        f"gradients on {batch}, without the optimiser: {per_second(300, lambda: [update() for _ in range(300)]):,.0f}/s"
    )


def learned(problem: RampProblem, steps: int, seed: int) -> tuple[Policy, dict[str, Any]]:
    """Learn and return (policy, what is known of it)."""
    params = {**values_of_learner(), "validate_every": steps // 10}
    spec = PolicySpec("dqn", "learned", "prioritised_dqn", params, train_on=(Phase(("published",), steps),))
    known: dict[str, Any] = {"policy": "dqn", "seed": seed, "decisions": steps, "gradient_steps": 0}
    began = time.process_time()

    def record(metric: str, value: float, *, step: int, update: int = 0, split: str = "train", **_: Any) -> None:
        known["gradient_steps"] = max(update, known["gradient_steps"])
        if metric == "return" and split == "validation":
            print(
                f"seed {seed}: {step} decisions, {time.process_time() - began:.0f} CPU s, {value:.1f}",
                file=sys.stderr,
                flush=True,
            )

    learner = RampDQNLearner()
    with tempfile.TemporaryDirectory() as folder:
        paths = LearnPaths(None, Path(folder) / "dqn.zip", Path(folder) / "progress")
        learner.learn({"published": problem}, spec, seed, paths, record)
        return learner.load(paths.checkpoint, problem), known | {"cpu_s": round(time.process_time() - began, 1)}


def blocking(problem: RampProblem, policy: Policy) -> dict[str, Any]:
    """Return the mean blocking rate on test episodes, and how many shards accepted jobs got."""
    outcomes = [problem.rollout(policy, unit) for unit in problem.units("test")]
    degrees = pd.concat([outcome.details["jobs"]["degree"] for outcome in outcomes]).dropna()
    shares = degrees.astype(int).value_counts(normalize=True).sort_index()
    told = " ".join(f"{degree}:{share:.2f}" for degree, share in shares.items() if share >= 0.005)
    rates = [outcome.scores["blocking_rate"] for outcome in outcomes]
    return {"blocking_rate": round(float(np.mean(rates)), 4), "episodes": len(rates), "degrees": told}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "blocking"))
    parser.add_argument("--graphs", help="folder of graph files (default: PipeDream's in SCHEDLAB_DATA)")
    parser.add_argument("--beta", default="A", choices=("A", "B", "C", "D"))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--steps", type=int, default=16_000, help="decisions")
    parser.add_argument("--episodes", type=int, default=10, help="test episodes")
    parser.add_argument("--out", default=sys.stdout, help="CSV (default: print)")
    arguments = parser.parse_args()
    use_one_thread()
    scenario = published_scenario(arguments.beta, compat=True, episodes={"validation": 4, "test": arguments.episodes})
    problem = RampProblem(scenario, read_graphs(arguments.graphs or find_graphs("graphs")))
    if arguments.what == "speed":
        print_speed(problem)
        return
    rows = []
    for seed in arguments.seeds:
        policy, known = learned(problem, arguments.steps, seed)
        rows.append({"beta": arguments.beta, **known, **blocking(problem, policy)})
    for name, (rule, params) in RULES.items():
        rows.append(
            {"beta": arguments.beta, "policy": name, **blocking(problem, RULE_MAKERS[rule](params, problem, 0))}
        )
    whole = dict.fromkeys({"seed", "decisions", "gradient_steps"} & set(rows[0]), "Int64")
    pd.DataFrame(rows).astype(whole).to_csv(arguments.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
