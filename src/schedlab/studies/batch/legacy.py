"""Defects of the published systems, by name: where compat/ computes each.

One more is a switch of the environment: `noop_ends` (env/settings.py).
"""

# Priorities whose wait is -1 - submit time, which turns them upside down.
LEGACY_RULES = {
    "wfp3_legacy": "schedlab.studies.batch.compat.inverted_rules:wfp3",
    "unicep_legacy": "schedlab.studies.batch.compat.inverted_rules:unicep",
}
# The dissertation's baselines, which wait until 128 jobs do.
WAITING_RULES = {
    "fcfs_waiting": "schedlab.studies.batch.compat.waiting_rules:RULE_MAKERS[fcfs]",
    "sjf_waiting": "schedlab.studies.batch.compat.waiting_rules:RULE_MAKERS[sjf]",
    "smallest_waiting": "schedlab.studies.batch.compat.waiting_rules:RULE_MAKERS[smallest]",
    "f1_waiting": "schedlab.studies.batch.compat.waiting_rules:RULE_MAKERS[f1]",
}
# Schedules of rules that give jobs without a requested time no number, for traces that were cleaned as published.
NAN_SCHEDULES = {"f2": "schedlab.studies.batch.compat.nan_order:f2_schedule"}
