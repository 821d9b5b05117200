"""The typed section of a workload (conf/workload/<name>.yaml): the source of its jobs, and the steps applied to them.

The jobs are read or drawn, then cleaned, trimmed, scaled to a load, given requested times, and, if a study needs it,
converted to a workload of Batsim.
"""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from schedlab.config.schema import Settings, section, setting
from schedlab.workloads.clean import CleaningSettings
from schedlab.workloads.estimates import EstimateSettings
from schedlab.workloads.lublin import LublinSettings
from schedlab.workloads.to_batsim import BatsimSettings
from schedlab.workloads.trim import TrimSettings


class WorkloadSettings(Settings):
    """A workload."""

    name: str = setting("workload", doc="name of the workload")
    source: Literal["lublin", "swf", "batsim"] = setting(
        "lublin", doc="source of the jobs: the Lublin-Feitelson model, a trace (swf), or a workload file of Batsim"
    )
    file: str = setting(
        "",
        doc="trace or workload file (swf, batsim): absolute, or relative to SCHEDLAB_DATA, "
        "resources/data or the working directory",
    )
    seed: int = setting(0, doc="seed of all random draws", ge=0)
    lublin: LublinSettings = section(LublinSettings, doc="settings of the model (lublin)")
    cleaning: CleaningSettings = section(CleaningSettings, doc="cleaning of a trace (swf)")
    trim: TrimSettings | None = setting(None, doc="part of the trace to use; null: all, with unchanged submit times")
    load: float | None = setting(
        None, doc="offered load, reached by scaling all arrival times after trimming; null: unchanged", gt=0
    )
    estimates: EstimateSettings | None = setting(None, doc="model of new requested times; null: unchanged")
    batsim: BatsimSettings = section(BatsimSettings, doc="conversion to a Batsim workload (lublin, swf)")

    @model_validator(mode="after")
    def _check(self) -> WorkloadSettings:
        if (self.source == "lublin") == bool(self.file):
            raise ValueError("a file for the sources swf and batsim, and none for lublin")
        if self.source == "batsim" and (self.trim or self.load or self.estimates):
            raise ValueError("no trim, load or estimates for a workload file of Batsim")
        return self
