"""The learner `trials`, which learns to score the options of a decision from trials on copies of a run.

Each episode runs another drawn workload and tries the options of some decisions: each copy continues to the end of the
workload, with a pair or the rule with a reserve (imitation of one-step look-ahead), or with the policy itself (policy
gradient). Copies have the true run times and all arrivals of their workload. The network sees only requested times and
the arrivals so far, and no workload occurs twice, so it learns which option is better on average over run times and
future arrivals. Parameters are averaged over updates; those with the best score on validation workloads are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Problem, Unit
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.adam import Adam
from schedlab.learning.checkpoints import (
    Checkpoint,
    grouped,
    load_module,
    module_arrays,
    read_checkpoint,
    write_checkpoint,
)
from schedlab.learning.job import LearningJob, Pace
from schedlab.learning.seeding import torch_stream, use_one_thread
from schedlab.learning.settings import fixed_mistakes, phase_settings
from schedlab.studies.hetero.env.options import plain_options
from schedlab.studies.hetero.kernels.choice_kernel import KernelScorer, run_scorer, score_rows
from schedlab.studies.hetero.kernels.cluster_kernel import CORE_CODES
from schedlab.studies.hetero.kernels.run_kernel import Run, slowdown
from schedlab.studies.hetero.kernels.trial_kernel import NO_PAIR, RESERVE, Trials, play_with_trials
from schedlab.studies.hetero.learners.choice_network import ChoiceNetwork, TriedOptions, fit, kernel_scorer
from schedlab.studies.hetero.learners.compiled_episodes import CompiledJobs, pair_codes
from schedlab.studies.hetero.learners.compiled_runs import CompiledRuns
from schedlab.studies.hetero.learners.drawn_workloads import DrawnWorkloads
from schedlab.studies.hetero.learners.settings import TRIAL_FIXED, TrialSettings
from schedlab.studies.hetero.rules import RESERVE as RESERVE_RULE
from schedlab.studies.hetero.rules import ReserveRule
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.decisions import DecisionSystem

_KIND = "hetero-trials"
DECISIONS = 8  # decisions per job of an episode up to which options may be tried


class ChoicePolicy:
    """A learned policy, which takes the option with the highest score until that is waiting."""

    def __init__(self, scorer: KernelScorer, cores: tuple[str, ...]) -> None:
        self.scorer, self._cores = scorer, cores

    def reset(self, unit: Unit) -> None:
        """Do nothing."""

    def run_compiled(self, jobs: CompiledJobs) -> Run:
        """Return the run of a workload on the compiled kernel."""
        return run_scorer(jobs.jobs, jobs.cluster, self.scorer)[0]

    def decide(self, system: DecisionSystem) -> None:
        """Start waiting jobs of the decision system by the scores of their options."""
        while len(system.queue):
            options = plain_options(system, self.scorer.window, self._cores)
            if not options:
                return
            best = options[int(np.argmax(score_rows(np.array([option.numbers for option in options]), self.scorer)))]
            if best.job is None:
                return
            system.start(best.job, ALL_CORE_POLICIES[best.cores](system.model, best.job, system.random))
            system.refresh()


class TrialLearner:
    """The learner `trials`, an implementation of the contract's Learner. A phase's steps are episodes."""

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn phase after phase, write the parameters with the best validation score and return the budget used.

        Raises UserError for scenarios whose workloads are not drawn from a model.
        """
        use_one_thread()
        phases = phase_settings(TrialSettings, spec, lambda _, given: fixed_mistakes(TRIAL_FIXED, given))
        values = [settings.model_dump(mode="json") for settings in phases]
        job = LearningJob(_KIND, values, spec, seed, paths, curve)
        with torch_stream(seed, "hetero", "choice network"):
            network = ChoiceNetwork(phases[0].hidden)
        if parent := job.parent():
            load_module(network, parent.group("network"), parent.path)
        drawn = {name: _Drawn(problem, phases[0].validation) for name, problem in problems.items()}
        learning = _Learning(job, network, phases, drawn)
        job.run(learning)
        load_module(network, learning.best or module_arrays(network), "the best parameters")
        meta = {"kind": _KIND, "hidden": phases[0].hidden, "window": phases[0].window, "cores": list(phases[0].cores)}
        write_checkpoint(paths.checkpoint, meta, grouped({"network": module_arrays(network)}))
        return job.budget

    def load(self, checkpoint: Path, problem: Problem) -> ChoicePolicy:
        """Return the learned policy."""
        del problem
        kept = read_checkpoint(checkpoint, _KIND)
        network = ChoiceNetwork(kept.meta["hidden"])
        load_module(network, kept.group("network"), checkpoint)
        cores = tuple(kept.meta["cores"])
        return ChoicePolicy(kernel_scorer(network, kept.meta["window"], cores), cores)


class _Drawn:
    """The workloads of a training scenario: drawn ones by seeds, and at least `validation` ones for validation."""

    def __init__(self, problem: Any, validation: int) -> None:
        self.workloads = DrawnWorkloads(problem, "learner")
        self.cluster, self.threshold = self.workloads.cluster(), problem.scenario.bounded_slowdown_threshold
        runs = CompiledRuns(problem)
        self.validation = [runs.jobs(unit).jobs for unit in problem.units("validation")]
        root = problem.scenario.workload.seed
        for number in range(len(self.validation), validation):
            self.validation.append(self.workloads.jobs(derive_seed(root, "hetero", "more validation", number)))


