"""Learning the value of the afterstate by rollouts, regression and evolution; the candidate that is best on validation
becomes the policy.

See docs/notebook/ramp.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.checkpoints import Arrays
from schedlab.learning.cma_es import CmaEs
from schedlab.learning.job import LearningJob
from schedlab.studies.ramp.learners.afterstate.fitting import Fit, fit_network
from schedlab.studies.ramp.learners.afterstate.kernel import Network, play_linear, summary_size
from schedlab.studies.ramp.learners.afterstate.measures import linear_actions, measures
from schedlab.studies.ramp.learners.afterstate.policy import (
    FUTURES,
    KIND,
    AfterstatePolicy,
    Candidate,
    learned_for,
    load,
    play,
    save,
)
from schedlab.studies.ramp.learners.afterstate.rollout_kernel import play_block_rollouts
from schedlab.studies.ramp.learners.afterstate.values import Returns, collect, draw_starts, ridge, stack
from schedlab.studies.ramp.learners.settings import AfterstateSettings
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.simulator.compiled import draw_futures, episode_arrivals, fixed_table
from schedlab.studies.ramp.simulator.compiled_kernel import REJECT, Arrivals, play_table

SHORT = 0.25  # graphs of less than this share of the longest sequential time have a row of their own in tuned tables
SWEEPS = 3


class AfterstateLearner:
    """Learns on one scenario. After an interruption, it continues after the last step that was finished."""

    def learn(
        self, problems: Mapping[str, RampProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn on the scenario of the only phase, write the candidate that validation chooses, and return the budget
        used. Raises UserError.
        """
        if len(spec.train_on) != 1 or len(spec.train_on[0].scenarios) != 1 or paths.start is not None:
            what = "tables of durations hold one scenario"
            raise UserError(what, where=f"{spec.name}.yaml: train_on", expected="one phase, one scenario")
        phase = spec.train_on[0]
        settings = validate(AfterstateSettings, {**spec.params, **phase.params})
        problem = problems[phase.scenarios[0]]
        job = LearningJob(KIND, settings.model_dump(mode="json"), spec, seed, paths, curve)
        training = Training(problem, settings, seed, job.point, job.budget)
        training.resume_steps(job)
        kept, blocking = training.run(phase.steps)
        learned = learned_for(problem.simulation)
        save(paths.checkpoint, kept, training.tables.actions, learned, validation_blocking_rate=blocking)
        return job.budget

    def load(self, checkpoint: Path, problem: RampProblem) -> AfterstatePolicy:
        """Return the learned policy. Raises UserError where it was learned for another cluster or other graphs."""
        tables, outlook = problem.compiled
        kept = load(checkpoint, tables, outlook, learned_for(problem.simulation))
        return AfterstatePolicy(kept, tables, outlook, derive_seed(problem.scenario.seed, "ramp", "acting"))


