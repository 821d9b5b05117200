"""Figures of the batch study."""
