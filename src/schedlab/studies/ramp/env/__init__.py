"""The environment: observations and their encoding, rewards and settings."""
