"""What PPO on the batch study costs and reaches: CPU seconds and memory of an epoch, time of a decision, held-out
windows against rules.

    python benchmarks/batch_ppo.py epoch conf/learner/batch/ppo_published.yaml [--passes 80]
    python benchmarks/batch_ppo.py learn conf/learner/batch/maskable_ppo.yaml --steps 60000 [--seeds 2] [--set
        gamma=1.0
        ...] [--out CSV]
    python benchmarks/batch_ppo.py networks conf/learner/batch/maskable_ppo.yaml --steps 16384 --seeds 5 [--variants
        NAME ...] --out CSV
    python benchmarks/batch_ppo.py learners conf/learner/batch/{maskable_ppo,ppo,a2c,dqn,ddpg}.yaml --steps 16384
        --seeds 5 --out CSV

An epoch is 25,600 decisions (100 windows of 256 jobs) of the drawn workload of the scenario lublin: rollout and all
passes. What is learned is tested on the windows of the last 40 % of 80,000 drawn jobs, which share no job; --out
writes a row for the planner and one a seed. `networks` compares, on 20,000 drawn jobs and after equally many
decisions, the plain kernel with the variants that --variants names (default: the recorded ones; all: the published
networks of policy and value and windows left out, too), and `learners` the recipe of the first file with those of
the others; the windows' scores lie beside the CSV (NAME-windows.csv), from which an interrupted measurement goes on.
--drawn-seed draws other jobs. One thread; time is CPU time.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.files import content_hash
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.evaluation.statistics import TIE
from schedlab.studies.batch.figures.comparison import compare_windows
from schedlab.studies.batch.learners.search import best_rule
from schedlab.studies.batch.learners.search_settings import CORRECT_RULES
from schedlab.studies.batch.problem import BatchProblem, RulePolicy
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.study import STUDY
from schedlab.workloads.prepare import make_trace

EPOCH, JOBS, FEWER_JOBS = 25_600, 80_000, 20_000
VARIANTS: dict[str, dict[str, Any]] = {  # what the policies ppo-*-lublin of conf/policy/batch change
    "kernel": {},
    "kernel, adversary": {"expert_share": 0.5},
    "kernel, curriculum": {"curriculum": True},
    "kernel, cloned from f1": {"clone_rule": "f1", "learning_rate": 1e-3},
    "attention": {"network": "attention"},
    "kernel, plans in the view": {"plan": True},
}
PUBLISHED_VARIANTS: dict[str, dict[str, Any]] = {  # what the policies of the scenario lublin_networks change
    "value network rows": {"value": "rows"},
    "value network small": {"value": "small"},
    "value network large": {"value": "large"},
    "value network deep": {"value": "deep"},
    "actor_kernel": {"network": "actor_kernel"},
    "mlp_v1": {"network": "mlp_v1"},
    "kernel, windows kept by range": {"keep_windows": "range"},
}
ALL_VARIANTS = VARIANTS | PUBLISHED_VARIANTS
Variant = tuple[dict[str, Any], dict[str, Any]]  # values of the learner, arguments of `learned`


def problem_of(jobs: int, drawn_seed: int = 1) -> BatchProblem:
    """Return the drawn workload of the scenario lublin."""
    lublin = {"jobs": jobs, "processors": 256, "load": 0.9, "users": 40, "estimates": {"model": "menu"}}
    workload = {"name": "lublin", "source": "lublin", "seed": drawn_seed, "lublin": lublin}
    scenario = validate(BatchScenario, {"name": "lublin", "seed": 1, "workload": workload, "windows": {"length": 256}})
    return BatchProblem(scenario, make_trace(scenario.workload)[0])


def learned(
    problem: BatchProblem, params: dict[str, Any], steps: int, seed: int, curriculum: bool = False
) -> tuple[Any, float, list[tuple[str, float, int]]]:
    """Return (policy, CPU seconds of learning it, points of its curves).

    curriculum: the first half of the decisions on windows that SJF finds neither easy nor catastrophic
    """
    name, values = params["name"], {key: value for key, value in params.items() if key != "name"}
    phases: tuple[Phase, ...] = (Phase(("lublin",), steps),)
    if curriculum:
        phases = Phase(("lublin",), steps // 2, {"keep_windows": "median"}), Phase(("lublin",), steps - steps // 2)
    spec, points = PolicySpec("measured", "learned", name, values, train_on=phases), []
    learner = load_object(STUDY.learners[name])()
    with tempfile.TemporaryDirectory() as folder:
        paths, began = LearnPaths(None, Path(folder, "policy.zip"), Path(folder, "progress")), time.process_time()

        def curve(metric: str, value: float, **at: Any) -> None:
            points.append((metric, value, at["step"]))

        learner.learn({"lublin": problem}, spec, seed, paths, curve)
        return learner.load(paths.checkpoint, problem), time.process_time() - began, points


def epoch(params: dict[str, Any], passes: int | None) -> None:
    """Print what an epoch costs."""
    values = params | {"environments": 100, "n_steps": 256}
    if passes:
        values |= {"n_epochs": passes, "target_kl": None}
    problem = problem_of(10_000)
    learned(problem, values | {"n_steps": 2, "batch_size": 100, "n_epochs": 1}, 200, 0)  # imports and compiles
    gc.collect()  # what that leaves is not the epoch's
    policy, seconds, points = learned(problem, values, EPOCH, 0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    told = {metric: value for metric, value, _ in points}
    print(f"{seconds:.1f} CPU s, {memory:.2f} GiB at most, {told}")
    unit, began = problem.units("test")[0], time.process_time()
    problem.rollout(policy, unit)
    print(f"{(time.process_time() - began) / 256 * 1e6:.0f} us a decision, simulator included")


def learn(params: dict[str, Any], steps: int, seeds: int, drawn_seed: int, out: Path | None) -> None:
    """Print what a policy reaches on the test windows, and the rules beside it; write it to `out`, too, where there
    is one.
    """
    problem = problem_of(JOBS, drawn_seed)
    tested = {
        part: {rule: slowdowns(problem, RulePolicy(rule), part) for rule in CORRECT_RULES}
        for part in ("validation", "test")
    }
    chosen = min(CORRECT_RULES, key=lambda rule: tested["validation"][rule].mean())
    best = min(CORRECT_RULES, key=lambda rule: tested["test"][rule].mean())
    print(
        f"{len(tested['test'][best])} windows; chosen {chosen} {tested['test'][chosen].mean():.1f}, in hindsight {best}"
    )
    configuration = content_hash([params, steps, problem.scenario.model_dump(mode="json")])[:12]
    rules = {
        "rule": chosen,
        "baseline_mean": tested["test"][chosen].mean(),
        "hindsight": best,
        "hindsight_mean": tested["test"][best].mean(),
    }

    def row(policy: str, windows: np.ndarray, **about: Any) -> dict[str, Any]:
        told = ratios(windows, tested["test"], chosen)
        return {"policy": policy, "configuration": configuration, "drawn_seed": drawn_seed, **about, **rules, **told}

    rows = [row("planner", slowdowns(problem, RulePolicy("planner"), "test"), seed=None, decisions=0, cpu_seconds=0)]
    print(_line("planner", rows[0]))
    for seed in range(seeds):
        policy, seconds, points = learned(problem, params, steps, seed)
        curve = [round(value, 2) for metric, value, _ in points if metric == "return"]
        rows.append(
            row(
                params["name"],
                slowdowns(problem, policy, "test"),
                seed=seed,
                decisions=steps,
                cpu_seconds=round(seconds),
            )
        )
        print(_line(f"seed {seed}: {seconds:.0f} CPU s", rows[-1]), flush=True)
        print(f"   returns {curve[:: max(1, len(curve) // 12)]}")
        if out:
            pd.DataFrame(rows).astype({"seed": "Int64"}).round(4).to_csv(out, index=False)


def variants_of(params: dict[str, Any], names: Iterable[str], steps: int) -> dict[str, Variant]:
    """Return the variants that `networks` compares, the plain kernel first."""
    return {name: _variant(params, ALL_VARIANTS[name], steps) for name in dict.fromkeys(["kernel", *names])}


def recipes_of(files: Iterable[Path]) -> dict[str, Variant]:
    """Return the recipes that `learners` compares, by the names of their files."""
    return {file.stem: (yaml.safe_load(file.read_text()), {}) for file in files}


def compare(variants: Mapping[str, Variant], steps: int, seeds: int, drawn_seed: int, out: Path) -> None:
    """Learn each variant, keep the windows' scores beside `out`, and write there how they compare with a rule and the
    first of them.
    """
    problem, kept = problem_of(FEWER_JOBS, drawn_seed), out.with_name(f"{out.stem}-windows.csv")
    scored = pd.read_csv(kept) if kept.exists() else pd.DataFrame(columns=["configuration", "seed", "cpu_seconds"])
    keys = {
        name: content_hash([*each, steps, problem.scenario.model_dump(mode="json")])[:12]
        for name, each in variants.items()
    }
    for seed in range(seeds):
        for variant, (values, own) in variants.items():
            if ((scored["configuration"] == keys[variant]) & (scored["seed"] == seed)).any():
                continue
            policy, seconds, _ = learned(problem, values, steps, seed, **own)
            windows = slowdowns(problem, policy, "test")
            row = {"configuration": keys[variant], "seed": seed, "cpu_seconds": round(seconds)}
            row |= {str(unit): score for unit, score in enumerate(windows)}
            scored = pd.concat([scored, pd.DataFrame([row])], ignore_index=True)
            scored.to_csv(kept, index=False)
            print(f"{variant}, seed {seed}: {seconds:.0f} CPU s, {windows.mean():.1f}", flush=True)
    _compared(problem, scored, keys).assign(decisions=steps, drawn_seed=drawn_seed).round(4).to_csv(out, index=False)


def _compared(problem: BatchProblem, scored: pd.DataFrame, keys: dict[str, str]) -> pd.DataFrame:
    """Each variant against the rule that is best on validation, and against the first variant."""
    from batch_search import as_sample  # not above: an epoch's memory is measured, and rollouts are none of it

    chosen = best_rule(
        CORRECT_RULES, {rule: slowdowns(problem, RulePolicy(rule), "validation") for rule in CORRECT_RULES}, "mean"
    )
    on_test = {rule: slowdowns(problem, RulePolicy(rule), "test") for rule in (*CORRECT_RULES, "planner")}
    print("test windows: " + ", ".join(f"{rule} {values.mean():,.1f}" for rule, values in on_test.items()))
    del on_test["planner"]  # counts as no rule where policies differ
    table = np.array(list(on_test.values()))
    differing = {f"{unit:06d}" for unit in np.flatnonzero(table.max(axis=0) > table.min(axis=0) * (1 + TIE))}
    first, rows = next(iter(keys)), []
    for variant, key in keys.items():
        own, plain = (scored[scored["configuration"] == each] for each in (key, keys[first]))
        ours, theirs = (as_sample(each.iloc[:, 3:].to_numpy(float), seeded=True) for each in (own, plain))
        by_seed = " ".join(f"{value:.4g}" for value in ours.values.mean(axis=1))
        head = {
            "variant": variant,
            "configuration": key,
            "cpu_seconds": own["cpu_seconds"].median(),
            "by_seed": by_seed,
        }
        against = {chosen: as_sample(on_test[chosen][None], seeded=False)} | (
            {} if variant == first else {first: theirs}
        )
        for name, other in against.items():
            rng = generator(0, "batch-networks", variant, name)
            rows.append({**head, "against": name, **compare_windows(ours, other, differing, rng)})
    return pd.DataFrame(rows)


def _variant(params: dict[str, Any], change: dict[str, Any], steps: int) -> Variant:
    """A plain recipe with a change."""
    values, own = params | change, {}
    if values.pop("curriculum", False):
        own["curriculum"] = True
    if values.pop("plan", False):
        values["environment"] = values["environment"] | {"plan": True}
    if "expert_share" in values:
        values["expert_steps"] = steps
    return values, own


def slowdowns(problem: BatchProblem, policy: Any, part: str) -> np.ndarray:
    """Return the mean bounded slowdown of each window of a part."""
    return np.array([problem.rollout(policy, unit).scores["avg_bsld"] for unit in problem.units(part)])


def ratios(own: np.ndarray, rules: dict[str, np.ndarray], chosen: str) -> dict[str, float]:
    """Return a mean and how it compares with that of the chosen rule; the share of windows won is of those that
    differ.
    """
    against, differ = rules[chosen], own != rules[chosen]
    worst = np.sort(np.argsort(against)[:-3])
    return {
        "mean": own.mean(),
        "ratio": own.mean() / against.mean(),
        "geometric_ratio": np.exp(np.log(own / against).mean()),
        "ratio_without_worst": own[worst].mean() / against[worst].mean(),
        "win_rate": (own < against)[differ].mean(),
    }


def _line(head: str, row: dict[str, Any]) -> str:
    return (
        f"{head:8} mean {row['mean']:.1f}, to chosen {row['ratio']:.3f} (geometric {row['geometric_ratio']:.3f}, "
        f"without the 3 worst {row['ratio_without_worst']:.3f}, won {row['win_rate']:.0%}), "
        f"to hindsight {row['mean'] / row['hindsight_mean']:.3f}"
    )


def main() -> int:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("epoch", "learn", "networks", "learners"))
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="file",
        help="values of a learner: conf/learner/batch/*.yaml; of learners: several",
    )
    parser.add_argument(
        "--passes", type=int, help="passes over the epoch, all of them taken (default: as the file says)"
    )
    parser.add_argument("--steps", type=int, default=60_000, help="decisions to learn from")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--drawn-seed", type=int, default=1, help="of the drawn jobs")
    parser.add_argument(
        "--variants",
        nargs="+",
        default=list(VARIANTS),
        choices=[*ALL_VARIANTS, "all"],
        metavar="NAME",
        help="of networks; the kernel is one",
    )
    parser.add_argument(
        "--out", type=Path, help="CSV of learn, or of networks and learners (default: measured.csv), which go on"
    )
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="values other than the file's")
    arguments = parser.parse_args()
    if arguments.what != "learners" and len(arguments.files) > 1:
        parser.error(f"{arguments.what} takes one file")
    changed = {key: yaml.safe_load(text) for key, text in (item.split("=") for item in arguments.set)}
    params = yaml.safe_load(arguments.files[0].read_text()) | changed
    steps, seeds, out = arguments.steps, arguments.seeds, arguments.out
    if arguments.what == "epoch":
        epoch(params, arguments.passes)
    elif arguments.what == "learn":
        learn(params, steps, seeds, arguments.drawn_seed, out)
    else:
        names = ALL_VARIANTS if "all" in arguments.variants else arguments.variants
        recipes = {name: (values | changed, own) for name, (values, own) in recipes_of(arguments.files).items()}
        variants = recipes if arguments.what == "learners" else variants_of(params, names, steps)
        compare(variants, steps, seeds, arguments.drawn_seed, out or Path("measured.csv"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
