"""Figures of the ramp study."""
