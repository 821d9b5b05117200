"""Batsim inside: the embedded simulator, its inputs and outputs, and the doors through which schedulers reach it or a
real Batsim.
"""
