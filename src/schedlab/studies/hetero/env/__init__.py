"""The environment: observations, actions, objectives and its settings."""
