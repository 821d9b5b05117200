"""The typed section of a platform (conf/platform/<name>.yaml): a description or a synthetic platform, pstates, and the
form of the XML.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from schedlab.config.schema import Settings, section, setting
from schedlab.platforms.description import BANDWIDTH, LATENCY, MAX_CORES, LibraryFiles
from schedlab.platforms.hierarchy import PowerState

FREE_FLOPS = 0.001  # flop/s of a core without a job: too slow to compute anything by mistake; SimGrid rejects 0
# values of HDeepRM's generator, by the keys that they replace in mode reference (docs/reference/platforms.md)
REFERENCE: dict[str, Any] = {
    "names": "bare",
    "power_property": "watt_per_state",
    "master_routing": "None",
    "core_routes": False,
    "pstates": {"neighbour_busy_model_power": 0.15},
}


class PstateSettings(Settings):
    """The pstates of a core. Powers are shares of the core's power."""

    managed: bool = setting(
        True,
        doc="true: four pstates, which the scheduler must set; false: one pstate at full speed, for "
        "schedulers that set none",
    )
    initial: int = setting(3, doc="initial pstate; use 0 for schedulers that set no pstates", ge=0, le=3)
    oversubscribed_speed: float = setting(
        0.75, doc="share of full speed while memory bandwidth is insufficient", gt=0, le=1
    )
    busy_power: float = setting(1.0, doc="power of a core that runs a job", ge=0)
    neighbour_busy_power: float = setting(
        0.25, doc="power of a free core while another core of its processor runs a job", ge=0
    )
    neighbour_busy_model_power: float | None = setting(
        None,
        doc="`neighbour_busy_power` in the resource model; null: the same as in the simulator (published: 0.15)",
        ge=0,
    )
    idle_power: float = setting(
        0.05, doc="power of a core whose whole processor is free; with `managed: false`, of any free core", ge=0
    )

    def states(self) -> tuple[PowerState, ...]:
        """Return the pstates 0 to 3, or pstate 0 alone."""
        if not self.managed:
            return (PowerState("full_speed", 1.0, self.busy_power, self.busy_power, idle_power=self.idle_power),)
        shared, model = self.neighbour_busy_power, self.neighbour_busy_model_power
        return (
            PowerState("full_speed", 1.0, self.busy_power, self.busy_power),
            PowerState("oversubscribed", self.oversubscribed_speed, self.busy_power, self.busy_power),
            PowerState("neighbour_busy", 0.0, shared, shared if model is None else model, FREE_FLOPS),
            PowerState("idle", 0.0, self.idle_power, self.idle_power, FREE_FLOPS),
        )


class SyntheticSettings(Settings):
    """A random platform, drawn from ranges; equal bounds give equal machines."""

    seed: int = setting(0, doc="seed of all random draws", ge=0)
    clusters: int = setting(1, doc="number of clusters", ge=1, le=10_000)
    nodes: tuple[int, int] = setting((8, 8), doc="smallest and largest number of nodes of a cluster")
    kinds: int = setting(1, doc="number of kinds of node in a cluster, which alternate", ge=1, le=1000)
    processors: tuple[int, int] = setting((2, 2), doc="smallest and largest number of processors of a node")
    cores: tuple[int, int] = setting((4, 4), doc="smallest and largest number of cores of a processor")
    clock_rate: tuple[float, float] = setting((2.0, 3.0), doc="clock rate", unit="GHz")
    flops_per_cycle: tuple[int, ...] = setting(
        (4, 8, 16),
        doc="double-precision operations per cycle and core, drawn from this list",
        unit="flop",
        min_length=1,
    )
    mem_bw: tuple[float, float] = setting(
        (32.0, 64.0), doc="smallest and largest memory bandwidth of a processor", unit="GB/s"
    )
    power: tuple[float, float] = setting((8.0, 16.0), doc="smallest and largest power of a core at full load", unit="W")
    memory: tuple[float, ...] = setting(
        (2.0, 4.0, 8.0), doc="memory of a node per core, drawn from this list", unit="GB", min_length=1
    )
    bandwidth: tuple[float, float] = setting(
        (10.0, 10.0), doc="bandwidth of the nodes' links, drawn once for each cluster", unit="Gbit/s"
    )
    latency: str = setting("0us", doc="latency of the nodes' links", pattern=LATENCY)
    global_bandwidth: str = setting("10Gbps", doc="bandwidth of the clusters' links", pattern=BANDWIDTH)
    global_latency: str = setting("0us", doc="latency of the clusters' links", pattern=LATENCY)

    @model_validator(mode="after")
    def _check(self) -> SyntheticSettings:
        for name in ("nodes", "processors", "cores", "clock_rate", "mem_bw", "power", "bandwidth"):
            low, high = getattr(self, name)
            if not 0 < low <= high <= 1e6:
                raise ValueError(f"{name}: smallest and largest, above 0, rising")
        if self.clusters * max(self.nodes[1], self.kinds) > MAX_CORES:
            raise ValueError(f"clusters times nodes (or kinds): at most {MAX_CORES}")
        if min(*self.flops_per_cycle, *self.memory) <= 0:
            raise ValueError("flops_per_cycle and memory: values above 0")
        return self


class PlatformSettings(Settings):
    """A platform and its file for the simulator."""

    name: str = setting("platform", doc="name of the platform")
    file: str = setting(
        "", doc="platform description (JSON), or the name of a shipped platform; empty: use `synthetic`"
    )
    libraries: LibraryFiles = section(LibraryFiles, doc="further type libraries")
    synthetic: SyntheticSettings | None = setting(None, doc="random platform, used if `file` is empty")
    pstates: PstateSettings = section(PstateSettings, doc="speed and power of a core in each state")
    names: Literal["padded", "bare"] = setting(
        "padded", doc="host names; with bare numbers (published), Batsim orders cor_10 before cor_2"
    )
    power_property: Literal["wattage_per_state", "watt_per_state"] = setting(
        "wattage_per_state", doc="property that holds the power; SimGrid before 3.28 reads watt_per_state (published)"
    )
    master_routing: Literal["Full", "None"] = setting(
        "Full", doc="routing of the master's zone; current SimGrid refuses None (published)"
    )
    core_routes: bool = setting(True, doc="write routes between cores, which communicating jobs need; published: none")
    energy: bool = setting(True, doc="write the power of hosts into the platform")

    @model_validator(mode="after")
    def _check(self) -> PlatformSettings:
        if bool(self.file) == (self.synthetic is not None):
            raise ValueError("either file or synthetic")
        return self
