"""Run files of the published system (TOML), and their translation into our configuration.

A file describes an initial training, the simulation of every sequence, or the learning of a policy; its agent and its
sections determine which. The keys are translated as follows.

runner.folder                  name of the scenario or policy
runner.seed                    `seed` of the scenario; `seeds` of the policy
runner.agent                   SimulationAgent, RandomAgent: a scenario (an initial training without `gpu_changes`);
                               Agent: a policy
runner.total_episodes          `train_on.steps` of the policy; sequences of a simulation, of which a table has all
scheduler.running_time         `budget`
scheduler.gpu_changes          the first `up` is `adapt_at`, the rest are `changes`
job.model, job.dataset         options of conf/model/ and conf/data/, regardless of capitals and underscores
job.batchsize                  `training.batch_size`
agent.num_actions              `decisions`
agent.action_set_size, agent.max_actions   checked: one for each block and one for doing nothing
simulation.datafile            `train_on.scenarios`: the scenario of the folder, or of this experiment of the record
agent.policyfile               `parent`: the policy of the folder's name
agent.temperature              `train_on.params.temperature`
_LEARNER, _LEFT_OUT            settings of the learner; keys without a counterpart

Values that no file sets (Adam at 0.01, the optimizer's restarts, ...) are those of mode reference.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.readers import MOST_LEVELS, levels_exceed, read_text
from schedlab.config.schema import Settings, section, setting, validate
from schedlab.config.settings import RESERVED_NAMES
from schedlab.studies.adaptation.scenario import MOST_DECISIONS, ChangeSettings

AGENTS = ("SimulationAgent", "RandomAgent", "Agent")
DECISIONS = 3  # of a published run that does not specify the number
REFERENCE: dict[str, Any] = {
    "model": {"head_relu": True},
    "data": {"validation_size": 0},
    "training": {"decay": 0.9},
    "growth": {
        "bn_init": "default",
        "optimizer": "fresh_every_decision",
        "lr_on_growth": "restart",
        "noop": "reset",
        "soft_target_weight": 0.0,
    },
    "reward": {"split": "test", "metric": "accuracy", "window": 1},
}
_LEARNER = {
    "embedding_size": "embedding",
    "hidden_size": "recurrent",
    "decider_lstm_size": "code",
    "decider_linear_size": "linear",
    "time_encoding_size": "frequencies",
    "alpha": "learning_rate",
    "learning_rate_decay": "learning_rate_factor",
    "decay_freq": "learning_rate_every",
}
_LEFT_OUT = {
    ("runner", "save"): "states lie in the node store",
    ("scheduler", "start_time"): "the trunk runs from 0 to adapt_at",
    ("trainer", "weights"): "the trunk is trained by the workflow",
    ("trainer", "runtimes"): "epochs are charged with pinned seconds",
    ("agent", "device"): "where to train is training.device of the scenario",
    ("agent", "save_file"): "the table lies where the workflow puts it",
    ("agent", "vocab"): "layers are known by a description of ours, in resources/vocabularies/",
}


class RunnerSection(Settings):
    """The kind of run, and the folder of its results."""

    seed: int = setting(42, doc="seed of the process", ge=0)
    total_episodes: int | None = setting(None, doc="episodes of learning, or sequences of a simulation", gt=0)
    folder: str | None = setting(None, doc="folder of the results")
    agent: str | None = setting(None, doc="SimulationAgent, RandomAgent or Agent")
    save: bool | None = setting(None, doc="keep the trained models")


class SchedulerSection(Settings):
    """The budget and the changes of resources."""

    running_time: float = setting(doc="budget", unit="s", gt=0)
    gpu_changes: tuple[ChangeSettings, ...] = setting((), doc="times of more (up) and fewer (down) resources, in order")
    start_time: float | None = setting(None, doc="seconds spent before", unit="s", ge=0)


class TrainerSection(Settings):
    """The initial training before the run."""

    weights: str | None = setting(None, doc="file of the initial training's weights")
    runtimes: str | None = setting(None, doc="file of the initial training's times")


class JobSection(Settings):
    """The training job."""

    model: str = setting(doc="class of the network")
    dataset: str = setting(doc="data set")
    batchsize: int | None = setting(None, doc="images of a mini-batch; 64 where it is not set", gt=0)


class AgentSection(Settings):
    """The agent that decides, and its learning."""

    device: int | str | None = setting(None, doc="number of the GPU")
    action_set_size: int | None = setting(None, doc="actions of a simulation", gt=0)
    num_actions: int | None = setting(None, doc="decisions in a run", gt=0, le=MOST_DECISIONS)
    save_file: str | None = setting(None, doc="file of the simulated table")
    max_actions: int | None = setting(None, doc="actions of the policy", gt=0)
    vocab: str | None = setting(None, doc="vocabulary of layers")
    alpha: float | None = setting(None, doc="learning rate", gt=0)
    learning_rate_decay: float | None = setting(None, doc="factor on the learning rate", gt=0, le=1)
    decay_freq: int | None = setting(None, doc="episodes between two reductions", gt=0)
    hidden_size: int | None = setting(None, doc="cells of the layer reader in each direction", gt=0)
    embedding_size: int | None = setting(None, doc="size of a layer's embedding", gt=0)
    decider_lstm_size: int | None = setting(None, doc="size of the code of a model", gt=0)
    decider_linear_size: int | None = setting(None, doc="units of the linear layers", gt=0)
    time_encoding_size: int | None = setting(None, doc="number of frequencies of the time code", gt=0)
    policyfile: str | None = setting(None, doc="file of the policy that learning starts from")
    temperature: float | None = setting(None, doc="temperature at the start", ge=1)


class SimulationSection(Settings):
    """The table from which a policy learns."""

    datafile: str = setting(doc="file of the simulated table")


class RunFile(Settings):
    """One run file of the published system."""

    runner: RunnerSection = section(RunnerSection, doc="what is run")
    scheduler: SchedulerSection | None = setting(None, doc="budget and resources")
    trainer: TrainerSection = section(TrainerSection, doc="what was trained before")
    job: JobSection = setting(doc="the training job")
    agent: AgentSection = section(AgentSection, doc="what decides")
    simulation: SimulationSection | None = setting(None, doc="what is learned on")


@dataclass(frozen=True)
class Imported:
    """The content of one run file: YAML values of a scenario, of a policy, of both or, for an initial training, of
    neither.

    remarks: the settings that were not carried over, with reasons
    """

    file: str
    name: str
    scenario: dict[str, Any] | None
    policy: dict[str, Any] | None
    remarks: tuple[str, ...]


def read_run_file(path: Path | str, keep_unknown: bool = False) -> tuple[RunFile, list[str]]:
    """Return the typed content of a run file and, if unknown keys are ignored (keep_unknown), remarks on them.

    Raises UserErrors for unknown keys (with the nearest known one), wrong types and values out of range; UserError for
    a file that is no TOML.
    """
    values, remarks = _toml(Path(path)), []
    if keep_unknown:
        values, unknown = _known(RunFile, values)
        remarks = [f"{path}: {key}: unknown, left out" for key in unknown]
    try:
        return validate(RunFile, values, lambda keys: f"{path}: {'.'.join(map(str, keys))}"), remarks
    except TypeError as error:  # a date or a time, which JSON does not have
        raise UserError(f"a value is no number, text, list or table ({error})", where=str(path)) from None


def translate(path: Path | str, run: RunFile, options: ImportOptions, remarks: Sequence[str] = ()) -> Imported:
    """Translate a run file into a scenario and a policy. Raises UserError for settings without a counterpart."""
    where = str(path)
    name = options.name or _name(run.runner.folder or Path(path).stem)
    if name in RESERVED_NAMES:
        raise UserError(f"'{name}' is a reserved name", where=where, remedy="give another with --name")
    agent = run.runner.agent
    if agent is not None and agent not in AGENTS:
        raise UserError(f"unknown agent '{agent}'", where=f"{where}: runner.agent", remedy=did_you_mean(agent, AGENTS))
    learns = agent == "Agent" or (agent is None and (run.simulation is not None or run.agent.alpha is not None))
    changes = run.scheduler.gpu_changes if run.scheduler else ()
    scenario = _scenario(where, name, run, options) if changes else None
    policy = _policy(where, name, run, own_scenario=scenario is not None) if learns else None
    told = [*remarks, *_left_out(where, run)]
    if agent == "SimulationAgent" and scenario is None:
        what = "a simulation without a change of resources"
        raise UserError(what, where=f"{where}: scheduler.gpu_changes", expected="at least one `up`")
    if scenario is None and policy is None:
        told.append(
            f"{where}: an initial training, which the workflow does for every scenario (its trunk): no file is written"
        )
    return Imported(where, name, scenario, policy, tuple(told))


@dataclass(frozen=True)
class ImportOptions:
    """Options of the command line: known models and data sets, the timing, another name, the published record."""

    models: Sequence[str]
    datasets: Sequence[str]
    timing: str = "gv100gl"
    name: str | None = None
    record: str | None = None


def _scenario(where: str, name: str, run: RunFile, options: ImportOptions) -> dict[str, Any]:
    scheduler = run.scheduler
    assert scheduler is not None
    first, *later = scheduler.gpu_changes
    if first.change != "up":
        what = "the first change is down"
        raise UserError(what, where=f"{where}: scheduler.gpu_changes.0", expected="up: there is nothing to give back")
    if scheduler.start_time not in (None, 0, first.time):
        expected = f"{first.time:g}, when the first change comes: our trunk runs from 0 to there"
        raise UserError(f"{scheduler.start_time:g}", where=f"{where}: scheduler.start_time", expected=expected)
    reference = dict(REFERENCE)
    if options.record:
        reference["table"] = {"source": "published", "file": options.record, "experiment": run.runner.folder or name}
    values: dict[str, Any] = {
        "defaults": [
            {"/model": model_option(where, run, options)},
            {"/data": _option(where, "dataset", run.job.dataset, options.datasets)},
            {"/gpu@timing": options.timing},
            "_self_",
        ],
        "name": name,
        "mode": "reference",
        "seed": run.runner.seed,
        "scales": ["paper"],
        "budget": scheduler.running_time,
        "adapt_at": first.time,
        "decisions": run.agent.num_actions or DECISIONS,
        "replicates": 1,
        "test_replicates": 0,
        "rules": ["never", "random", "exhaustive"],
        "policies": [],
        "reference": reference,
    }
    if later:
        values["changes"] = [{"time": change.time, "change": change.change} for change in later]
    if run.job.batchsize:
        values["training"] = {"batch_size": run.job.batchsize}
    return values


def _policy(where: str, name: str, run: RunFile, own_scenario: bool) -> dict[str, Any]:
    if run.runner.total_episodes is None:
        raise UserError("key 'total_episodes' is missing", where=f"{where}: runner", expected="episodes of learning")
    if run.simulation is None and not own_scenario:
        what = "key 'datafile' is missing"
        raise UserError(what, where=f"{where}: simulation", expected="the table to learn on, as results/NAME/data.pkl")
    trained_on = name if run.simulation is None else _folder(where, "simulation.datafile", run.simulation.datafile)
    phase: dict[str, Any] = {"scenarios": [trained_on], "steps": run.runner.total_episodes}
    if run.agent.temperature is not None:
        phase["params"] = {"temperature": run.agent.temperature}
    learner = {ours: getattr(run.agent, theirs) for theirs, ours in _LEARNER.items()}
    values: dict[str, Any] = {
        "defaults": [{"/learner/adaptation@learner": "reinforce_published"}, "_self_"],
        "name": name,
        "mode": "reference",
        "learner": {key: value for key, value in learner.items() if value is not None},
        "train_on": [phase],
        "seeds": [run.runner.seed],
        "scales": ["paper"],
    }
    if run.agent.policyfile:
        values["parent"] = _folder(where, "agent.policyfile", run.agent.policyfile)
    return values


def _left_out(where: str, run: RunFile) -> list[str]:
    told = []
    for (part, key), why in _LEFT_OUT.items():
        if (group := getattr(run, part)) is not None and getattr(group, key) is not None:
            told.append(f"{where}: {part}.{key}: left out; {why}")
    if run.scheduler and run.scheduler.start_time and not run.trainer.weights:
        told.append(f"{where}: scheduler.start_time: an untrained network began there; here it is trained up to then")
    if run.agent.policyfile and "final" not in PurePosixPath(run.agent.policyfile).name:
        told.append(
            f"{where}: agent.policyfile: a policy starts from its parent's final parameters, not from this file's"
        )
    return told


def model_option(where: str, run: RunFile, options: ImportOptions) -> str:
    """Return the file in conf/model/ that corresponds to the model of a run file. Raises UserError if there is none."""
    return _option(where, "model", run.job.model, options.models)


def check_sizes(where: str, run: RunFile, actions: int) -> None:
    """Raise UserError if the numbers of actions or sequences in a run file are not those that follow from the model's
    blocks.
    """
    for key in ("action_set_size", "max_actions"):
        if (given := getattr(run.agent, key)) not in (None, actions):
            raise UserError(
                f"{given} actions",
                where=f"{where}: agent.{key}",
                expected=f"{actions}: one for each block of the model and nothing",
            )
    sequences = actions ** (run.agent.num_actions or DECISIONS)
    if run.runner.agent == "SimulationAgent" and run.runner.total_episodes not in (None, sequences):
        what = f"{run.runner.total_episodes} sequences"
        expected = f"all {sequences} of {actions} actions, as a table holds them"
        raise UserError(what, where=f"{where}: runner.total_episodes", expected=expected)


def _option(where: str, key: str, given: str, names: Sequence[str]) -> str:
    plain = {name.replace("_", ""): name for name in names}
    wanted = given.lower().replace("_", "").replace("-", "")
    if wanted not in plain:
        what = f"unsupported {'data set' if key == 'dataset' else key} '{given}'"
        raise UserError(what, where=f"{where}: job.{key}", remedy=did_you_mean(given.lower(), names))
    return plain[wanted]


def _folder(where: str, key: str, file: str) -> str:
    """Return the name of the run to whose results a file belongs: NAME in results/NAME/data.pkl."""
    folder = PurePosixPath(file.replace("\\", "/")).parent.name
    if not folder or folder == "..":
        expected = "a file in the folder of a run, as results/NAME/data.pkl"
        raise UserError(f"'{file}' names no run", where=f"{where}: {key}", expected=expected)
    return _name(folder)


def _name(text: str) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")
    if not name:
        raise UserError(f"'{text}' gives no name", where="runner.folder", remedy="give one with --name")
    return name


def _known(kind: type[Settings], values: Mapping[str, Any], prefix: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return the values of the known keys of a section and its inner sections, and the dotted names of the others."""
    kept, unknown = {}, []
    for key, value in values.items():
        field = kind.model_fields.get(key)
        if field is None:
            unknown.append(f"{prefix}{key}")
            continue
        inner = next((entry for entry in (field.annotation, *get_args(field.annotation)) if _is_section(entry)), None)
        if inner is not None and isinstance(value, Mapping):
            value, deeper = _known(inner, value, f"{prefix}{key}.")
            unknown += deeper
        kept[key] = value
    return kept, unknown


def _is_section(entry: Any) -> bool:
    return isinstance(entry, type) and issubclass(entry, Settings)


def _toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file. The package `toml`, which writes such files, also accepts broken ones."""
    try:
        values = tomllib.loads(read_text(path, "a TOML file"))
    except ValueError as error:  # also Python's error for numbers with too many digits
        raise UserError(f"not valid TOML: {error}", where=str(path)) from None
    except RecursionError:
        raise UserError("nested too deeply", where=str(path), expected="a TOML file") from None
    if levels_exceed(values, MOST_LEVELS):
        what = f"nested too deeply, in more than {MOST_LEVELS} levels"
        raise UserError(what, where=str(path), expected="a TOML file")
    return values
