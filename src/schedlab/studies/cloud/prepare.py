"""The prepare rules: the checked logs of a training job, its step-time model, and the oracle of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Part, Requirement, Unit
from schedlab.config.data_paths import find_data, find_resource
from schedlab.config.errors import UserError
from schedlab.config.files import file_hash, read_table, write_json, write_table
from schedlab.config.readers import read_json
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.studies.cloud.jobs.problem import JobsProblem
from schedlab.studies.cloud.model.fallback import MeasuredSteps, Scaling
from schedlab.studies.cloud.model.fit_cores import CORE_TIMES
from schedlab.studies.cloud.model.fit_report import read_logs, report_of
from schedlab.studies.cloud.model.logs import read_table as read_log
from schedlab.studies.cloud.model.step_time import StepModel, StepParameters
from schedlab.studies.cloud.problem import UNIT_KIND, CloudProblem
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.rules.oracle import best_kept_plan, best_plan, kept_objectives
from schedlab.studies.cloud.rules.pareto import front_report, measures
from schedlab.studies.cloud.rules.rules import RULES
from schedlab.studies.cloud.scenario import CloudScenario

if TYPE_CHECKING:
    import pandas as pd

INGESTED = ("logs", "gpus_per_node")
FITTED = ("model", "step", "scaling", "logs", "gpus_per_node")
OF_OBJECTIVE = (
    *("job", "family", "resource", "start", "instances", "constraints", "environment", "legacy", "preferences"),
    *("random_episodes", "seed", "sla", "sla_from", "name"),
)
SOURCE = "logs of your own training runs, or the traces of Pollux (branch osdi21-artifact of petuum/adaptdl)"


def ingest_logs(part: Path, steps: Path, cores: Path, report: Path) -> None:
    """Check the logs of a job, and write the rows to be fitted as two tables (`fit_report.read_logs`), and a report on
    each log as JSON. Raises UserError for an invalid log.

    steps  table of step times, a row for each
    cores  table of core times, a row for each; empty if no log has cores
    """
    import pandas as pd

    values = read_part(part)
    files = {name: log_file(name) for name in values["logs"]}
    step_times, core_times = read_logs(list(files.values()), values["gpus_per_node"])
    write_table(steps, step_times)
    write_table(cores, pd.concat(core_times or [pd.DataFrame(columns=CORE_TIMES)], ignore_index=True))
    logs = {name: {"sha256": file_hash(file), "rows": len(read_log(file))} for name, file in files.items()}
    write_json(report, {"logs": logs, "step_times": len(step_times), "core_times": sum(map(len, core_times))})


def fit_performance(part: Path, model: Path, steps: Path | None = None, cores: Path | None = None) -> None:
    """Write the step-time model of a job (JSON): its pinned parameters, or those fitted to its logs, with the errors of
    the fit.

    steps, cores  tables of ingest_logs, for a job with logs; the core time per sample that is fitted to core times
                  replaces the job's setting
    """
    values = read_part(part)
    if (scaling := values["scaling"]) is not None:
        constant = scaling["serial_share" if values["model"] == "amdahl" else "exponent"]
        scaled = Scaling(values["model"], scaling["throughput_one"], constant)
        report: dict[str, Any] = {"form": values["model"], "parameters": scaled.values()}
    elif values["step"] is not None:
        report = {"parameters": values["step"], "rows": 0}
    else:
        assert steps and cores, "the tables of ingest_logs, for a job with logs"
        step_times, core_times = read_table(steps), read_table(cores)
        if values["model"] == "table":
            report = {"form": "table", "parameters": MeasuredSteps.of(step_times).values()}
        else:
            report = _fitted(values["logs"], step_times, core_times)
    write_json(model, report)


def solve_oracle(part: Path, model: Path, oracle: Path) -> None:
    """Write the objectives of the oracles and of random actions for each preference (JSON), the references of the
    objective, and the fronts. All are those of the job without noise. There are no fronts with `interval_seconds`.
    """
    scenario = with_fitted_cores(scenario_of(read_part(part)), model)
    calm = scenario.environment.model_copy(update={"time_noise": 0.0, "price_walk": 0.0})
    problem = CloudProblem(scenario.model_copy(update={"environment": calm}), read_model(model), {})
    replay = problem.replay
    found: dict[str, Any] = {
        "time_ref": replay.time_ref,
        "cost_ref": replay.cost_ref,
        "allocations": len(replay.lattice),
    }
    found["preferences"] = {name: objectives_of(problem, name) for name in scenario.preferences}
    write_json(oracle, found if replay.span else {**found, **front_report(replay)})


def objectives_of(problem: CloudProblem, preference: str) -> dict[str, float]:
    """Return the objectives of the best plan, of the best constant allocation and of random actions (mean) for a
    preference. If there are constraints, plan and constant allocation keep them, the excess of random actions is
    included, and a bound on the best plan is returned, too.
    """
    weights, replay, scenario = weights_of(preference), problem.replay, problem.scenario
    env, drawn = CloudReplayEnv(replay, preference), []
    for number in range(scenario.random_episodes):
        policy = RULES["random"]({}, problem, derive_seed(scenario.seed, "random episode", number))
        policy.reset(Unit(f"{preference}-random-{number}", UNIT_KIND, "train", "random", number))
        env.reset(seed=0)
        over = False
        while not over:
            over = any(env.step(env.actions.index(policy.choose(env)))[2:4])
        drawn.append(env.penalised())
    found = {
        "dynamic": float(best_plan(replay, weights).values[0, replay.lattice.start]),
        "static": float(kept_objectives(replay, weights).min()),
        "random": float(np.mean(drawn)),
    }
    return found | {"bound": best_kept_plan(replay, weights).bound} if replay.constraints.items else found


def log_file(name: str) -> Path:
    """Return the path of a log named in a configuration: below resources/ of the checkout, or in the data folder."""
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
    """Return the scenario with the core time per sample and the speeds of GPU kinds that fit_performance fitted to its
    logs, if it did.
    """
    found = read_json(model, "a step-time model")
    if scenario.instances is not None and (speeds := found.get("gpu_speeds")):
        scenario = scenario.model_copy(
            update={"instances": scenario.instances.model_copy(update={"speeds": speeds, "gpu_kind": None})}
        )
    if (cores := found.get("cores")) is None:
        return scenario
    pipeline = scenario.job.pipeline.model_copy(update={"core_seconds": cores["core_seconds"]})
    return scenario.model_copy(update={"job": scenario.job.model_copy(update={"pipeline": pipeline})})


def _fitted(logs: Sequence[str], steps: pd.DataFrame, cores: pd.DataFrame) -> dict[str, Any]:
    """Return the fit of a job's logs. Raises UserError if they are of several models, or if none has GPUs."""
    where, expected = f"job.logs: {', '.join(logs)}", "logs of one model, trained on GPUs"
    if not len(steps):
        raise UserError("the logs have no epoch on a GPU", where=where, expected=expected)
    if len(models := sorted(set(steps["model"]))) > 1:
        raise UserError(f"the logs are of the models {', '.join(models)}", where=where, expected=expected)
    return report_of(steps, cores if len(cores) else None, leave_out=True)


