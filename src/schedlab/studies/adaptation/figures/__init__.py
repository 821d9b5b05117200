"""Figures of the adaptation study."""
