"""Real training scripts under allocations: processes, logs, live environment, learned models."""
