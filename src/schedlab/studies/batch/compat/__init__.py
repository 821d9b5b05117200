"""Code that reproduces the published systems' defects. In the package, only `legacy.py` refers to it."""
