"""What the pages of batch say of the ledger holds there."""

from __future__ import annotations

import re

from page_parts import ledger


def test_f1_as_it_is_meant_is_below_every_learned_policy_of_the_tests():
    claims = ledger("batch").values()
    for trace in ("hpc2n", "hpc2n-backfill", "sdsc-sp2"):
        learned = [
            claim.published
            for claim in claims
            if re.fullmatch(rf"(test-{trace}-ppo(-[ab])?|{trace}-ppo-[ab]-\w+)", claim.id)
        ]
        assert ledger("batch")[f"test-{trace}-f1"].ours_repaired < min(learned)
        medians = [claim.published for claim in claims if claim.id.startswith(f"median-{trace}-ppo")]
        assert len(medians) == len(learned) and ledger("batch")[f"median-{trace}-f1"].ours_repaired < min(medians)
