"""The prepare rules: the step-time model of a training job, and the oracle of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import Part, Requirement, Unit
from schedlab.config.data_paths import find_data, find_resource
from schedlab.config.errors import UserError
from schedlab.config.files import write_json
from schedlab.config.freeze import read_part
from schedlab.config.json_files import read_json
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.studies.cloud.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.fallback import MeasuredSteps, Scaling
from schedlab.studies.cloud.fit_report import fit_report
from schedlab.studies.cloud.goodput import StepModel, StepParameters
from schedlab.studies.cloud.logs import read_step_times
from schedlab.studies.cloud.oracle import best_plan, objective_of_staying
from schedlab.studies.cloud.problem import UNIT_KIND, CloudProblem
from schedlab.studies.cloud.rules import make_random
from schedlab.studies.cloud.settings import CloudScenario

FITTED = ("model", "step", "scaling", "logs", "gpus_per_node")
OF_OBJECTIVE = ("job", "resource", "start", "environment", "preferences", "random_episodes", "seed", "sla", "sla_from", "name")
SOURCE = "logs of your own training runs, or the traces of Pollux (branch osdi21-artifact of petuum/adaptdl)"


def fit_performance(part: Path, model: Path) -> None:
    """Write the step-time model of a job (JSON): its pinned parameters, or those fitted to its logs with the errors of the fit.

    Logs on several numbers of cores tell the work of a core, too, which then takes the place of the job's own.
    """
    values = read_part(part)
    if values["model"] != "goodput":
        report: dict[str, Any] = {"form": values["model"], "parameters": _fallback(values).values()}
    elif values["step"] is not None:
        report = {"parameters": values["step"], "rows": 0}
    else:
        report = _fitted(values["logs"], values["gpus_per_node"])
    write_json(model, report)


def solve_oracle(part: Path, model: Path, oracle: Path) -> None:
    """Write the objectives of the oracles and of random actions for each preference (JSON), what they are normalised by, and the fronts.

    All are those of the job without noise. No fronts where decisions come by time.
    """
    from schedlab.studies.cloud.pareto import front_report

    scenario = with_fitted_cores(scenario_of(read_part(part)), model)
    calm = scenario.environment.model_copy(update={"time_noise": 0.0, "price_walk": 0.0})
    problem = CloudProblem(scenario.model_copy(update={"environment": calm}), read_model(model), {})
    replay = problem.replay
    found: dict[str, Any] = {"time_ref": replay.time_ref, "cost_ref": replay.cost_ref, "allocations": len(replay.lattice)}
    found["preferences"] = {name: objectives_of(problem, name) for name in scenario.preferences}
    write_json(oracle, found if replay.span else found | front_report(replay))


def objectives_of(problem: CloudProblem, preference: str) -> dict[str, float]:
    """Return the objectives of the best plan, of the best constant and of random actions (mean) for a preference."""
    weights, replay, scenario = weights_of(preference), problem.replay, problem.scenario
    env, drawn = CloudReplayEnv(replay, preference), []
    for number in range(scenario.random_episodes):
        policy = make_random({}, problem, derive_seed(scenario.seed, "random episode", number))
        policy.reset(Unit(f"{preference}-random-{number}", UNIT_KIND, "train", "random", number))
        env.reset(seed=0)
        over = False
        while not over:
            over = any(env.step(env.actions.index(policy.choose(env)))[2:4])
        drawn.append(env.objective())
    return {
        "dynamic": float(best_plan(replay, weights).values[0, replay.lattice.start]),
        "static": float(objective_of_staying(replay, weights).min()),
        "random": float(np.mean(drawn)),
    }


def log_file(name: str) -> Path:
    """Return where a log of a configuration lies: resources/... of the checkout, or data."""
    return find_resource(name) if Path(name).parts[:1] == ("resources",) else find_data(name)


def read_model(path: Path) -> StepModel:
    """Return the step-time model that fit_performance wrote."""
    found = read_json(path, "a step-time model")
    if found.get("form") in ("amdahl", "power"):
        return Scaling(**found["parameters"])
    if found.get("form") == "table":
        return MeasuredSteps(tuple(tuple(row) for row in found["parameters"]["rows"]))
    return StepParameters(**found["parameters"])


def with_fitted_cores(scenario: CloudScenario, model: Path) -> CloudScenario:
    """Return the scenario with the work of a core on a sample that fit_performance found in its logs, if it did."""
    cores = read_json(model, "a step-time model").get("cores")
    if cores is None:
        return scenario
    pipeline = scenario.job.pipeline.model_copy(update={"core_seconds": cores["core_seconds"]})
    return scenario.model_copy(update={"job": scenario.job.model_copy(update={"pipeline": pipeline})})


def _fitted(logs: Sequence[str], gpus_per_node: int) -> dict[str, Any]:
    """The fit of a job's logs. Raises UserError where they are of several models, or of none on a GPU."""
    where, expected = f"job.logs: {', '.join(logs)}", "logs of one model, trained on GPUs"
    report = fit_report([log_file(name) for name in logs], gpus_per_node, leave_out=True)
    if "models" in report:
        raise UserError(f"the logs are of the models {', '.join(report['models'])}", where=where, expected=expected)
    if "core_seconds" in report["parameters"]:
        raise UserError("the logs have no epoch on a GPU", where=where, expected=expected)
    return report


