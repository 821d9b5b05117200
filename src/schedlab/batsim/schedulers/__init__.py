"""Schedulers on PyBatsim's low-level API: FCFS, shortest job first, filler, EASY and conservative backfilling."""
