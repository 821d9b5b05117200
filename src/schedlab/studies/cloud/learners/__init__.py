"""REINFORCE, the multi-policy learner, the search for constant allocations, exploration, and their settings."""
