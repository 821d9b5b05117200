"""Replayed training jobs: progress, allocation moves, service levels, rewards, environments."""
