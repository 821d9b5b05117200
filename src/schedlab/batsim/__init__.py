"""Batsim: the embedded simulator, its files and protocol, schedulers, and how they reach it or a real Batsim."""
