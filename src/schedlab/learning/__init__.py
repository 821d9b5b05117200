"""Learning for all studies: resumable jobs and their budgets, checkpoints, policy gradients, imitation, replay
memories.
"""
