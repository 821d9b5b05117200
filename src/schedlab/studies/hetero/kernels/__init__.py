"""Compiled kernels of the decision system; the plain Python of the other packages defines what they compute."""
