"""What the tests of pages share: their texts and blocks, records, ledgers, and which sentences a page lacks.

A sentence is written in a test with its numbers computed; the page has to have it, whatever its line breaks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from schedlab.evaluation.claims import read_claims

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "docs/results"
sys.path.append(str(REPOSITORY / "benchmarks"))  # the programs that make the pages' tables


def table(name: str) -> pd.DataFrame:
    """A recorded result."""
    return pd.read_csv(RESULTS / f"{name}.csv", dtype={"by_seed": str})


def ledger(study: str) -> dict:
    """The claims of a study by their names."""
    return {claim.id: claim for claim in read_claims(REPOSITORY / "conf", study)[study].claims}


def below(ratio: float) -> str:
    """How many percent a ratio is below 1."""
    return f"{round(100 * (1 - ratio))}"


def text_of(page: str) -> str:
    """A page, as `docs/hetero.md`, `hetero.md` or `hetero`, without its line breaks."""
    (path,) = {path.resolve() for path in (REPOSITORY / page, REPOSITORY / "docs" / page, REPOSITORY / f"docs/{page}.md") if path.is_file()}
    return re.sub(r"\s+", " ", path.read_text())


def blocks(page: str, language: str) -> list[str]:
    """The blocks of one language in the text of a page."""
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.S)


def missing(page: str, sentences: Callable[[], Iterable[str]], least: int = 1) -> list[str]:
    """Return the sentences that a page lacks; at least so many have to be looked for."""
    text, wanted = text_of(page), list(sentences())
    assert len(wanted) >= least, f"{len(wanted)} sentences of {page} are looked for"
    return [sentence for sentence in wanted if sentence not in text]
