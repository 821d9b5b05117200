"""Recorded runs of the original, their replay, and its published settings."""
