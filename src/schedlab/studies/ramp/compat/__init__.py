"""Replay of recorded runs of the original simulator, and decisions in the form of its five actions."""
