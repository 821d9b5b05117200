"""Queues of rigid jobs: free cores, blocking, EASY and conservative backfilling, episodes, rollouts."""
