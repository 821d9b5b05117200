"""What the tests of pages share: their texts and blocks, recorded tables and ledgers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd

from schedlab.evaluation.claims import read_claims

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "docs/results"
sys.path.append(str(REPOSITORY / "docs/generate"))  # the programs that make the pages' tables


def table(name: str) -> pd.DataFrame:
    """A recorded result."""
    return pd.read_csv(RESULTS / f"{name}.csv", dtype={"by_seed": str})


def ledger(study: str) -> dict:
    """The claims of a study by their names."""
    return {claim.id: claim for claim in read_claims(REPOSITORY / "conf", study)[study].claims}


def blocks(page: str, language: str) -> list[str]:
    """The blocks of one language in the text of a page."""
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.S)
