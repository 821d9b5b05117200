"""Reading the log of a training while it runs, and adding decisions to it (docs/reference/cloud_api.md)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.config.readers import read_text
from schedlab.studies.cloud.model.logs import TABLE, parse_table, read_table, require_columns

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "rl_"
EXTENDED = (
    *("rl_policy_used", "rl_action_taken", "rl_reward", "rl_sla_time_met", "rl_sla_cost_met", "rl_sla_resource_met"),
    "rl_critic_reset",
)


class CSVMonitor:
    """Watches a CSV file for changes.

    update_interval  seconds between two checks in `wait`
    """

    def __init__(self, path: Path | str, update_interval: float = 1.0) -> None:
        if not (isinstance(update_interval, int | float) and update_interval > 0):
            raise UserError(f"{update_interval!r}", where="update_interval", expected="seconds above 0")
        self.path, self.update_interval = Path(path), update_interval
        self._seen: tuple[int, int] | None = None
        self._rows = 0

    def load(self) -> pd.DataFrame:
        """Return the whole table. Raises UserError if the file is missing or is not a table."""
        return read_table(self.path)

    def changed(self) -> bool:
        """Return whether the file has changed since the last call. A missing file counts as unchanged."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return False
        mark = stat.st_mtime_ns, stat.st_size
        changed, self._seen = mark != self._seen, mark
        return changed

    def new_rows(self) -> pd.DataFrame | None:
        """Return the rows that were added since the last call, or None if there are none. If the file has become
        shorter, all rows are returned.

        Only complete lines are read, because the numbers of an incomplete line would be wrong.
        """
        if not self.changed():
            return None
        try:
            text = read_text(self.path, TABLE)
            table = parse_table(text[: text.rfind("\n") + 1], self.path)
        except UserError:
            return None  # a header alone, or nothing yet
        start, self._rows = (self._rows if self._rows <= len(table) else 0), len(table)
        return table.iloc[start:] if len(table) > start else None

    def wait(self, timeout: float) -> pd.DataFrame | None:
        """Return new rows as soon as there are some, checked every `update_interval` seconds; None after `timeout`
        seconds.
        """
        until = time.monotonic() + timeout
        while (rows := self.new_rows()) is None:
            left = until - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(self.update_interval, left))
        return rows

    def append(self, epoch: float, metrics: Mapping[str, Any]) -> None:
        """Fill in the additional columns (`rl_...`) of the row of an epoch. The prefix `rl_` may be left out; unknown
        keys are ignored. Raises UserError if no row has this epoch.

        Call it only for a finished log. The file is replaced; a script that still has the old one open would continue
        to write into that.
        """
        import pandas as pd

        table = self.load()
        for name in EXTENDED:
            table[name] = (
                table[name].astype(object) if name in table.columns else pd.Series([None] * len(table), dtype=object)
            )
        if "epoch" not in table.columns or not (table["epoch"] == epoch).any():
            raise UserError(f"no row is of epoch {epoch:g}", where=str(self.path), expected="an epoch of the log")
        for key, value in metrics.items():
            name = key if key.startswith(PREFIX) else PREFIX + key
            if name in EXTENDED:
                table.loc[table["epoch"] == epoch, name] = value
        self._write(table, self.path)

    def extended(self, decisions: pd.DataFrame) -> pd.DataFrame:
        """Return the log with the decisions joined to its epochs, and write it to `<stem>_rl_extended.csv` in the same
        folder.

        Raises UserError if the decisions contain an epoch twice, which would multiply rows, or if decisions or log have
        no column `epoch`.
        """
        require_columns(decisions, ["epoch"], Path("decisions"))
        if decisions["epoch"].duplicated().any():
            raise UserError(
                "an epoch stands there twice", where="decisions", expected="one row an epoch, as of one episode"
            )
        table = self.load()
        require_columns(table, ["epoch"], self.path)
        joined = table.drop(columns=[name for name in table.columns if name != "epoch" and name in decisions.columns])
        joined = joined.merge(decisions, on="epoch", how="left")
        self._write(joined, self.path.with_name(f"{self.path.stem}_rl_extended.csv"))
        return joined

    def _write(self, table: pd.DataFrame, path: Path) -> None:
        with atomic_path(path) as temporary:
            table.to_csv(temporary, index=False)
