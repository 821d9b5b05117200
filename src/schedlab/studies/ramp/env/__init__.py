"""The environment: observations, views, rewards and its settings."""
