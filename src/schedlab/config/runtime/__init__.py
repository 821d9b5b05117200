"""What runs need: the lock of a run, logs and progress, compiled kernels, and the provenance of results."""
