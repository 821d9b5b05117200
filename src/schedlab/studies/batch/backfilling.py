"""Policies that bring their own backfilling: EASY with each order of backfilling, EASY++, learned predictions,
conservative.

They are rivals in one pool in scenarios whose backfilling is one of the textbook's. Sources: Lifka, "The ANL/IBM SP
scheduling system", JSSPP 1995 (EASY); Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions
rather than user runtime estimates", IEEE TPDS 18(6), 2007 (EASY-SJBF, EASY++); Gaussier,
Glesser, Reis, Trystram, "Improving backfilling by using machine learning to predict running times", SC15
(easy_learned); Mu'alem and Feitelson, IEEE TPDS 12(6), 2001 (conservative).
"""

from __future__ import annotations

from dataclasses import dataclass

from schedlab.config.errors import UserError
from schedlab.studies.batch.legacy import LEGACY_RULES
from schedlab.studies.batch.rules import RULES
from schedlab.studies.batch.scenario import BACKFILL_TERMS, TEXTBOOK, Backfill, BackfillOrder

ORDERS: tuple[BackfillOrder, ...] = ("fcfs", "sjf", "area")  # of backfilling, where it is not that of the rule
_SAME = {"fcfs": "fcfs", "sjf": "sjf", "smallest_area": "area"}  # rule -> the order of backfilling that it has anyway


@dataclass(frozen=True)
class OwnBackfilling:
    """A rule for the head of the queue, with the backfilling that replaces the scenario's."""

    rule: str
    backfill: Backfill
    order: BackfillOrder = "default"


BACKFILLING_POLICIES: dict[str, OwnBackfilling] = {
    f"{rule}_backfill_{order}": OwnBackfilling(rule, "easy", order)
    for rule in RULES
    if rule not in LEGACY_RULES
    for order in ORDERS
    if _SAME.get(rule) != order
}
BACKFILLING_POLICIES |= {
    "easy_plus_plus": OwnBackfilling("fcfs", "easy_predicted"),
    "easy_learned": OwnBackfilling("fcfs", "easy_learned"),
    "conservative": OwnBackfilling("fcfs", "conservative"),
}
EASY_SJBF = "fcfs_backfill_sjf"  # as Tsafrir et al. call it
ORDERED = tuple(name for name, own in BACKFILLING_POLICIES.items() if own.order != "default")
PREDICTING = ("easy_plus_plus", "easy_learned")  # those that predict run times


def require_backfilling(name: str, backfill: Backfill, where: str) -> None:
    """Raise UserError for a policy with its own backfilling where the chosen job blocks, or the published one holds."""
    if name in BACKFILLING_POLICIES and backfill not in TEXTBOOK:
        what = f"'{name}' backfills by itself, but the backfilling here is '{backfill}'"
        raise UserError(what, where=where, expected=f"backfill {', '.join(TEXTBOOK)}, or another policy")


TERMS = {
    name: f"EASY, the head of the queue by {own.rule}, jobs backfilled {BACKFILL_TERMS[own.order]}"
    for name, own in BACKFILLING_POLICIES.items()
    if own.backfill == "easy"
}
TERMS |= {
    "easy_plus_plus": "EASY++: EASY with run times predicted from the user's last two jobs, the shortest backfilled "
    "first",
    "easy_learned": "EASY++ with run times predicted by a regression that is renewed when jobs end (Gaussier et al.)",
    "conservative": "conservative backfilling in order of submission: every waiting job has a reservation",
}