def _fallback(values: Mapping[str, Any]) -> StepModel:
    """The model of a job that is not the goodput model."""
    if (scaling := values["scaling"]) is not None:
        constant = scaling["serial_share" if values["model"] == "amdahl" else "exponent"]
        return Scaling(values["model"], scaling["throughput_one"], constant)
    import pandas as pd

    rows = pd.concat([read_step_times(log_file(name), values["gpus_per_node"]) for name in values["logs"]], ignore_index=True)
    return MeasuredSteps.of(rows)


def parts(scenario: CloudScenario) -> dict[str, Part]:
    """Return what each prepare rule reads; scenarios of one job share its model."""
    values = scenario.model_dump(mode="json")
    job = {key: values["job"][key] for key in FITTED}
    model = Part(job, shared=True, files=tuple(scenario.job.logs))
    oracle = Part({key: values[key] for key in OF_OBJECTIVE}, needs=("fit_performance",))
    return {"fit_performance": model, "solve_oracle": oracle}


def inputs(scenario: CloudScenario) -> dict[str, tuple[str, str]]:
    """Return the prepared files."""
    del scenario
    return {"model": ("fit_performance", "model.json"), "oracle": ("solve_oracle", "oracle.json")}


def requires(scenario: CloudScenario) -> list[Requirement]:
    """Return the logs that are data of others, and so may be missing."""
    logs = [name for name in scenario.job.logs if Path(name).parts[:1] != ("resources",)]
    return [Requirement(f"the log {Path(name).name}", Path(name), SOURCE) for name in logs]


def problem_values(scenario: CloudScenario) -> dict[str, Any]:
    """Return what decides how policies are scored, given model and oracle."""
    values = scenario.model_dump(mode="json")
    return {key: values[key] for key in (*OF_OBJECTIVE, "replicates")}


def scenario_of(values: Mapping[str, Any]) -> CloudScenario:
    """Return the typed scenario of a frozen part."""
    known = {key: value for key, value in values.items() if key in CloudScenario.model_fields}
    return validate(CloudScenario, known)


def load_problem(values: Mapping[str, Any], inputs: Mapping[str, Path]) -> CloudProblem:
    """Return one scenario with its model and oracle."""
    oracle = read_json(inputs["oracle"], "the objectives of the oracles")
    return CloudProblem(with_fitted_cores(scenario_of(values), inputs["model"]), read_model(inputs["model"]), oracle["preferences"])
