"""Learning that knows no study: the resumable job and its budget, checkpoints, policy gradients, imitation, memory."""
