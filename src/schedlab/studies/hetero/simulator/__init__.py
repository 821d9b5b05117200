"""Cores and memory bandwidth, the job queue, core policies, and the decisions of one simulation."""
