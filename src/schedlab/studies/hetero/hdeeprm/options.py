"""HDeepRM's options file (options.json) in the forms of versions 0.3 and 0.2; mistakes are reported by file and key.

Version 0.2 named a CLASSIC agent's pair in `agent.policy_pair`, which here selects that pair alone, without void. Two
core policies of version 0.2 had other names, and the options files of 0.1 had no `agent.type`.
See docs/reference/hetero_launch.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.readers import read_json
from schedlab.config.schema import Settings, setting, validate
from schedlab.studies.hetero.env.objectives import OBJECTIVES
from schedlab.studies.hetero.env.settings import ALL_PAIRS, PAIR_SEPARATOR, REFERENCE, DecisionSettings, LegacySettings
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import ALL_JOB_POLICIES

NEEDED_BY_LEARNING = ("hidden", "gamma")
OLDER_CORE_POLICIES = {"high_flops": "high_gflops", "low_energy": "low_power"}  # name in version 0.2 -> name today
# The learning example in the README of 0.3 names the core policy "", for which HDeepRM stops with a KeyError. Here an
# empty name means no order, that is, HDeepRM's `random`.
NO_CORE_POLICY = {"": "random"}


class ActionOptions(Settings):
    """`env.actions`: the pairs among which an agent chooses, in the order of their numbers."""

    selection: tuple[dict[str, tuple[str, ...]], ...] = setting(
        doc="list of {job policy: [core policy, ...]}, in the order of the action numbers", min_length=1
    )
    void: bool = setting(True, doc="offer a last action that does nothing")


class EnvironmentOptions(Settings):
    """`env`: the actions, the observation and the reward."""

    objective: Literal[tuple(OBJECTIVES)] = setting(  # type: ignore[valid-type]
        doc="objective from which the rewards are computed"
    )
    actions: ActionOptions | None = setting(None, doc="pairs to choose from; default: all 36 and void")
    observation: Literal["normal", "small", "minimal"] = setting("normal", doc="observation of the agent")
    queue_sensitivity: float = setting(
        0.05, doc="relative growth of the queue at which its variation saturates at 0 or 1", gt=0
    )
    time_weighted: bool = setting(False, doc="the reward is the integral of the objective (not in HDeepRM)")
    void_limit: int = setting(100, doc="consecutive voids while nothing else can happen (not in HDeepRM)", ge=1)


class AgentOptions(Settings):
    """`agent`: the agent that decides."""

    type: Literal["CLASSIC", "LEARNING"] | None = setting(
        None,
        doc="kind of agent: always the first action, or a class in a file (-a); null: decided by "
        "`policy_pair` or `run`",
    )
    policy_pair: str | None = setting(None, doc="version 0.2: the pair of a CLASSIC agent")
    run: Literal["train", "test"] | None = setting(None, doc="LEARNING: train, or act with the trained model")
    hidden: int | None = setting(None, doc="LEARNING: units of a hidden layer", ge=1)
    lr: float | None = setting(None, doc="LEARNING, train: learning rate of Adam", gt=0)
    gamma: float | None = setting(None, doc="LEARNING: discount factor per decision", ge=0, le=1)
    acting: Literal["greedy", "sample"] | None = setting(
        None, doc="LEARNING, test: greedy or sampled actions (not in HDeepRM)"
    )

    @property
    def learning(self) -> bool:
        """Whether the agent is a class in a file."""
        return self.type == "LEARNING" or (self.type is None and self.run is not None)

    @property
    def pair(self) -> tuple[str, str] | None:
        """The job policy and core policy of `policy_pair`, by today's names; None if it is not given."""
        if self.policy_pair is None:
            return None
        job, _, core = self.policy_pair.partition(PAIR_SEPARATOR)
        return job, OLDER_CORE_POLICIES.get(core, core)


