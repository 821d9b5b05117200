"""Code that reproduces the published systems' defects. Only `legacy.py` refers to it."""
