"""Batsim's files: workloads, job profiles, external events, outputs and their tables."""
