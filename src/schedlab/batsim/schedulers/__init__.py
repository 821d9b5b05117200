"""Schedulers on PyBatsim's low-level API: first-come first-served, shortest job first, filling, EASY and conservative
backfilling.
"""
