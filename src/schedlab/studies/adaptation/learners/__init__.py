"""Learned growth policies: encoders, policy networks, REINFORCE, exact gradients, sequence search."""
