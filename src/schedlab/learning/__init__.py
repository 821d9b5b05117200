"""Learning for all studies: the resumable job and its budget, checkpoints, policy gradients, imitation, memory."""
