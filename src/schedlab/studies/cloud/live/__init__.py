"""Real training scripts on allocations: processes, logs, live environment, learned models."""
