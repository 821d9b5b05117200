"""Batsim's protocol: the messages that a scheduler receives, and the decisions that it may take."""