def parts(scenario: CloudScenario) -> dict[str, Part]:
    """Return the frozen part of each prepare rule. Scenarios share a job's logs and model; pinned jobs have no logs,
    and scenarios of several jobs need no preparation.
    """
    if scenario.family is not None:
        return {}
    values, files = _resolved(scenario).model_dump(mode="json"), tuple(scenario.job.logs)
    logs, job = ({key: values["job"][key] for key in keys} for keys in (INGESTED, FITTED))
    ingested = {"ingest_logs": Part(logs, shared=True, files=files, made_by=f"{__name__}:ingest_logs")} if files else {}
    model = Part(job, shared=True, needs=tuple(ingested), files=files, made_by=f"{__name__}:fit_performance")
    oracle = Part(
        {key: values[key] for key in OF_OBJECTIVE}, needs=("fit_performance",), made_by=f"{__name__}:solve_oracle"
    )
    return {**ingested, "fit_performance": model, "solve_oracle": oracle}


def inputs(scenario: CloudScenario) -> dict[str, tuple[str, str]]:
    """Return the prepared files."""
    if scenario.family is not None:
        return {}
    return {"model": ("fit_performance", "model.json"), "oracle": ("solve_oracle", "oracle.json")}


def requires(scenario: CloudScenario) -> list[Requirement]:
    """Return the logs that come from others, and may therefore be missing."""
    logs = [name for name in scenario.job.logs if Path(name).parts[:1] != ("resources",)]
    return [Requirement(f"the log {Path(name).name}", Path(name), SOURCE) for name in logs]


def problem_values(scenario: CloudScenario) -> dict[str, Any]:
    """Return the values that decide how policies are scored, given model and oracle."""
    values = _resolved(scenario).model_dump(mode="json")
    return {key: values[key] for key in (*OF_OBJECTIVE, "replicates")}


def _resolved(scenario: CloudScenario) -> CloudScenario:
    """Return the scenario with the instance types of its catalogue, so that frozen parts contain them."""
    if scenario.instances is None:
        return scenario
    return scenario.model_copy(update={"instances": scenario.instances.resolved()})


def scenario_of(values: Mapping[str, Any]) -> CloudScenario:
    """Return the typed scenario of a frozen part."""
    known = {key: value for key, value in values.items() if key in CloudScenario.model_fields}
    return validate(CloudScenario, known)


def load_problem(values: Mapping[str, Any], inputs: Mapping[str, Path]) -> CloudProblem:
    """Return the problem of one scenario, with its model and oracle, or of one with several jobs."""
    if (several := scenario_of(values)).family is not None:
        return JobsProblem(several)
    oracle = read_json(inputs["oracle"], "the objectives of the oracles")
    scenario = with_fitted_cores(scenario_of(values), inputs["model"])
    return CloudProblem(scenario, read_model(inputs["model"]), oracle["preferences"], _covered(oracle))


def _covered(oracle: Mapping[str, Any]) -> Callable[[np.ndarray], float] | None:
    """Return the function from points of time and cost, (n, 2), to the share of the front's hypervolume that they
    cover; None if there is no front.
    """
    if "front" not in oracle:
        return None
    front = np.array(oracle["front"])
    return lambda points: measures(points, front)["hypervolume"]
