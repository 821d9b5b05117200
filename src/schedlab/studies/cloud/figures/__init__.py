"""Figures of the cloud study."""
