"""REINFORCE, the multi-policy learner, the search for constants, exploration, and their settings."""
