"""Durations of jobs predicted from their graphs, and rollouts that decide with these predictions."""
