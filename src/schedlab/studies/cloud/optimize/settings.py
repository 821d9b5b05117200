"""The settings of `schedlab cloud optimize`: those of a YAML or JSON file, replaced by options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.readers import read_json, read_yaml
from schedlab.config.schema import Settings, merged, section, setting, validate
from schedlab.config.settings import LONGEST
from schedlab.studies.cloud.learners.settings import LEARNER_SETTINGS
from schedlab.studies.cloud.live.machine import LEAST, MachineResources, machine_resources
from schedlab.studies.cloud.live.process import DISK_GB
from schedlab.studies.cloud.model.allocation import PRICES, ResourceConfig
from schedlab.studies.cloud.scenario import Preference

PLAN = "plan"  # value of `learner` for planning without a learner
OPTIONS = {"batch": "batch_size", "gpus_per_node": "gpus-per-node"}  # setting -> option, if their names differ


class LimitSettings(Settings):
    """Service levels; null: forecast from logs or the baseline, or the default."""

    time_max: float | None = setting(None, doc="maximum training time", unit="s", ge=0)
    cost_max: float | None = setting(None, doc="maximum cost", unit="$", ge=0)
    throughput_min: float | None = setting(None, doc="minimum throughput", unit="samples/s", ge=0)
    memory_max: float | None = setting(
        None, doc="maximum memory used; null: half of the machine's memory", unit="GB", ge=0
    )
    gpu_util_min: float | None = setting(None, doc="minimum mean utilisation of the GPUs", unit="%", ge=0, le=100)
    cpu_util_min: float | None = setting(None, doc="minimum utilisation of the cores", unit="%", ge=0, le=100)


class MachineSettings(Settings):
    """Limits of the allocation (null: those of this machine) and prices."""

    gpu_count_max: int | None = setting(None, doc="maximum number of GPUs", unit="GPUs", ge=0)
    gpu_count_min: int | None = setting(None, doc="minimum number of GPUs", unit="GPUs", ge=0)
    cpu_count_max: int | None = setting(None, doc="maximum number of CPU cores", unit="cores", ge=1)
    cpu_count_min: int | None = setting(None, doc="minimum number of CPU cores", unit="cores", ge=1)
    memory_max: float | None = setting(None, doc="maximum memory", unit="GB", gt=0)
    memory_min: float | None = setting(None, doc="minimum memory", unit="GB", gt=0)
    cost_per_gpu_hour: float = setting(PRICES["cost_per_gpu_hour"], doc="price of a GPU", unit="$/h", ge=0)
    cost_per_cpu_hour: float = setting(PRICES["cost_per_cpu_hour"], doc="price of a CPU core", unit="$/h", ge=0)
    cost_per_gb_hour: float = setting(PRICES["cost_per_gb_hour"], doc="price of a gigabyte of memory", unit="$/h", ge=0)

    def limits(self) -> ResourceConfig:
        """Return the limits within this machine; a minimum that is not given is at most the maximum. Raises
        UserErrors.
        """
        here = machine_resources(self.cost_per_gpu_hour, self.cost_per_cpu_hour, self.cost_per_gb_hour)
        given = self.model_dump(exclude_none=True)
        for key in ("gpu_count_max", "cpu_count_max", "memory_max"):
            if given.get(key, 0) > (most := getattr(here, key)):
                expected = f"at most {most:g} on this machine"
                raise UserError(f"'{key}' is {given[key]:g}", where="resource", expected=expected)
        values = {**here.model_dump(exclude=set(LEAST)), **given}
        return validate(MachineResources, values, lambda path: f"resource: {'.'.join(map(str, path))}")


class LearnSettings(Settings):
    """What decides during the run: the plan or a learner."""

    learner: str = setting(
        PLAN, doc="`plan`: the fitted model, with new planning after each interval; else a learner of the study"
    )
    episodes: int = setting(3200, doc="training episodes on the performance model", ge=64, le=LONGEST)
    params: dict[str, Any] = setting({}, doc="settings of the learner")


class OptimizeSettings(Settings):
    """The settings of `schedlab cloud optimize`."""

    preference: Preference = setting(
        "balanced", doc="preference: a name, or weights of cost, time and resource as in `0.1:0.1:0.8`"
    )
    epochs: int | None = setting(
        None, doc="length of the training; required here or as `--epochs`", unit="epochs", ge=1
    )
    interval: int | None = setting(
        None, doc="epochs between decisions; null: a quarter of the training", unit="epochs", ge=1
    )
    batch: int | None = setting(None, doc="batch size; null: the script's default", unit="samples", ge=1)
    batching: Literal["fixed_global", "per_gpu"] = setting(
        "per_gpu", doc="what stays constant when GPUs are added: the total batch, or the batch per GPU"
    )
    baseline_samples: int = setting(4, doc="number of short runs on the whole machine", ge=1, le=100)
    baseline_ratio: float = setting(
        0.2, doc="length of the short runs, as a share of the training", unit="fraction", gt=0, le=1
    )
    skip_baseline: bool = setting(
        False, doc="do not measure a baseline; use the model's estimate for the whole machine"
    )
    measure_again: bool = setting(
        False, doc="repeat short runs of the same script, data and machine that an earlier call has measured"
    )
    probability: float = setting(
        0.9,
        doc="required probability, by the model, of keeping the limits on time and cost",
        unit="fraction",
        gt=0,
        le=1,
    )
    max_spend: float | None = setting(
        None, doc="maximum cost of measuring and training together; null: no maximum", unit="$", ge=0
    )
    time_limit: float = setting(3600.0, doc="wall-clock limit of one run of the script", unit="s", gt=0)
    disk_limit: float = setting(
        DISK_GB, doc="limit on the files that one run of the script writes to its folder", unit="GB", gt=0
    )
    gpus_per_node: int = setting(8, doc="GPUs per node", ge=1)
    seed: int = setting(0, doc="seed of the script and the learner", ge=0)
    sla: LimitSettings = section(LimitSettings, doc="service levels")
    resource: MachineSettings = section(MachineSettings, doc="limits of the allocation")
    rl: LearnSettings = section(LearnSettings, doc="learning")


def read_settings(config: Path | None, options: Mapping[str, Any]) -> OptimizeSettings:
    """Return the settings of a file (YAML or JSON), replaced by the given options. Raises UserErrors."""
    values: dict[str, Any] = {}
    if config is not None:
        if config.suffix.lower() not in (".yaml", ".yml", ".json"):
            expected = "a name that ends in .yaml, .yml or .json"
            raise UserError("the format of the file is unknown", where=str(config), expected=expected)
        values = read_section(config, OptimizeSettings)
    return checked_settings(merged(values, options))


def read_section(file: Path, kind: type[Settings]) -> dict[str, Any]:
    """Return the checked values of a file: JSON if its name says so, else YAML. Raises UserErrors."""
    values = read_json(file, "settings") if file.suffix.lower() == ".json" else read_yaml(file)
    if not isinstance(values, dict):
        raise UserError("the file holds no mapping", where=str(file), expected="keys and values")
    validate(kind, values, lambda path: ": ".join([str(file), *[".".join(map(str, path))] * bool(path)]))
    return values


def length_of(settings: OptimizeSettings) -> int:
    """Return the length of the training, epochs. Raises UserError if it is not given."""
    if settings.epochs is None:
        what, remedy = "the length of the training is not given", "give --epochs N, or epochs in the file of --config"
        raise UserError(what, where="--epochs", expected="a whole number of epochs", remedy=remedy)
    return settings.epochs


def checked_settings(values: Mapping[str, Any]) -> OptimizeSettings:
    """Return the typed settings after checking those of the learner. Raises UserErrors, which name options."""
    found = validate(
        OptimizeSettings, values, lambda path: f"--{OPTIONS.get(path[-1], path[-1])}" if path else "command line"
    )
    if found.rl.learner == PLAN:
        if found.rl.params:
            what, remedy = "the plan has no settings", "name a learner in rl.learner"
            raise UserError(what, where=f"rl.params.{min(found.rl.params)}", remedy=remedy)
        return found
    if found.rl.learner not in LEARNER_SETTINGS:
        remedy = did_you_mean(found.rl.learner, (PLAN, *LEARNER_SETTINGS))
        raise UserError(f"there is no learner '{found.rl.learner}'", where="rl.learner", remedy=remedy)
    validate(LEARNER_SETTINGS[found.rl.learner], found.rl.params, lambda path: f"rl.params.{'.'.join(map(str, path))}")
    return found
