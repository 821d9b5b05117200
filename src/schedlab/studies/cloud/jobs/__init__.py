"""Many training jobs with limits, and searches for their allocations at equal budget."""
