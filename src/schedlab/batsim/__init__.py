"""Batsim: the embedded simulator, its files and protocol, schedulers, and their connection to it or a real Batsim."""
