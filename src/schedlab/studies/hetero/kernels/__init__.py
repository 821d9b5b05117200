"""Compiled kernels of the decision system; plain code of the other rooms states what they compute."""
