"""Results of batch that are recorded twice, in a table and in the ledger, are the same there."""

from __future__ import annotations

import re

import pytest
from page_parts import ledger, table

import batch_tables  # isort: skip  (page_parts adds its folder)

PUBLISHED = batch_tables.batch_published_tables


def test_rollouts_on_the_published_windows_are_those_of_the_ledger():
    found, claims = table("batch_published"), ledger("batch")
    rollouts = found[found["policy"] == "rollout"].groupby(["backfill", "trace"])
    assert set(rollouts.size()) == {5} and rollouts.ngroups == 2 * len(PUBLISHED.TRACES)
    for (backfill, trace), own in rollouts:
        protocol = "" if backfill == "none" else "-backfill"
        for kind, column, digits in (("bsld", "avg_bsld", 2), ("util", "util_to_last_start", 4)):
            claim = claims[f"{kind}-{PUBLISHED.LEDGER[trace]}{protocol}-rl"]
            assert claim.ours_repaired == pytest.approx(own[column].mean(), abs=0.51 * 10**-digits), claim.id


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
