"""The run-time support of jobs: the lock of a run, logs and progress, compiled kernels, and the provenance of
results.
"""
