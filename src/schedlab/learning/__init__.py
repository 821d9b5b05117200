"""Learning that knows no study: seeding, checkpoints, resuming, stock algorithms."""
