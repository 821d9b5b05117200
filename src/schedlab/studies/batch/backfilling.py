"""The names of the ways to backfill, for settings, commands and the simulator alike; docs/batch.md says what each does."""

from __future__ import annotations

from typing import Literal, get_args

Backfill = Literal["none", "legacy", "easy", "conservative"]
BackfillOrder = Literal["default", "fcfs", "area", "rule"]
BACKFILLS: tuple[Backfill, ...] = get_args(Backfill)  # in the order of their numbers in compiled code
BACKFILL_ORDERS: tuple[BackfillOrder, ...] = get_args(BackfillOrder)
