"""Batsim's output files as tables: the schedule of the jobs and the energy over time, without values that differ
between equal runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {  # column of PREFIX_jobs.csv -> column of the table
    "job_id": "job",
    "submission_time": "submit",
    "starting_time": "start",
    "finish_time": "finish",
    "requested_time": "walltime",
    "requested_number_of_resources": "hosts_requested",
    "allocated_resources": "allocation",
    "success": "success",
    "final_state": "state",
    "consumed_energy": "energy",
}


def read_jobs(prefix: Path | str) -> pd.DataFrame:
    """Return the schedule in PREFIX_jobs.csv, a row for each job in the order of submission; ties by job
    number.

    job         identifier without the workload
    submit, start, finish, walltime   s; NaN: never started, no walltime
    hosts_requested, hosts            numbers of hosts requested and allocated
    allocation  hosts as intervals ("0-3 5"), empty if the job never started
    success     whether the final state, `state`, is that of a successful job
    energy      J of its hosts while it ran; NaN without energy
    Raises UserError for a file that is missing or has other columns.
    """
    import pandas as pd

    table = _read(
        f"{prefix}_jobs.csv", tuple(COLUMNS), dtype={"job_id": str, "allocated_resources": str, "final_state": str}
    )
    table = table[list(COLUMNS)].rename(columns=COLUMNS)
    table = table.assign(
        allocation=table["allocation"].fillna("").astype(str),
        success=table["success"] == 1,
        walltime=table["walltime"].where(table["walltime"] >= 0),
        energy=table["energy"].where(table["energy"] >= 0),
    )
    table.insert(6, "hosts", [sum(last - first + 1 for first, last in intervals(text)) for text in table["allocation"]])
    numbers = ["submit", "start", "finish", "walltime", "energy"]
    table[numbers] = table[numbers].astype("float64")
    order = pd.DataFrame({"submit": table["submit"], "length": table["job"].str.len(), "job": table["job"]})
    return table.loc[order.sort_values(["submit", "length", "job"], kind="stable").index].reset_index(drop=True)


def read_energy(prefix: Path | str) -> pd.DataFrame:
    """Return the energy consumed so far by all hosts in PREFIX_consumed_energy.csv: columns time (s) and energy (J),
    with one row for each date.

    Between two rows the power is constant. Raises UserError for a file that is missing or has other columns.
    """
    table = _read(f"{prefix}_consumed_energy.csv", ("time", "energy"))[["time", "energy"]].astype("float64")
    return table.drop_duplicates("time", keep="last", ignore_index=True)


def intervals(text: str) -> list[tuple[int, int]]:
    """Return the closed intervals (first, last) of a set of hosts in Batsim's notation ("0-3 5")."""
    pairs = (part.partition("-") for part in text.split())
    return [(int(first), int(last or first)) for first, _, last in pairs]


def _read(path: str, columns: tuple[str, ...], **options: object) -> pd.DataFrame:
    import pandas as pd

    try:
        table = pd.read_csv(path, **options)
    except FileNotFoundError:
        raise UserError("no such file", where=path, expected="an output file of Batsim") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=path, expected="an output file of Batsim") from None
    if missing := [name for name in columns if name not in table.columns]:
        raise UserError(
            f"has no column {', '.join(missing)}", where=path, expected="an output file of Batsim 3.1 or later"
        )
    return table
