"""Simulations: the trunk of a job, all sequences of a replicate as a tree, or a single sequence.

Every random stream is derived from the scenario's root seed: `init` by job and tensor, `shuffle` and `growth` by job,
stream and epoch. The trunk and replicate 0 draw from stream 0; after the adaptation point, replicate r draws from
stream r. So the order of the images in an epoch is the same for all sequences of a replicate (common random numbers),
and any run can be repeated alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import content_hash
from schedlab.config.runtime.code import Code
from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.adaptation.data.datasets import DataSet
from schedlab.studies.adaptation.network import training
from schedlab.studies.adaptation.network.architecture import Architecture, architecture, require_fit
from schedlab.studies.adaptation.network.models import build
from schedlab.studies.adaptation.network.training import SoftTargets, TrainState
from schedlab.studies.adaptation.scenario import RESULTS_VERSION, AdaptationScenario
from schedlab.studies.adaptation.simulator.course import (
    Choose,
    Course,
    Node,
    Position,
    Run,
    Step,
    adaptation_course,
    adaptation_start,
    all_runs,
    one_run,
    parse_action,
    trunk_run,
)
from schedlab.studies.adaptation.simulator.store import NodeStore
from schedlab.studies.adaptation.simulator.table import DIGITS, METRICS
from schedlab.studies.adaptation.simulator.timing import Timing, require_one_epoch
from schedlab.studies.adaptation.simulator.tree import (
    Evaluation,
    Metrics,
    Progress,
    build_tree,
    complete,
    nodes_to_store,
)

if TYPE_CHECKING:
    import pandas as pd

Write = Callable[[str], None]
Watch = Callable[[Step, Metrics, TrainState], None]  # (an epoch, its metrics, the state after it)
TRUNK = "trunk"  # stands for the sequence in the rows of a trunk


# Identifies the training code, when it is imported, and its packages: states that other code made are not used.
TRAINING_CODE = Code().hash([__name__])


@dataclass(frozen=True)
class Job:
    """One job of a scenario with its data, as trunk, simulations and single runs use it."""

    scenario: AdaptationScenario
    number: int
    dataset: DataSet

    @cached_property
    def start(self) -> Architecture:
        """The network at the start. Raises UserError if it does not fit the data, or if there are no data to evaluate
        it.
        """
        start, dataset, where = architecture(self.scenario.model), self.dataset, f"scenario {self.scenario.name}"
        require_fit(start, dataset.name, dataset.input_shape, dataset.classes, f"{where}: model")
        if not len(dataset.validation_labels) + len(dataset.test_labels):
            remedy = "give it a validation_size or test_size"
            what = f"data set {dataset.name} has nothing to evaluate on"
            raise UserError(what, where=f"{where}: data", remedy=remedy)
        return start

    @cached_property
    def timing(self) -> Timing:
        """The timing for the number of images in an epoch."""
        held_out = len(self.dataset.validation_labels) + len(self.dataset.test_labels)
        timing = Timing(self.scenario.timing, len(self.dataset.train_labels), held_out)
        timing.check_batch_size(self.scenario.training.batch_size)
        return timing

    @cached_property
    def trunk(self) -> Run:
        """The run without adaptation to the end of the budget. Raises UserError if not even one epoch fits."""
        charge = self.timing.epoch_seconds(self.start)
        require_one_epoch(self.scenario.budget, 0.0, charge, f"scenario {self.scenario.name}: budget")
        return trunk_run(self.scenario, self.start, self.timing)

    @cached_property
    def course(self) -> Course:
        """The course of the job's runs from the adaptation point on."""
        return adaptation_course(self.scenario, self.start, self.timing)

    @cached_property
    def adaptation_point(self) -> Position:
        """The position at which the job's runs leave the trunk."""
        return adaptation_start(self.scenario, self.start, self.timing)

    @cached_property
    def lead(self) -> tuple[Step, ...]:
        """The trunk's epochs up to the adaptation point."""
        return self.trunk.steps[: self.adaptation_point.node.epoch]

    @cached_property
    def family(self) -> dict[str, Any]:
        """Everything that determines the trunk's states."""
        return {
            "results_version": RESULTS_VERSION,
            **TRAINING_CODE,
            "model": self.start.key,
            "data": dataset_hash(self.dataset),
            "training": self.scenario.training.model_dump(mode="json"),
            "seed": self.scenario.seed,
            "job": self.number,
        }

    def replicate_family(self, replicate: int) -> dict[str, Any]:
        """Everything that determines a replicate's states after the adaptation point, except the history of
        each node.
        """
        growth = self.scenario.growth
        # doing nothing then resets the optimizer, but only at decisions: the states depend on when these are due
        scheduled = growth.noop == "reset" and growth.optimizer != "fresh_every_decision"
        return {
            **self.family,
            "replicate": replicate,
            "adaptation_epoch": self.adaptation_point.node.epoch,
            "growth": growth.model_dump(mode="json"),
            "resets": [self.scenario.decisions, self.scenario.decision_every] if scheduled else None,
        }


