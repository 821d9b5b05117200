"""Replay of recorded runs of the original simulator, and decisions handed over in its five actions."""
