"""How many episodes a policy needs: until its most probable actions bring a share of what another one gains in the end."""

from __future__ import annotations

from collections.abc import Sequence


def episodes_until(points: Sequence[tuple[float, float]], random: float, final: float, share: float = 0.95) -> float | None:
    """Return the episodes after which the objective first is `share` of the way from random actions' down to the final one; None: never.

    points: (episodes, objective), by rising episodes.
    """
    enough = random - share * (random - final)
    return next((episodes for episodes, objective in points if objective <= enough), None)