class TorchTrainer:
    """Trains the steps of a course (a `tree.Trainer`). Images are shuffled by stream 0 before epoch `switch`, and by
    `stream` from it on.
    """

    def __init__(self, job: Job, stream: int = 0, switch: int = 0) -> None:
        self._job, self._stream, self.switch = job, stream, switch
        self._settings = job.scenario.training
        training.prepare_torch(self._settings.device)
        self._splits = training.samples(job.dataset, self._settings.device)

    def initial(self) -> TrainState:
        """Return the state before the first epoch."""
        seed = derive_seed(self._job.scenario.seed, "init", self._job.number)
        return TrainState(build(self._job.start, seed).to(self._settings.device), self._settings.learning_rate)

    def train(self, state: TrainState, step: Step, recall: Callable[[Node], TrainState]) -> tuple[TrainState, Metrics]:
        """Apply the step's events and run its epoch."""
        growth, data, epoch = self._job.scenario.growth, self._splits["train"], step.parent.epoch
        stream = self._stream if epoch >= self.switch else 0
        root, place = self._job.scenario.seed, (self._job.number, stream, epoch)
        for event in step.events:
            if event == "down" and step.returns_to:
                state = training.shrink_back(state, recall(step.returns_to).network)
            elif event != "up":
                seed = derive_seed(root, "growth", *place)
                state = training.grow(state, *parse_action(event), growth, data.images, seed)
        if step.restart:
            training.restart(state, growth, self._settings)
        soft = None
        if step.teacher:
            weight = growth.soft_target_weight * growth.soft_target_decay**step.epochs_down
            soft = SoftTargets(recall(step.teacher).network, weight, growth.soft_target_temperature)
        order = generator(root, "shuffle", *place).permutation(len(data.labels))
        return state, training.train_epoch(state, data, order, self._settings, soft)

    def evaluate(self, state: TrainState) -> Metrics:
        """Return the held-out metrics."""
        return training.evaluate(state.network, self._splits)

    def pack(self, state: TrainState) -> bytes:
        """Return the state as bytes."""
        return training.pack(state)

    def unpack(self, data: bytes, architecture: Architecture) -> TrainState:
        """Return the state that `pack` packed."""
        return training.unpack(data, architecture, self._settings.device)


def train_trunk(
    scenario: AdaptationScenario,
    job: int,
    dataset: DataSet,
    store: Path | str,
    progress: Write | None = None,
    output: str = "",
) -> pd.DataFrame:
    """Train a job without adaptation to the end of its budget; store every state and evaluate every epoch.

    store     folder of the node stores, created if it is missing; nodes in it are not trained again
    progress  receives lines of text
    output    name of the file for the rows; if `note_made` was called for it, all nodes are trained again
    Returns rows as `simulate_replicate` does, with `trunk` as the sequence. Raises UserError for values that do not fit
    together.
    """
    whole = Job(scenario, job, dataset)
    metrics = _complete_trunk(whole, Path(store), progress, output)
    return rows_of(whole, 0, [Run(TRUNK, whole.trunk.steps)], metrics, lead=(), curves=True)


