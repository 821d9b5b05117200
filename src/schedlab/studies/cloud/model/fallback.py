"""Models of the step time for cases in which the goodput model cannot be fitted: Amdahl's law, a power of the GPUs, or
the measured table itself.

See docs/reference/cloud_model.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from schedlab.studies.cloud.model.step_time import Placement

KEYS = ("nodes", "gpus", "batch")
Row = tuple[float, float, float, float, float]


@dataclass(frozen=True)
class Scaling:
    """Throughput by the number of GPUs alone. amdahl: t g / (1 + c (g - 1)) with serial share c; power: t g^c.

    throughput_one: t, samples/s on one GPU.
    """

    law: Literal["amdahl", "power"]
    throughput_one: float
    constant: float

    def times(self, at: Placement, slowdown: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Return the seconds of a pass and of an iteration on the GPUs. `slowdown` is ignored, because nodes are not
        modelled.
        """
        del slowdown
        gpus = np.asarray(at.gpus, float)
        speed = gpus / (1.0 + self.constant * (gpus - 1.0)) if self.law == "amdahl" else gpus**self.constant
        throughput = self.throughput_one * at.speed
        return at.batch / throughput, gpus * at.batch / (throughput * speed)

    def values(self) -> dict[str, Any]:
        """Return the parameters, for a file."""
        return asdict(self)


@dataclass(frozen=True)
class MeasuredSteps:
    """Measured step times, with interpolation only.

    rows  sorted: nodes, GPUs, batch size on each GPU, seconds of a step, seconds of its pass
    """

    rows: tuple[Row, ...]

    @classmethod
    def of(cls, rows: pd.DataFrame) -> MeasuredSteps:
        """Return the model of a table of logs.read_step_times; repeated measurements are averaged."""
        table = rows.assign(pass_time=rows["step_time"] - rows["sync_time"].fillna(0.0))
        means = table.groupby(list(KEYS), as_index=False)[["step_time", "pass_time"]].mean().sort_values(list(KEYS))
        return cls(tuple(map(tuple, means.to_numpy(float).tolist())))

    def times(self, at: Placement, slowdown: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Return the seconds of a pass and of an iteration on the GPUs, for an array of placements.

        On a measured placement, interpolation is linear in the batch size; on others, linear in nodes, GPUs and batch
        size. `slowdown` and the speed of the GPU kind are ignored. Raises UserError for a placement outside the
        measured range.
        """
        del slowdown
        wanted = np.stack([np.asarray(values, float) for values in (at.nodes, at.gpus, at.batch)], axis=-1)
        places, back = np.unique(wanted, axis=0, return_inverse=True)
        found = np.array([self._one(*place) for place in places])[np.ravel(back)]
        return found[:, 1], found[:, 0]

    def values(self) -> dict[str, Any]:
        """Return the measured rows, for a file."""
        return {"rows": [list(row) for row in self.rows]}

    def _one(self, nodes: float, gpus: float, batch: float) -> np.ndarray:
        """Return the seconds of a step and of its pass."""
        table = np.array(self.rows)
        same = table[(table[:, 0] == nodes) & (table[:, 1] == gpus)]
        if len(same) and same[0, 2] <= batch <= same[-1, 2]:
            return np.array([np.interp(batch, same[:, 2], same[:, column]) for column in (3, 4)])
        found = _between(table, np.array([nodes, gpus, batch]))
        if not np.isfinite(found).all():
            raise UserError(
                f"{gpus:g} GPUs on {nodes:g} nodes with a batch of {batch:g} lie beyond what was measured",
                where="job.logs",
                expected="placements and batches between measured ones",
                remedy="measure more, tighten `resource`, or take model: goodput, which extrapolates",
            )
        return found


def _between(table: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Interpolate linearly over the columns that vary in the table; NaN outside its hull, or if it does not span a
    volume.
    """
    from scipy.interpolate import LinearNDInterpolator
    from scipy.spatial import QhullError

    points, nothing = table[:, :3], np.full(2, np.nan)
    varies = np.ptp(points, axis=0) > 0
    if (points[0, ~varies] != place[~varies]).any() or not varies.any():
        return nothing
    points, place = points[:, varies], place[varies]
    if points.shape[1] == 1:
        inside = points[:, 0].min() <= place[0] <= points[:, 0].max()
        return (
            np.array([np.interp(place[0], points[:, 0], table[:, column]) for column in (3, 4)]) if inside else nothing
        )
    try:
        return LinearNDInterpolator(points, table[:, 3:], rescale=True)(place[None])[0]
    except QhullError:  # all points on a line or in a plane
        return nothing
