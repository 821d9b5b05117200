"""REINFORCE, the multi-policy learner, the search for a constant allocation, exploration, and their settings."""
