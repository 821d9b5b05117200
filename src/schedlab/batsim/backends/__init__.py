"""Connections between a scheduler and a simulator: PyBatsim in one process, a socket, or a real Batsim."""
