"""The public names of the published program, for its users; a thin layer over the code that the pipeline uses.

For example `from schedlab.studies.cloud.slamorl.api import CloudResourceOptimizer`. docs/reference/cloud_api.md
describes each name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import model_validator

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import atomic_path
from schedlab.config.schema import Settings, setting
from schedlab.studies.cloud.live.machine import MachineLimits as SLAConfig
from schedlab.studies.cloud.live.machine import MachineResources as ResourceConfig
from schedlab.studies.cloud.live.machine import machine_limits, machine_resources
from schedlab.studies.cloud.live.run import LiveRequest, LiveRun, new_folder, run_script, script_environment
from schedlab.studies.cloud.live.script import ScriptFacts, script_facts
from schedlab.studies.cloud.model.allocation import (
    Allocation,
    action_of,
    changes,
    describe,
    first_allocation,
    moved,
    require_action,
)
from schedlab.studies.cloud.model.analyser import OfflineDataAnalyzer
from schedlab.studies.cloud.model.cost import ResourceCostCalculator, check_batch, diagnose_idle_gpus
from schedlab.studies.cloud.optimize.command import write_all
from schedlab.studies.cloud.optimize.flow import optimize
from schedlab.studies.cloud.optimize.report import report_values
from schedlab.studies.cloud.optimize.settings import checked_settings, length_of
from schedlab.studies.cloud.optimize.tables import runs_so_far
from schedlab.studies.cloud.replay.episode_tables import step_tables, step_values
from schedlab.studies.cloud.replay.reward import PREFERENCES
from schedlab.studies.cloud.replay.sla import ITEMS, Verdict, check_learning, check_table, is_given, require_record
from schedlab.studies.cloud.replay.state import CloudEnvironmentState, significant_change
from schedlab.studies.cloud.rules.suggestions import Option, options
from schedlab.studies.cloud.slamorl.monitor import CSVMonitor
from schedlab.studies.cloud.slamorl.published import step as published_step

if TYPE_CHECKING:
    import pandas as pd

    from schedlab.studies.cloud.optimize.flow import Optimization

__all__ = [
    "CSVMonitor",
    "CloudEnvironment",
    "CloudEnvironmentState",
    "CloudResourceOptimizer",
    "MultiObjectiveConfig",
    "OfflineDataAnalyzer",
    "RLMetricsTracker",
    "ResourceAction",
    "ResourceConfig",
    "ResourceCostCalculator",
    "ResourceManager",
    "SLAConfig",
    "TrainingModuleManager",
    "check_batch",
    "check_learning",
    "check_table",
    "diagnose_idle_gpus",
    "machine_limits",
    "machine_resources",
]


COMPONENTS = ("cost", "performance", "efficiency", "sla")  # of the published reward


class MultiObjectiveConfig(Settings):
    """Any number of preferences by name, each with weights of cost, time and resource."""

    preferences: dict[str, tuple[float, float, float]] = setting(
        dict(PREFERENCES), doc="weights of cost, time and resource", min_length=1
    )

    @model_validator(mode="after")
    def _weights(self) -> MultiObjectiveConfig:
        for name, weights in self.preferences.items():
            if min(weights) < 0 or abs(sum(weights) - 1) > 1e-6:
                raise ValueError(f"weights of 0 or more with the sum 1; those of '{name}' are {weights}")
        return self

    @property
    def policies(self) -> int:
        """Number of policies: one for each preference."""
        return len(self.preferences)

    def weights(self, name: str) -> dict[str, float]:
        """Return the weights of a preference by objective. Raises UserError for an unknown name."""
        if name not in self.preferences:
            raise UserError(
                f"there is no preference {name!r}", where="preferences", remedy=did_you_mean(name, self.preferences)
            )
        return dict(zip(("cost", "time", "resource"), self.preferences[name], strict=True))

    def text(self, name: str) -> str:
        """Return a preference as text with its weights of cost, time and resource, which learners, Gymnasium
        environments and CloudResourceOptimizer accept.

        CloudEnvironment does not accept it: its reward is the published one, which has weights only for the four names.
        """
        self.weights(name)
        return ":".join(map(repr, self.preferences[name]))

    def index(self, name: str) -> int:
        """Return the number of the policy of a preference, from 0."""
        self.weights(name)
        return list(self.preferences).index(name)


@dataclass(frozen=True)
class ResourceAction:
    """One of the 27 actions, by its number. Raises UserError for another number."""

    number: int

    def __post_init__(self) -> None:
        require_action(self.number)

    @classmethod
    def of(cls, gpus: int = 0, cores: int = 0, memory: int = 0) -> ResourceAction:
        """Return the action that changes GPUs, cores and memory by these steps, each -1, 0 or 1."""
        if not {gpus, cores, memory} <= {-1, 0, 1}:
            raise UserError(f"steps {gpus}, {cores}, {memory}", where="action", expected="-1, 0 or 1 of each")
        return cls(action_of((gpus, cores, memory)))

    @property
    def changes(self) -> tuple[int, int, int]:
        """The steps of GPUs, cores and memory; a step is 1 GPU, 4 cores or 8 GB."""
        return changes(self.number)

    @property
    def description(self) -> str:
        """The action in words."""
        return describe(self.number)

    def apply(self, allocation: Allocation, limits: ResourceConfig) -> Allocation:
        """Return the allocation after the action, within the limits."""
        return moved(allocation, self.number, limits)


class ResourceManager:
    """The allocation of a job, and the log of its changes (`adjustments`)."""

    def __init__(self, limits: ResourceConfig | None = None, start: Allocation | None = None) -> None:
        self.limits = limits or machine_resources()
        self.start = start or first_allocation(self.limits)
        self.reset()

    def reset(self) -> None:
        """Return to the start allocation and empty the log."""
        self.allocation = self.start
        self.adjustments: list[dict[str, Any]] = []

    def adjust(self, action: int, epoch: float = 0) -> bool:
        """Take an action, log it with the epoch, and return whether it changed the allocation."""
        action = require_action(action)
        before, self.allocation = self.allocation, moved(self.allocation, action, self.limits)
        held = {"before": before._asdict(), "after": self.allocation._asdict()}
        self.adjustments.append({"epoch": epoch, "action": action, "action_description": describe(action), **held})
        return self.allocation != before

    @property
    def hourly_cost(self) -> float:
        """Price of the current allocation, $/h."""
        return self.limits.hourly_price(*self.allocation)


class CloudEnvironment:
    """A job as the records of its log describe it: whether a decision is due, the published reward, and a log of
    changes of the allocation.

    The caller passes the records (`observe`). This environment does not compute the consequences of an action; they are
    seen in later records. To learn a policy, use schedlab/CloudReplay-v0, which simulates the job, or
    schedlab/CloudLive-v0, which runs it. Raises UserError for a preference other than the four names.
    """

    def __init__(
        self, resource: ResourceConfig | None = None, sla: SLAConfig | None = None, preference: str = "balanced"
    ) -> None:
        MultiObjectiveConfig().weights(preference)
        self.resources, self.sla, self.preference = ResourceManager(resource), sla or machine_limits(), preference
        self.reset()

    def reset(self) -> np.ndarray:
        """Forget records and adjustments, return to the start allocation, and return the first state (float32, 26)."""
        self.resources.reset()
        self.history: list[dict[str, Any]] = []
        self._decided: np.ndarray | None = None
        return self.state()

    @property
    def adjustments(self) -> list[dict[str, Any]]:
        """The log of adjustments: epoch, action and its description, the allocation before and after, reward."""
        return self.resources.adjustments

    def observe(self, record: Mapping[str, Any]) -> np.ndarray:
        """Add a record of the job's log and return the state. Raises UserError if a number is text."""
        self.history.append(require_record(record, "record"))
        return self.state()

    def state(self) -> np.ndarray:
        """Return the state, float32 of shape (26,)."""
        return self._state().vector()

    def verdicts(self) -> dict[str, Verdict]:
        """Return for each service level whether it is met, and the severity of its violation."""
        return dict(self._state().status)

    def _state(self) -> CloudEnvironmentState:
        state = CloudEnvironmentState(self.resources.limits, self.sla)
        state.gpus_apply = self.resources.limits.gpu_count_max > 0
        for record in self.history:
            state.update({**record, **self.resources.allocation._asdict()})
        return state

    def decision_due(self) -> bool:
        """Return whether an action is due: after the first record, and then whenever a watched component of the state
        has changed by more than 0.1 since the last action.
        """
        if not self.history:
            return False
        return self._decided is None or significant_change(self._decided, self.state())

    def step(self, action: int) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        """Take an action; return the state, the published reward, whether the episode is over, and a dictionary with
        the parts of the reward (`components`) and whether the allocation changed (`changed`).
        """
        limits = self.resources.limits, self.sla
        taken = published_step(
            require_action(action), self.resources.allocation, self.history, self.preference, limits, compat=False
        )
        epoch = self.history[-1].get("epoch", 0) if self.history else 0
        self.resources.adjust(action, epoch)
        self.resources.allocation = taken.allocation
        self.adjustments[-1] |= {"after": taken.allocation._asdict(), "reward": taken.reward.total}
        self._decided = self.state()
        return self._decided, taken.reward.total, taken.done, {"components": taken.reward, "changed": taken.changed}

    def options(self) -> list[Option]:
        """Return the four options after the latest record. Raises UserError before the first record."""
        if not self.history:
            raise UserError("nothing was observed yet", where="options", expected="a record")
        return options(self.history[-1], self.resources.allocation, self.resources.limits, self.sla.throughput_min)