@dataclass
class _Learning:
    """The network, the mean of its parameters over updates, the best mean, and the options of the last updates."""

    job: LearningJob
    network: ChoiceNetwork
    phases: list[TrialSettings]
    drawn: Mapping[str, _Drawn]
    mean: dict[str, np.ndarray] = field(default_factory=dict)
    best: dict[str, np.ndarray] = field(default_factory=dict)
    best_score: float = math.inf
    memory: list[TriedOptions] = field(default_factory=list)

    def begin(self, phase: int) -> Pace:
        """Begin with a fresh optimiser and a fresh mean; options of the last updates remain in use."""
        settings, steps = self.phases[phase], self.job.spec.train_on[phase].steps
        self.optimizer = Adam(self.network.parameters(), settings.learning_rate)
        self.mean = {}
        return Pace(-(-steps // settings.episodes_per_update), settings.save_every)

    def step(self, phase: int, update: int) -> None:
        """Try options on drawn workloads, fit the network, and validate the mean of its parameters."""
        settings, of_phase = self.phases[phase], self.job.spec.train_on[phase]
        first = update * settings.episodes_per_update
        numbers = range(first, min(first + settings.episodes_per_update, of_phase.steps))
        found = [self._try(settings, phase, number) for number in numbers]
        self.memory = [*self.memory, TriedOptions.joined([tried for tried, _ in found])][-settings.keep_updates :]
        with torch_stream(self.job.seed, "hetero", "fit", phase, update):
            gain = fit(
                self.network, self.optimizer, TriedOptions.joined(self.memory), settings.passes, settings.minibatch
            )
        now, kept = module_arrays(self.network), settings.average if self.mean else 0.0
        self.mean = {name: kept * self.mean.get(name, 0.0) + (1.0 - kept) * array for name, array in now.items()}
        self.job.budget.episodes += len(numbers)
        place: Any = {"step": numbers[-1] + 1, "episode": self.job.budget.episodes, "update": update + 1}
        score = float(np.mean([value for _, value in found]))
        self.job.record({"return": -score, "loss": -gain}, **place, scenario=of_phase.scenarios[0])
        self._validate(settings, of_phase.scenarios, place)

    def end(self, phase: int) -> None:
        """Continue with the best parameters."""
        del phase
        load_module(self.network, self.best, "the best parameters")

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return parameters, the optimiser's memory, and the options of the last updates."""
        groups = {"network": module_arrays(self.network), "optimizer": self.optimizer.arrays()}
        groups |= {"mean": self.mean, "best": self.best}
        groups |= {f"tried-{number}": dict(vars(tried)) for number, tried in enumerate(self.memory)}
        return {"best_score": self.best_score if self.best else None, "memory": len(self.memory)}, grouped(groups)

    def load(self, kept: Checkpoint) -> None:
        """Restore the values that `state` returned."""
        load_module(self.network, kept.group("network"), kept.path)
        self.optimizer.load(kept.group("optimizer"))
        self.mean, self.best = kept.group("mean"), kept.group("best")
        self.best_score = math.inf if kept.meta["best_score"] is None else kept.meta["best_score"]
        self.memory = [TriedOptions(**kept.group(f"tried-{number}")) for number in range(kept.meta["memory"])]

    def _try(self, settings: TrialSettings, phase: int, number: int) -> tuple[TriedOptions, float]:
        """Try options in episode `number` of a phase; return them and the mean bounded slowdown of the episode."""
        scenarios = self.job.spec.train_on[phase].scenarios
        drawn = self.drawn[scenarios[number % len(scenarios)]]
        jobs = drawn.workloads.jobs(derive_seed(self.job.seed, "hetero", "drawn", phase, number))
        scorer = kernel_scorer(self.network, settings.window, settings.cores)
        pair = np.array([NO_PAIR, NO_PAIR])
        if settings.continued_by == RESERVE_RULE:
            pair = np.array([RESERVE, CORE_CODES[ReserveRule.cores]])
        elif settings.continued_by:
            (pair,) = pair_codes((settings.continued_by,))
        reserve = round(settings.free * drawn.cluster.size.sum())
        most = settings.options if not settings.continued_by else len(settings.cores) * settings.window
        rng = generator(self.job.seed, "hetero", "tried", phase, number)
        tried = rng.random(DECISIONS * len(jobs.time)) < settings.tried
        rows, counts, values, score, decisions = play_with_trials(
            jobs, drawn.cluster, Trials(scorer, pair, drawn.threshold, most, settings.longest, reserve), tried
        )
        self.job.budget.decisions += decisions
        return TriedOptions.of_episode(rows, counts, values, math.sqrt(score)), score

    def _validate(self, settings: TrialSettings, scenarios: tuple[str, ...], place: Mapping[str, Any]) -> None:
        """Score the mean parameters on the validation workloads and keep them if they are the best so far."""
        network, scores = ChoiceNetwork(settings.hidden), []
        load_module(network, self.mean, "the mean parameters")
        scorer = kernel_scorer(network, settings.window, settings.cores)
        for name in scenarios:
            drawn, values = self.drawn[name], []
            for jobs in drawn.validation:
                run, decisions = run_scorer(jobs, drawn.cluster, scorer)
                values.append(slowdown(run, jobs, drawn.threshold))
                self.job.budget.decisions += decisions
            scores.append(float(np.mean(values)))
            self.job.point("return", -scores[-1], **{**place, "scenario": name, "split": "validation"})
        if np.mean(scores) < self.best_score:
            self.best, self.best_score = dict(self.mean), float(np.mean(scores))


LEARNERS = {"trials": TrialLearner}
