"""Stock learners with their networks, imitation, a search over the weights of a linear priority, and rollouts."""