class RLMetricsTracker:
    """Collects steps and writes the tables of a live run. It numbers episodes and steps itself."""

    def __init__(self, policy: str = "balanced") -> None:
        self.policy, self.rows = policy, list[dict[str, Any]]()
        self.episode = self.step = 0

    def begin_episode(self) -> None:
        """Begin the next episode, unless this one has no step yet."""
        self.episode, self.step = self.episode + (self.step > 0), 0

    def track(
        self,
        record: Mapping[str, Any],
        action: int,
        reward: float,
        verdicts: Mapping[str, Verdict],
        components: Mapping[str, float] | None = None,
        critic_reset: bool = False,
    ) -> None:
        """Add a step.

        record      a record of the log with epoch and allocation
        verdicts    service level -> verdict; levels without a verdict have empty cells
        components  parts of the reward: cost, performance, efficiency, sla
        Raises UserError for a record without epoch or allocation, and for unknown names.
        """
        record = require_record(record, "track")
        if missing := {"epoch", *Allocation._fields} - set(record):
            raise UserError(f"the record has no '{min(missing)}'", where="track", expected="epoch and allocation")
        for what, names, usual in (("service level", verdicts, ITEMS), ("component", components or {}, COMPONENTS)):
            for name in names:
                if name not in usual:
                    raise UserError(f"there is no {what} {name!r}", where="track", remedy=did_you_mean(name, usual))
        for name in Allocation._fields:
            if (
                isinstance(record[name], str)
                or not is_given(record[name])
                or (name == "memory_gb" and record[name] <= 0)
            ):
                expected = "more than 0 GB, of which use is a share" if name == "memory_gb" else "a number"
                raise UserError(f"'{name}' is {record[name]!r}", where="track", expected=expected)
        parts = {f"reward_{name}": float((components or {}).get(name, 0.0)) for name in COMPONENTS}
        values = step_values(record, require_action(action), {"reward": float(reward), **parts}, verdicts)
        key = {"episode": self.episode, "step": self.step, "epoch": record["epoch"]}
        self.rows.append({**key, **values, "critic_reset": critic_reset})
        self.step += 1

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables by name. Raises UserError before the first step."""
        if not self.rows:
            raise UserError("no step was tracked", where="tables", expected="at least one")
        return step_tables(self.rows, self.policy)

    def write(self, folder: Path | str) -> None:
        """Write the tables as CSV files."""
        for name, table in self.tables().items():
            with atomic_path(Path(folder, f"{name}.csv")) as temporary:
                table.to_csv(temporary, index=False)


class TrainingModuleManager:
    """A user's training script: facts in its text, and its runs. Raises UserError if it is not Python."""

    def __init__(self, script: Path | str, folder: Path | str, limits: ResourceConfig | None = None) -> None:
        self.script, self.folder, self.limits = Path(script), Path(folder), limits or machine_resources()
        self.facts: ScriptFacts = script_facts(self.script)
        self.runs: list[LiveRun] = []

    def environment(self, allocation: Allocation, epochs: int = 1, batch: int | None = None) -> dict[str, str]:
        """Return the environment variables of a run on an allocation."""
        return script_environment(
            LiveRequest(self.script, allocation, epochs, batch, prices=self.limits), self.folder.resolve()
        )

    def run(
        self,
        allocation: Allocation | None = None,
        epochs: int = 1,
        batch: int | None = None,
        seed: int = 0,
        **more: Any,
    ) -> LiveRun:
        """Run the script on an allocation (by default all of the machine) and return the run. more: further fields of
        LiveRequest. Raises ScriptFailed.
        """
        request = LiveRequest(self.script, allocation or self.limits.most, epochs, batch, seed, self.limits)
        self.runs.append(run_script(replace(request, **more), new_folder(self.folder) / "run"))
        return self.runs[-1]

    def summary(self) -> dict[str, Any]:
        """Return the last row of the log of the latest run. Raises UserError if there is no run with a log."""
        if not self.runs or not len(self.runs[-1].table):
            raise UserError("there is no finished run", where=str(self.script), expected="a call of `run` before")
        return self.runs[-1].summary


class CloudResourceOptimizer:
    """The whole flow of `schedlab cloud optimize` for one script: measure, fit the model, fix the limits, plan or
    learn, run the result, and report.

    settings: keys of a configuration file of `schedlab cloud optimize`. Raises UserErrors for wrong ones.
    """

    def __init__(self, output_dir: Path | str, analyser: OfflineDataAnalyzer | None = None, **settings: Any) -> None:
        self.output_dir, self.analyser = Path(output_dir), analyser or OfflineDataAnalyzer()
        self.settings = checked_settings(settings)
        self.found: Optimization | None = None

    def optimize(self, script: Path | str, dataset: Path | str | None = None) -> dict[str, Any]:
        """Optimise the training of a script, write report and tables to `output_dir`, and return the report. Raises
        ScriptFailed.
        """
        length_of(self.settings)
        runs_so_far(self.output_dir)  # reports a damaged file before anything runs
        path, data = Path(script), Path(dataset) if dataset is not None else None
        self.found = optimize(path, self.settings, data, self.analyser, new_folder(self.output_dir / "work"))
        write_all(self.found, self.output_dir, self.output_dir / "logs", self.analyser)
        return report_values(self.found)
