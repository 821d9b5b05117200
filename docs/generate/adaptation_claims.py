"""Our values of the claims of the adaptation study that follow from the published record or from networks of a few
seconds: SCHEDLAB_DATA=DIR python docs/generate/adaptation_claims.py [ranking] [constant] [size] [clock] [initial]
[tree] [exact] [dead] [batch_norm] [temperature]

What takes a run of the study is read from its record: docs/results/adaptation/.
"""

from __future__ import annotations

import copy
import csv
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from claim_tables import FORMS, Values, both, joined, write_claims

from schedlab.config.composition import Composer, apply_mode
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.data_paths import CHECKOUT, find_data
from schedlab.config.schema import validate
from schedlab.learning.policy_gradient import cooled
from schedlab.stages.learn import CurveRecorder
from schedlab.studies.adaptation.compat.published_table import import_published, read_own_or_published
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.learners.exact import ExactLearner
from schedlab.studies.adaptation.learners.policy_network import build_network, encoding_of
from schedlab.studies.adaptation.learners.settings import NetworkSettings
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.network.growth import deepen
from schedlab.studies.adaptation.network.models import Network
from schedlab.studies.adaptation.problem import AdaptationProblem, setup_of
from schedlab.studies.adaptation.scenario import AdaptationScenario, GrowthSettings
from schedlab.studies.adaptation.simulator.course import Course, Position, adaptation_course, adaptation_start, all_runs
from schedlab.studies.adaptation.simulator.ranking import ranking
from schedlab.studies.adaptation.simulator.simulate import Job, TorchTrainer
from schedlab.studies.adaptation.simulator.table import view
from schedlab.studies.adaptation.simulator.timing import Timing

PLACES = ("early", "early_middle", "middle", "middle_late", "late")
EXPERIMENTS = {"convnet2": "simulation_{}2", "convnet3": "simulation_{}3_v2"}
RANKED = ("best_sequence", "worst")
CONSTANT = {"constant-011": "011", "constant-100": "100", "none": "333"}
# Epochs left, decisions, epochs between them.
TREES = {"tree-1": (28, 3, 1), "tree-2": (6, 3, 1), "tree-3": (27, 3, 9), "tree-4": (28, 4, 7)}
PUBLISHED_POLICY = NetworkSettings(encoder="vocab", head="fixed", time_code="sine", frequencies=8, code=16, linear=128)


def published_runs() -> Path:
    """Return the file of the published simulations."""
    return find_data("cases/adaptation/simulations.csv")


def scenario(name: str, mode: str = "reference", **changes: Any) -> AdaptationScenario:
    """Return a shipped scenario as at scale full, with some keys changed."""
    return validate(AdaptationScenario, apply_mode({**_composed(name), "mode": mode}) | changes)


@cache
def _composed(name: str) -> Mapping[str, Any]:
    return Composer(CHECKOUT / "conf", "full").compose("scenario/adaptation", name).values


def plan(settings: AdaptationScenario, samples: tuple[int, int] = (50_000, 10_000)) -> tuple[Course, Position]:
    """Return the course of a scenario and its adaptation point; samples: to train and to evaluate on."""
    start, timing = architecture(settings.model), Timing(settings.timing, *samples)
    return adaptation_course(settings, start, timing), adaptation_start(settings, start, timing)


def ranking_of_record() -> Values:
    """What `schedlab adaptation rank` prints for the published record."""
    found, ours = ranking(read_own_or_published(published_runs())), []
    for (model, experiment), place, key in product(EXPERIMENTS.items(), PLACES, RANKED):
        ours.append(both(_dashed(f"{place}-{model}-{key}"), found[experiment.format(place)][key]))
    return joined(ours)


def constant() -> Values:
    """Ranks of fixed sequences in the five published scenarios of convnet2."""
    table, ranks = read_own_or_published(published_runs()), {}
    for place, (name, sequence) in product(PLACES, CONSTANT.items()):
        seen = view(table[table["experiment"] == EXPERIMENTS["convnet2"].format(place)], "test_accuracy")
        index = seen.tree.index(sequence)
        ranks.setdefault(name, []).append(int(seen.ranks(seen.reward)[0, index]))
    return joined(both(f"{name}-ranks", " ".join(map(str, values))) for name, values in ranks.items())


