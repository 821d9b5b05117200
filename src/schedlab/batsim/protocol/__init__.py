"""Batsim's protocol: what a scheduler is sent, and which decisions it may take."""