class ProgramOptions(Settings):
    """`pybatsim`: the decision system."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = setting(
        "WARNING", doc="log level of insights.log"
    )
    env: EnvironmentOptions = setting(doc="actions, observation and reward")
    agent: AgentOptions = setting(doc="agent")


class LaunchOptions(Settings):
    """The whole file."""

    seed: int = setting(doc="seed of all random draws", ge=0)
    nb_resources: int | None = setting(
        None, doc="number of cores that the workload uses; null: all", unit="cores", ge=1
    )
    nb_jobs: int | None = setting(None, doc="maximum number of jobs from the trace; null: all", unit="jobs", ge=1)
    workload_file_path: str = setting("", doc="a trace in the Standard Workload Format; not needed with -cw")
    platform_file_path: str = setting(doc="a platform description (JSON), or the name of a shipped platform")
    pybatsim: ProgramOptions = setting(doc="decision system")


def read_options(path: Path | str) -> LaunchOptions:
    """Return the options in a file. Raises UserError(s) with file, key and the nearest valid name."""
    values = read_json(path, "HDeepRM's options")
    if not isinstance(values, dict):
        raise UserError("is no mapping", where=str(path), expected=f"the keys {', '.join(LaunchOptions.model_fields)}")
    options = validate(LaunchOptions, values, lambda keys: f"{path}: {'.'.join(map(str, keys))}")
    mistakes = list(_mistakes(options, str(path)))
    if mistakes:
        raise UserErrors(mistakes)
    return options


def decision_settings(options: LaunchOptions, compat: bool = False) -> DecisionSettings:
    """Return the settings of the decision system; compat: with every defect of HDeepRM."""
    env = options.pybatsim.env
    selection, void = _actions(options)
    shared = env.model_dump(exclude={"actions"})
    legacy = LegacySettings(**REFERENCE) if compat else LegacySettings()
    return DecisionSettings(selection=selection, void=void, legacy=legacy, **shared)


def _actions(options: LaunchOptions) -> tuple[tuple[str, ...], bool]:
    """Return the pairs in the order of their numbers, and whether void follows them."""
    program = options.pybatsim
    if program.agent.pair is not None:
        return (PAIR_SEPARATOR.join(program.agent.pair),), False
    if program.env.actions is None:
        return ALL_PAIRS, True
    entries = [item for entry in program.env.actions.selection for item in entry.items()]
    pairs = tuple(f"{job}{PAIR_SEPARATOR}{NO_CORE_POLICY.get(core, core)}" for job, cores in entries for core in cores)
    return pairs, program.env.actions.void


def _mistakes(options: LaunchOptions, file: str) -> Iterator[UserError]:
    agent, env = options.pybatsim.agent, options.pybatsim.env
    where = f"{file}: pybatsim.agent.policy_pair"
    if agent.type is None and agent.run is None and agent.policy_pair is None:
        expected = "CLASSIC or LEARNING; or policy_pair or run, which say which"
        yield UserError("key 'type' is missing", where=f"{file}: pybatsim.agent.type", expected=expected)
    if agent.pair is not None:
        yield from _unknown(*agent.pair, where)
        if env.actions is not None:
            expected = "policy_pair alone (version 0.2) or env.actions alone (0.3)"
            yield UserError("the actions are given twice", where=where, expected=expected)
        if agent.learning:
            remedy = "give the pairs to choose from in env.actions"
            yield UserError("a LEARNING agent has no one pair", where=where, remedy=remedy)
    if env.actions is not None:
        yield from _selection_mistakes(env.actions, f"{file}: pybatsim.env.actions.selection")
    if agent.learning:
        yield from _learning_mistakes(agent, f"{file}: pybatsim.agent")


def _selection_mistakes(actions: ActionOptions, where: str) -> Iterator[UserError]:
    seen: set[tuple[str, str]] = set()
    for number, entry in enumerate(actions.selection):
        if not any(entry.values()):
            yield UserError("names no pair", where=f"{where}.{number}", expected="{job policy: [core policy, ...]}")
        for job, cores in entry.items():
            for core in (NO_CORE_POLICY.get(core, core) for core in cores):
                yield from _unknown(job, core, f"{where}.{number}.{job}")
                if (job, core) in seen:
                    what = f"'{job}{PAIR_SEPARATOR}{core}' occurs twice"
                    yield UserError(what, where=f"{where}.{number}.{job}", expected="each pair once")
                seen.add((job, core))


def _unknown(job: str, core: str, where: str) -> Iterator[UserError]:
    if job not in ALL_JOB_POLICIES:
        yield UserError(f"unknown job policy '{job}'", where=where, remedy=did_you_mean(job, ALL_JOB_POLICIES))
    if core not in ALL_CORE_POLICIES:
        yield UserError(f"unknown core policy '{core}'", where=where, remedy=did_you_mean(core, ALL_CORE_POLICIES))


def _learning_mistakes(agent: AgentOptions, where: str) -> Iterator[UserError]:
    needed = ("run", *NEEDED_BY_LEARNING, *(("lr",) if agent.run == "train" else ()))
    for key in needed:
        if getattr(agent, key) is None:
            expected = AgentOptions.model_fields[key].description or ""
            yield UserError(f"key '{key}' is missing", where=f"{where}.{key}", expected=expected)
    if agent.run == "train" and agent.acting == "greedy":
        what = "a greedy agent sees the outcome of one action alone and cannot learn"
        yield UserError(what, where=f"{where}.acting", expected="sample, or no such key, where run is train")