def size() -> Values:
    """Parameters of the published networks, and of what growth adds."""
    network = build_network(PUBLISHED_POLICY, 4, encoding_of(PUBLISHED_POLICY), seed=0)
    found = [both("policy-parameters", sum(parameter.numel() for parameter in network.parameters()))]
    for model in EXPERIMENTS:
        start = architecture(scenario(f"published_early_{model}").model)
        added = (start.deepened(block).parameters - start.parameters for block in range(start.deepenable_blocks))
        found += [both(f"{model}-parameters", start.parameters), both(f"{model}-added", " ".join(map(str, added)))]
    return joined(found)


def clock() -> Values:
    """How near the pinned clock, with linear prices, is to the wall clock that timed the published runs."""
    off, late = clock_of_record(use_exact=False)
    return joined(
        [
            both("epochs-equal", off[0]),
            both("epochs-within-one", off[0] + off[1]),
            both("time-left", statistics.median(late)),
        ]
    )


def clock_of_record(use_exact: bool) -> tuple[Counter[int], list[float]]:
    """Return how many published runs differ by how many epochs, and by how many seconds the time left at each decision
    does. use_exact: with the measured medians of the published epochs where there are any.
    """
    off, late, found = Counter(), [], {}
    for model, place in product(EXPERIMENTS, PLACES):
        job = scenario(f"published_{place}_{model}")
        timing = job.timing.model_copy(update={"use_exact": use_exact})
        for run in all_runs(*plan(job.model_copy(update={"timing": timing}))):
            found[model, job.adapt_at, run.sequence] = run
    with published_runs().open() as file:
        for row in csv.DictReader(file):
            run = found.pop((row["model"].lower(), float(row["adapt_start_s"]), row["seq"]))
            off[abs(len(run.steps) - int(row["epochs"]))] += 1
            for number, step in enumerate(run.steps[:3], start=1):
                late.append(abs(step.time_left - float(row[f"timeleft{number}_s"])))
    if found:
        raise ValueError(f"the published record lacks {len(found)} runs")
    return off, late


def initial() -> Values:
    """Epochs on the pinned clock before growth is possible."""
    found = []
    for model, place in product(EXPERIMENTS, PLACES):
        _, begin = plan(scenario(f"published_{place}_{model}"))
        found.append(both(_dashed(f"{place}-{model}-initial-epochs"), begin.node.epoch))
    return joined(found)


def tree() -> Values:
    """Epochs of tables, each sequence trained alone and through the tree of shared prefixes."""
    epochs = published_epochs()
    found = [both("record-epochs", len(epochs), len(shared_prefixes(epochs)))]
    equal = {"base": 8.0, "per_insertion": [0, 0, 0]}, {"base": 2.0, "per_insertion": [0, 0, 0]}
    timing = {"name": "equal", "gpu": "none", "models": {"any": {"train": equal[0], "evaluation": equal[1]}}}
    for name, (left, decisions, every) in TREES.items():
        changes = {"budget": left * 10.0, "adapt_at": 0.0, "decisions": decisions, "decision_every": every}
        runs = all_runs(*plan(scenario("early", **changes, timing=timing), (1200, 597)))
        steps = [step.node for run in runs for step in run.steps]
        found.append(both(name, len(steps), len(set(steps))))
    return joined(found)


def published_epochs() -> pd.DataFrame:
    """Return the epochs of the published simulations."""
    return pd.read_csv(find_data("cases/adaptation/simulation_epochs.csv"), dtype={"seq": str})


def shared_prefixes(epochs: pd.DataFrame) -> pd.DataFrame:
    """Return the epochs of the published record that a tree of shared prefixes would have trained."""
    actions = [sequence[: epoch + 1] for sequence, epoch in zip(epochs["seq"], epochs["epoch"], strict=True)]
    return epochs.assign(actions=actions).drop_duplicates(["experiment", "epoch", "actions"])


def exact() -> Values:
    """What the exact learner reaches on the published tables of three scenarios alone."""
    ranks = (exact_scores((place,), 0)[place]["rank"] for place in ("early", "middle", "late"))
    return {"scratch-ranks": {"ours_repaired": " ".join(f"{rank:g}" for rank in ranks)}}


def exact_scores(places: tuple[str, ...], seed: int) -> dict[str, Mapping[str, float]]:
    """Learn on the published tables of some scenarios of convnet2; return the scores in each."""
    problems = {place: published_problem(place) for place in places}
    with tempfile.TemporaryDirectory() as folder, CurveRecorder(Path(folder, "curve.jsonl")) as curve:
        paths = LearnPaths(None, Path(folder, "policy.zip"), Path(folder))
        spec = PolicySpec("p", "learned", "t", {}, (seed,), (Phase(places, 300),))
        ExactLearner().learn(problems, spec, seed, paths, curve)
        policies = {name: ExactLearner().load(paths.checkpoint, problem) for name, problem in problems.items()}
    return {
        name: problem.rollout(policies[name], problem.units("test")[0]).scores for name, problem in problems.items()
    }


