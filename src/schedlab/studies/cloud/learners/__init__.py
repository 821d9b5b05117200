"""REINFORCE, the multi-policy learner, exploration, initialisation and their settings."""