def simulate_replicate(
    scenario: AdaptationScenario,
    job: int,
    replicate: int,
    dataset: DataSet,
    store: Path | str,
    progress: Write | None = None,
    output: str = "",
) -> pd.DataFrame:
    """Train all sequences of one replicate as a tree; return a row for each sequence and epoch after the adaptation
    point.

    Columns: scenario, job, replicate, sequence, epoch (the first epoch of the trunk is 0), action (missing if no
    decision was due), parameters, time_left (s, before the epoch), train_seconds, eval_seconds (s, charged) and the
    metrics; held-out metrics are missing if the epoch is not evaluated. With `curves` also slope and slope_after: the
    increase of the validation accuracy in the epoch before this one, and in this one. Trains the trunk if the store
    lacks it. store, progress, output: as in `train_trunk`. Raises UserError for values that do not fit together.
    """
    whole = Job(scenario, job, dataset)
    runs = all_runs(whole.course, whole.adaptation_point)
    frontier = scenario.decisions * scenario.decision_every
    trunk_metrics = _complete_trunk(whole, Path(store), progress)
    continues = replicate == 0 and scenario.growth.noop == "continue"
    shared = set(trunk_metrics) if continues else {step.node for step in whole.lead}
    stored = nodes_to_store(runs, scenario.keep, frontier) | shared
    evaluation = Evaluation(scenario.reward.window, scenario.curves, frontier)
    tree = build_tree(runs, whole.trunk.steps if continues else whole.lead, evaluation, stored)
    trunk = _trunk_store(whole, Path(store), progress)
    own = _replicate_store(whole, replicate, Path(store), progress)
    trainer = TorchTrainer(whole, replicate, whole.adaptation_point.node.epoch)
    with own.lock():
        own.begin(output)
        bar = Progress(f"{scenario.name}, job {job}, replicate {replicate}", tree.size, progress)
        metrics = complete(tree, trainer, lambda node: trunk if node in shared else own, bar)
    own.close()
    trunk.close()
    return rows_of(whole, replicate, runs, {**trunk_metrics, **metrics})


def note_made(
    scenario: AdaptationScenario, job: int, replicate: int | None, dataset: DataSet, store: Path | str, output: str
) -> None:
    """Record that `output` holds the rows of a replicate (None: of the trunk), made from the nodes of this family.

    Families of other code or settings lose their record of this output, so that a return to such code or settings finds
    their nodes trained.
    """
    whole, folder = Job(scenario, job, dataset), Path(store)
    own = _trunk_store(whole, folder) if replicate is None else _replicate_store(whole, replicate, folder)
    own.note_made(output)
    own.close()
    for path in sorted(folder.glob(f"{own.path.stem.rpartition('-')[0]}-*.sqlite")):
        if path != own.path:
            other = NodeStore(path)
            other.forget_made(output)
            other.close()