def published_problem(place: str, model: str = "convnet2") -> AdaptationProblem:
    """Return a published scenario as a problem."""
    job = scenario(f"published_{place}_{model}")
    start = architecture(job.model)
    table = import_published(find_data(job.table.file), job.table.experiment)
    return AdaptationProblem(job.name, table, start, setup_of(job, start))


def dead() -> Values:
    """Classes of ten that are never learned when logits go through a ReLU, and what that costs."""
    counts, accuracies = zip(*(dead_classes(head_relu, 10) for head_relu in FORMS.values()), strict=True)
    return joined([both("dead-classes", *counts), both("dead-classes-accuracy", *accuracies)])


def dead_classes(head_relu: bool, jobs: int) -> tuple[float, float]:
    """Return the mean number of dead classes of ten and the mean test accuracy of so many initialisations."""
    images = torch.from_numpy(_digits().train_images)
    networks = [trained(job, {"head_relu": head_relu}) for job in range(jobs)]
    with torch.no_grad():
        count = [int((network(images) <= 0).all(0).sum()) for network, _ in networks]
    return float(np.mean(count)), float(np.mean([accuracy for _, accuracy in networks]))


def trained(job: int, changes: Mapping[str, Any], epochs: int | None = None) -> tuple[Network, float]:
    """Return the network of a job of `early` after some epochs (or all) without adaptation, and its test accuracy."""
    model = {**_composed("early")["model"], **changes}
    whole = Job(scenario("early", "default", model=model), job, _digits())
    trainer = TorchTrainer(whole)
    state = trainer.initial()
    for step in whole.trunk.steps[:epochs]:
        state, _ = trainer.train(state, step, lambda _node: None)
    return state.network.eval(), trainer.evaluate(state)["test_accuracy"]


@cache
def _digits() -> datasets.DataSet:
    return datasets.load(scenario("early").data)


def batch_norm() -> Values:
    """By how much one insertion changes the outputs of networks with batch norm."""
    changes = {init: insertion_changes(init) for init in ("default", "calibrated")}
    modes = {"function-training": True, "function-evaluation": False}
    return joined(both(name, *(found[training] for found in changes.values())) for name, training in modes.items())


def insertion_changes(init: str) -> dict[bool, float]:
    """Return the relative change of the outputs in training mode (True) and evaluation, mean of six networks."""
    images, found = torch.from_numpy(_digits().train_images), {True: [], False: []}
    for network, training in product(_with_batch_norm(), (False, True)):
        network = copy.deepcopy(network)  # a look in training mode changes what it normalises by
        grown = deepen(network.eval(), 0, GrowthSettings(bn_init=init), images, 0)
        with torch.no_grad():
            before, after = (net.train(training)(images[:64]) for net in (network, grown))
        found[training].append(float((after - before).norm() / before.norm()))
    return {training: float(np.mean(values)) for training, values in found.items()}


@cache
def _with_batch_norm() -> list[Network]:
    """Networks like tiny8 with five channels and a batch norm behind each convolution, after six epochs."""
    blocks = _composed("early")["model"]["blocks"]
    with_norm = [block | {"out": 5, "batch_norm": True} if block["kind"] == "conv" else block for block in blocks]
    return [trained(job, {"name": "tiny5_bn", "blocks": with_norm}, epochs=6)[0] for job in range(6)]


def temperature() -> Values:
    """What the published temperature does to a policy that is certain, and for how many episodes it is above 1."""
    certain, tau = torch.tensor([30.0, 0.0, 0.0, 0.0]), 1.0001
    largest = (float(values.max()) for values in ((certain.softmax(-1) / tau).softmax(-1), (certain / tau).softmax(-1)))
    hot = (sum(cooled(begin, 0.9, 1, episode) > 1 for episode in range(10_000)) for begin in (10.0, 100.0, 1000.0))
    return joined([both("temperature-certain", *largest), both("temperature-episodes", " ".join(map(str, hot)))])


def _dashed(name: str) -> str:
    return name.replace("_", "-")


PARTS = {
    "ranking": ranking_of_record,
    "constant": constant,
    "size": size,
    "clock": clock,
    "initial": initial,
    "tree": tree,
    "exact": exact,
    "dead": dead,
    "batch_norm": batch_norm,
    "temperature": temperature,
}


if __name__ == "__main__":
    sys.exit(write_claims("adaptation", PARTS))
