"""The learner `predicted_rollouts`: a model of durations fitted on the graphs of some scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.studies.ramp.learners.afterstate.policy import learned_for
from schedlab.studies.ramp.learners.predicted.model import FEWEST_GRAPHS, DurationModel, all_terms, fit_durations
from schedlab.studies.ramp.learners.predicted.policy import PredictedPolicy
from schedlab.studies.ramp.learners.predicted.settings import PredictedSettings
from schedlab.studies.ramp.problem import RampProblem

KIND = "ramp-predicted"


class PredictedLearner:
    """Fits a model of durations to a measured duration of each graph of its scenarios at each degree."""

    def learn(
        self, problems: Mapping[str, RampProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Write the model. Its budget counts each measured duration as a decision. Raises UserError."""
        del curve
        if len(spec.train_on) != 1 or paths.start is not None:
            what = "a model of durations is fitted at once"
            raise UserError(what, where=f"{spec.name}.yaml: train_on", expected="one phase, and no parent")
        phase = spec.train_on[0]
        settings = validate(PredictedSettings, {**spec.params, **phase.params})
        found = [problems[name] for name in phase.scenarios]
        model, measured = _fitted(found, settings.leave_out, spec.name)
        stored = np.concatenate([_jobs(problem, phase.steps, seed) for problem in found])
        meta = {
            "kind": KIND,
            "settings": settings.model_dump(mode="json"),
            "topology": learned_for(found[0].simulation)["topology"],
            "seed": seed,
        }
        write_checkpoint(paths.checkpoint, meta, {**vars(model), "stored": stored})
        return Budget(decisions=measured)

    def load(self, checkpoint: Path, problem: RampProblem) -> PredictedPolicy:
        """Return the policy for the graphs of a problem, of which no duration is used. Raises UserError for another
        cluster than that of the fit.
        """
        kept = read_checkpoint(checkpoint, KIND)
        stored = kept.arrays["stored"]
        model = DurationModel(**{name: kept.arrays[name] for name in ("actions", "rates", "errors")})
        tables, here = problem.compiled[0], learned_for(problem.simulation)["topology"]
        if kept.meta["topology"] != here or model.actions.tolist() != tables.actions.tolist():
            raise UserError(
                "the model of durations was fitted on another cluster",
                where=str(checkpoint),
                expected=f"the topology {here} and the degrees {tables.actions.tolist()}",
            )
        steps = problem.scenario.jobs.steps * model.predict(_terms(problem))
        durations = np.where(tables.parts[:, :, 0] >= 0, steps, np.inf)
        settings = validate(PredictedSettings, kept.meta["settings"])
        seed = derive_seed(problem.scenario.seed, "ramp", "acting", kept.meta["seed"])
        return PredictedPolicy(tables._replace(durations=durations), model.errors, stored, settings, seed)


def _terms(problem: RampProblem) -> np.ndarray:
    simulation, management = problem.simulation, problem.scenario.management
    legal = tuple(simulation.degrees) if management.illegal_degrees == "round_down" else None
    return all_terms(simulation.pool.graphs, problem.compiled[0].actions, management.quantum, legal)


def _fitted(problems: list[RampProblem], leave_out: Sequence[str], policy: str) -> tuple[DurationModel, int]:
    """Return the model of the graphs of the problems, and the number of durations that it was fitted to."""
    actions = problems[0].compiled[0].actions
    if any(problem.compiled[0].actions.tolist() != actions.tolist() for problem in problems):
        what = "the scenarios differ in their degrees"
        raise UserError(what, where=f"{policy}.yaml: train_on", expected="one cluster")
    names = [graph.name for problem in problems for graph in problem.simulation.pool.graphs]
    if unknown := sorted({*leave_out} - {*names}):
        what = f"there is no graph '{unknown[0]}'"
        raise UserError(what, where=f"{policy}.yaml: learner.leave_out", remedy=did_you_mean(unknown[0], names))
    kept = [name not in leave_out for name in names]
    if sum(kept) < FEWEST_GRAPHS:
        what = f"durations of {sum(kept)} graphs"
        raise UserError(what, where=f"{policy}.yaml: train_on", expected=f"at least {FEWEST_GRAPHS} graphs")
    measured = [problem.compiled[0].durations / problem.scenario.jobs.steps for problem in problems]
    terms, durations = np.concatenate([*map(_terms, problems)])[kept], np.concatenate(measured)[kept]
    return fit_durations(actions, terms, durations), int(np.isfinite(durations).sum())


def _jobs(problem: RampProblem, count: int, seed: int) -> np.ndarray:
    """Return beta and the gap (s) after each of the first jobs of a training episode, float64[count, 2]."""
    source, now, rows = problem.simulation.pool.episode(derive_seed(seed, "ramp", "stored")), 0.0, []
    for index in range(count):
        job, after = source.draw(index), source.next_arrival(now)
        rows.append([job.beta, after - now])
        now = after
    return np.array(rows)