def run_sequence(
    scenario: AdaptationScenario,
    job: int,
    replicate: int,
    choose: str | Choose,
    dataset: DataSet,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """Train one sequence without tree and store; return its rows like `simulate_replicate`.

    choose: a sequence (`003`), or a function (architecture, number of the decision, seconds left, actions so far) ->
    action. watch: called after each epoch; the next epoch may change the state that it receives.
    """
    whole = Job(scenario, job, dataset)
    run = one_run(whole.course, whole.adaptation_point, _chooser(choose, whole.course))
    evaluated = {step.node for step in Evaluation(scenario.reward.window, scenario.curves).shown(run)}
    if scenario.curves:
        evaluated |= {step.node for step in whole.lead[-2:]}  # for the slope at the first decision
    wanted = {node for step in run.steps for node in (step.returns_to, step.teacher) if node}
    trainer = TorchTrainer(whole, replicate, whole.adaptation_point.node.epoch)
    state, metrics, packed = trainer.initial(), {}, dict[Node, Any]()
    steps = {step.node: step for step in (*whole.lead, *run.steps)}

    def recall(node: Node) -> TrainState:
        return trainer.unpack(packed[node], steps[node].architecture) if node.epoch else trainer.initial()

    for node, step in steps.items():
        state, metrics[node] = trainer.train(state, step, recall)
        if node in evaluated:
            metrics[node] |= trainer.evaluate(state)
        if node in wanted:
            packed[node] = trainer.pack(state)
        if watch:
            watch(step, metrics[node], state)
    return rows_of(whole, replicate, [run], metrics)


def dataset_hash(dataset: DataSet) -> str:
    """Return a hash of all images and labels of a data set, with their shapes."""
    digest = hashlib.sha256()
    for field in fields(dataset):
        if hasattr(array := getattr(dataset, field.name), "dtype"):
            digest.update(f"{field.name} {array.dtype} {array.shape}".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def _complete_trunk(job: Job, folder: Path, progress: Write | None, output: str = "") -> dict[Node, Metrics]:
    store = _trunk_store(job, folder, progress)
    nodes = [step.node for step in job.trunk.steps]
    with store.lock():
        store.begin(output)
        bar = Progress(f"{job.scenario.model.name}, job {job.number}, trunk", len(nodes), progress)
        metrics = complete(
            build_tree([job.trunk], (), Evaluation(1, curves=True), nodes), TorchTrainer(job), lambda _node: store, bar
        )
    store.close()
    return metrics


def _trunk_store(job: Job, folder: Path, log: Write | None = None) -> NodeStore:
    return _open(folder, f"job{job.number}-trunk", job.family, log)


def _replicate_store(job: Job, replicate: int, folder: Path, log: Write | None = None) -> NodeStore:
    name = f"job{job.number}-replicate{replicate}-from{job.adaptation_point.node.epoch}"
    return _open(folder, name, job.replicate_family(replicate), log)


def _open(folder: Path, name: str, family: Mapping[str, Any], log: Write | None) -> NodeStore:
    return NodeStore(folder / f"{name}-{content_hash(family)}.sqlite", family, log)


def _chooser(choose: str | Choose, course: Course) -> Choose:
    if callable(choose):
        return choose
    valid = DIGITS[: len(course.actions) + 1]
    if len(choose) != course.decisions or set(choose) - set(valid):
        raise UserError(f"'{choose}' is no sequence here", expected=f"{course.decisions} digits from 0 to {valid[-1]}")
    return lambda _architecture, decision, _seconds, _actions: valid.index(choose[decision])


def rows_of(
    job: Job,
    replicate: int,
    runs: Sequence[Run],
    metrics: Mapping[Node, Metrics],
    lead: Sequence[Step] | None = None,
    curves: bool = False,
) -> pd.DataFrame:
    """Return the rows that `simulate_replicate` describes.

    lead: the epochs before the runs; None: those of the job's trunk. curves: include the held-out metrics of all epochs
    """
    import pandas as pd

    lead = job.lead if lead is None else lead
    has_slope = job.scenario.curves and len(job.dataset.validation_labels) > 0
    rows, evaluation = [], Evaluation(job.scenario.reward.window, curves or job.scenario.curves)
    for run in runs:
        shown = {step.node for step in evaluation.shown(run)}
        slopes = _slopes(lead, run, metrics) if has_slope else []
        for position, step in enumerate(run.steps):
            known = metrics[step.node].items()
            found = {name: value for name, value in known if name.startswith("train_") or step.node in shown}
            rows.append(
                {
                    "scenario": job.scenario.name,
                    "job": job.number,
                    "replicate": replicate,
                    "sequence": run.sequence,
                    "epoch": step.parent.epoch,
                    "action": step.action,
                    "parameters": step.architecture.parameters,
                    "time_left": step.time_left,
                    "train_seconds": step.seconds.train,
                    "eval_seconds": step.seconds.evaluation,
                    **{name: found.get(name) for name in METRICS},
                    **({"slope": slopes[position], "slope_after": slopes[position + 1]} if slopes else {}),
                }
            )
    return pd.DataFrame(rows).astype({"action": "Int64", **dict.fromkeys(METRICS, "float64")})


def _slopes(lead: Sequence[Step], run: Run, metrics: Mapping[Node, Metrics]) -> list[float]:
    """Return the increase of the validation accuracy in the epoch before each epoch of a run, and in its last epoch.

    An increase is 0 if one of its two accuracies is missing.
    """
    accuracies = [metrics.get(step.node, {}).get("validation_accuracy") for step in (*lead, *run.steps)]
    pairs = pairwise([None, None, *accuracies])
    added = [0.0 if earlier is None or later is None else later - earlier for earlier, later in pairs]
    return added[len(lead) :]
