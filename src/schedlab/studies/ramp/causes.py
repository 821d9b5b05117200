"""Why jobs are blocked, by the names under which the published system logs it. Source: specification of the ramp study, section 11."""

REJECTED = "rejected_by_agent"
NO_PARTITION, NO_PLACEMENT, NO_CHANNEL = "op_partition", "op_placement", "dep_placement"
PARTS = (NO_PARTITION, NO_PLACEMENT, "op_schedule", NO_CHANNEL, "dep_schedule")  # of an action, the first that leaves a job out
TOO_SLOW = "max_acceptable_jct_exceeded"
QUEUE_FULL = "queue_full"
CUT_OFF = "simulation_ended_while_running"
