"""Figures of the hetero study."""
