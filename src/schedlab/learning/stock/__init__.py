"""Learners of Stable-Baselines3 with resumable jobs: settings, networks, buffers, saved states."""
