"""Compiled kernels of the decision system, with the same results as the plain Python code of the other rooms."""
