"""A log from its file to what is kept of it, block by block: read, cleaned, trimmed, with the bytes that it would have
all at once.
"""

from __future__ import annotations

import math
from pathlib import Path

from schedlab.workloads.clean import Cleaner, CleaningReport, CleaningSettings
from schedlab.workloads.swf import JobColumns, read_blocks, read_header
from schedlab.workloads.trace import Trace
from schedlab.workloads.trim import TrimSettings, trim, within


def read_log(
    path: Path | str, cleaning: CleaningSettings, piece: TrimSettings | None = None
) -> tuple[Trace, CleaningReport]:
    """Return the cleaned trace in a file, or a piece of it, and the report on the cleaning of all its jobs. Raises
    UserError.

    The same as `clean` and `trim` after `read_swf`. Jobs that a rule drops are let go with their block, and so are
    those of other users and times than the piece's; of a piece of so many first jobs, at most twice as many are held. A
    piece chosen by its load, and submit times counted from the first job of the whole (cleaning's `shift`), need all of
    it. The header is read before: what it says of the machine holds for all jobs, wherever it stands.
    """
    cleaner = Cleaner(read_header(path), cleaning)
    early = TrimSettings() if piece is None or cleaning.shift else piece
    most = math.inf if early.count is None or early.load is not None else early.first + early.count
    held = JobColumns()
    held.add(
        cleaner.clean(held.frame())
    )  # so that a file without jobs is told, too, that the size of the machine is missing
    for jobs in read_blocks(path):
        held.add(within(cleaner.clean(jobs), early))
        if held.count > 2 * most:
            first = cleaner.ordered(held.frame()).iloc[: int(most)]
            held = JobColumns()
            held.add(first)
    trace, report = cleaner.finish(held.frame())
    return (trace if piece is None else trim(trace, piece, report.kept)), report
