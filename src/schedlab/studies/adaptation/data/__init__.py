"""Data sets that the networks are trained on, and readers of their files."""
