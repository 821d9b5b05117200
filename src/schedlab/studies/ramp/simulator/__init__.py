"""Job arrivals, the look-ahead that times a job, the cluster, its statistics, and its compiled form."""