class Training:
    """The steps of learning: episodes, candidates, and the blocking rate of each candidate on validation episodes.

    budget  counts the decisions of training and validation episodes, those of rollouts included, and the training
            episodes
    """

    def __init__(
        self, problem: RampProblem, settings: AfterstateSettings, seed: int, curve: Curve, budget: Budget
    ) -> None:
        self.problem, self.settings, self.seed, self.curve, self.budget = problem, settings, seed, curve, budget
        self.tables, self.outlook = problem.compiled
        self.stop = problem.scenario.episodes.end
        self._random = generator(seed, "ramp", "rollout starts")
        self._futures = draw_futures(
            problem.simulation, self.tables, generator(seed, "ramp", "training futures"), FUTURES
        )
        root = problem.scenario.seed
        self._validation = [
            self._episode(derive_seed(root, "ramp", "choosing", number))
            for number in range(settings.validation_episodes)
        ]
        self._step: Callable[[str, Callable[[], Arrays]], Arrays] = lambda name, make: make()

    def resume_steps(self, job: LearningJob) -> None:
        """Keep the result of each long step with the job's progress, and use those that are kept there."""
        self._step = partial(job.once, self._random)

    def _number(self, name: str, make: Callable[[], float]) -> float:
        return float(self._step(name, lambda: {"number": np.array(make())})["number"])

    def _episode(self, seed: int) -> Arrivals:
        return episode_arrivals(self.problem.simulation, self.tables, seed)

    def _training(self, what: str, count: int, first: int = 0) -> list[Arrivals]:
        return [self._episode(derive_seed(self.seed, "ramp", what, first + number)) for number in range(count)]

    def run(self, episodes: int) -> tuple[Candidate, float]:
        """Return the candidate with the lowest blocking rate on validation (ties: the first), and this rate."""
        found = self.candidates(episodes)
        rates = [self._number(f"validation-{place}", partial(self.validated, kept)) for place, kept in enumerate(found)]
        best = int(np.argmin(rates))
        return found[best], rates[best]

    def candidates(self, episodes: int) -> list[Candidate]:
        """Return the candidates. Rollouts of each base policy decide so many training episodes."""
        settings, found = self.settings, []
        legal = [degree for degree in settings.degrees if degree in self.tables.actions] or [1]
        fixed = [fixed_table(self.tables, degree) for degree in legal]
        bases = [*fixed, *self._tuned(fixed)] if settings.tables or "table" in settings.candidates else fixed
        found += [Candidate("table", choice) for choice in (fixed if "fixed" in settings.candidates else [])]
        found += [
            Candidate("table", choice) for choice in (bases[len(fixed) :] if "table" in settings.candidates else [])
        ]
        if set(settings.candidates) - {"fixed", "table"}:
            trials = [self._number(f"trial-{place}", partial(self._trial, base)) for place, base in enumerate(bases)]
            chosen = [Candidate("table", bases[place]) for place in np.argsort(trials, kind="stable")[: settings.bases]]
            forms: tuple[Literal["rollouts", "block_rollouts"], ...] = ("rollouts", "block_rollouts")
            for form in (form for form in forms if form in settings.candidates):
                found += [replace(base, form=form, samples=settings.samples, jobs=settings.horizon) for base in chosen]
            if set(settings.candidates) - {"fixed", "table", *forms}:
                found += self._fitted(chosen, episodes)
        return found

    def validated(self, kept: Candidate) -> float:
        """Return the blocking rate on the validation episodes."""
        return self._blocking(self._player(kept), self._validation)

    def _player(self, kept: Candidate) -> Callable[[Arrivals], float]:
        if kept.form == "rollouts":
            return lambda arrivals: self._collect(kept, arrivals, kept.samples)[1]
        if kept.form == "block_rollouts":
            return lambda arrivals: self._with_blocks(kept, arrivals)
        return lambda arrivals: play(kept, self.tables, self.outlook, arrivals, self.stop)

    def _with_blocks(self, kept: Candidate, arrivals: Arrivals) -> float:
        """Return the number of jobs that an episode accepts if rollouts choose the block, too."""
        rollouts = kept.rollouts(self._futures, kept.jobs)
        starts = draw_starts(self._random, rollouts, len(arrivals.times), kept.samples)
        accepted, played = play_block_rollouts(self.tables, rollouts, arrivals, self.stop, starts)
        self.budget.decisions += played * kept.samples * kept.jobs
        return float(accepted)

    def _blocking(self, play: Callable[[Arrivals], float], episodes: Sequence[Arrivals]) -> float:
        """Return the share of all arrivals that are decided on and not accepted. `play` returns the number of jobs that
        an episode accepts.
        """
        arrived = sum(episode.arrived for episode in episodes)
        decided = sum(len(episode.times) for episode in episodes)
        self.budget.decisions += decided
        self.budget.episodes += 0 if episodes is self._validation else len(episodes)
        return decided / arrived - sum(map(play, episodes)) / arrived

    def _collect(self, base: Candidate, arrivals: Arrivals, samples: int) -> tuple[Returns, float]:
        rollouts = base.rollouts(self._futures, self.settings.horizon)
        returns, accepted, imagined = collect(
            self.tables, self.outlook, rollouts, arrivals, self.stop, self._random, samples
        )
        self.budget.decisions += imagined
        return returns, accepted

    def _trial(self, base: np.ndarray) -> float:
        """Return the blocking rate of a base's rollouts."""
        episodes = self._training("trial", self.settings.trial_episodes)
        return self._blocking(
            lambda arrivals: self._collect(Candidate("table", base), arrivals, self.settings.trial_samples)[1], episodes
        )

    def _tuned(self, starts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the best of the tables that are found by improving each start entry by entry. An entry is the action
        for a graph (short and long ones have separate entries) and the smallest degree that meets the job's limit.
        """
        episodes = self._training("tuning", self.settings.tuning_episodes)
        short = self.tables.sequential < SHORT * self.tables.sequential.max()
        groups = [group for group in (np.flatnonzero(~short), np.flatnonzero(short)) if len(group)]
        tuned = [
            self._step(f"tuned-{place}", partial(self._tune, start, groups, episodes))
            for place, start in enumerate(starts)
        ]
        return [min(tuned, key=lambda entry: entry["rate"])["choice"]]

    def _tune(self, start: np.ndarray, groups: Sequence[np.ndarray], episodes: Sequence[Arrivals]) -> Arrays:
        def blocking(choice: np.ndarray) -> float:
            return self._blocking(lambda arrivals: play_table(self.tables, arrivals, self.stop, choice), episodes)

        count, choice, rate = len(self.tables.actions), start.copy(), blocking(start)
        for _ in range(SWEEPS):
            before = rate
            for group in groups:
                for level in range(count):
                    for action in (*range(level, count), REJECT):
                        other = choice.copy()
                        other[group, level] = action
                        new = blocking(other)
                        if new < rate:
                            choice, rate = other, new
            if rate == before:
                break
        return {"rate": np.array(rate), "choice": choice}

    def _fitted(self, bases: Sequence[Candidate], episodes: int) -> list[Candidate]:
        """Return values fitted to rollouts of bases and, where settings ask for it, of the linear values."""
        settings, candidates = self.settings, set(self.settings.candidates)
        decided = [
            self._decided("rollouts", base, episodes, settings.samples, place * episodes)
            for place, base in enumerate(bases)
        ]
        kept = [
            self._network(base, decided[place], place) for place, base in enumerate(bases) if "network" in candidates
        ]
        if not {"linear", "linear_rollouts"} & candidates:
            return kept
        checks = settings.generations + 1
        found = [
            self._step(f"linear-{place}", partial(self._search, base, decided[place], place * checks))
            for place, base in enumerate(bases)
        ]
        linear = [
            Candidate("linear", base.choice, weights=step["weights"]) for base, step in zip(bases, found, strict=True)
        ]
        kept += linear if "linear" in candidates else []
        best = int(np.argmin([self.validated(one) for one in linear])) if len(linear) > 1 else 0
        if "linear_rollouts" in candidates:
            kept.append(replace(linear[best], form="rollouts", samples=settings.samples, jobs=settings.horizon))
        if settings.second_episodes:
            first, count = len(bases) * episodes, len(bases)
            second = self._decided(
                "second rollouts", linear[best], settings.second_episodes, settings.second_samples, first
            )
            kept.append(self._network(bases[best], second, count))
            kept.append(self._network(bases[best], stack([decided[best], second]), count + 1))
        return kept

    def _decided(self, what: str, base: Candidate, episodes: int, samples: int, first: int) -> Returns:
        """Return the decisions of training episodes that rollouts of a base policy decide. first: step of the first
        point of the curve.
        """
        steps = [
            self._step(f"{what}-{first + number}", partial(self._decide, base, arrivals, samples, first + number))
            for number, arrivals in enumerate(self._training(what, episodes))
        ]
        return stack([Returns(**step) for step in steps])

    def _decide(self, base: Candidate, arrivals: Arrivals, samples: int, place: int) -> Arrays:
        returns, accepted = self._collect(base, arrivals, samples)
        self.budget.decisions += len(arrivals.times)
        self.budget.episodes += 1
        self.curve("blocking_rate", (len(arrivals.times) - accepted) / arrivals.arrived, step=place, split="train")
        return vars(returns)

    def _network(self, base: Candidate, returns: Returns, place: int) -> Candidate:
        """Return the network that is best on validation, of several fitted to the same decisions. place: step of its
        point in the curve.
        """
        settings = self.settings
        how = Fit(
            settings.hidden, settings.epochs, settings.batch, regret=settings.regret, temperature=settings.temperature
        )

        def fit() -> Arrays:
            seeds = [self.seed, *(derive_seed(self.seed, "ramp", "fit", number) for number in range(1, settings.fits))]
            networks = [fit_network(returns, how, seed) for seed in seeds]
            rates = [self.validated(Candidate("network", base.choice, network=network)) for network in networks]
            self.curve("network_blocking_rate", min(rates), step=place, split="validation")
            return networks[int(np.argmin(rates))]._asdict()

        return Candidate("network", base.choice, network=Network(**self._step(f"network-{place}", fit)))

    def _linear(self, arrivals: Arrivals, weights: np.ndarray) -> float:
        return play_linear(self.tables, self.outlook, arrivals, self.stop, weights)

    def _checked(self, linear: Candidate, place: int) -> float:
        """Return the blocking rate of linear values on validation, and record all measures at step `place`."""
        rate = self.validated(linear)
        self.curve("blocking_rate", rate, step=place, split="validation")
        demand = np.array([graph.total_memory + graph.total_dep_size for graph in self.problem.simulation.pool.graphs])
        found = [
            measures(
                self.tables,
                demand,
                each,
                self.stop,
                linear_actions(self.tables, self.outlook, each, self.stop, linear.weights),
            )
            for each in self._validation
        ]
        for name in ("demand_throughput", "jct", "speedup"):
            values = [one[name] for one in found if name in one]
            if values:
                self.curve(name, float(np.mean(values)), step=place, split="validation")
        return rate

    def _search(self, base: Candidate, decided: Returns, first: int) -> Arrays:
        """Return the weights that are best at one of the validations during an evolution strategy, which starts from
        the regression. first: step of the first point of the curve.
        """
        settings, weights = self.settings, ridge(decided, summary_size(self.outlook))
        scale = float(np.sqrt(np.mean(weights**2))) or 1.0
        strategy, random = (
            CmaEs(weights, settings.step * scale, settings.population),
            generator(self.seed, "ramp", "evolution"),
        )
        best = Candidate("linear", base.choice, weights=weights)
        lowest = self._checked(best, first)
        for generation in range(1, settings.generations + 1):
            episodes = self._training("evolution", settings.episodes, generation * settings.episodes)
            points = strategy.ask(random)
            values = [self._blocking(partial(self._linear, weights=point), episodes) for point in points]
            strategy.tell(points, np.array(values))
            if generation % settings.check_every == 0 or generation == settings.generations:
                candidate = Candidate("linear", base.choice, weights=strategy.mean.copy())
                rate = self._checked(candidate, first + generation)
                if rate < lowest:
                    best, lowest = candidate, rate
        return {"weights": np.asarray(best.weights)}
