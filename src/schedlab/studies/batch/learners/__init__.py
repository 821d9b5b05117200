"""Stock learners with their networks, imitation, search over weights, and rollouts."""
