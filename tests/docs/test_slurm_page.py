"""The table of grouped jobs in docs/slurm.md is that of the profile."""

from __future__ import annotations

import re

import yaml
from page_sentences import REPOSITORY


def test_the_page_tells_how_many_jobs_of_a_group_the_profile_puts_together():
    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/config.yaml").read_text())
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (\d+) \|$", (REPOSITORY / "docs/slurm.md").read_text(), flags=re.M)
    assert [f"{group}={together}" for group, together in rows] == profile["group-components"]
