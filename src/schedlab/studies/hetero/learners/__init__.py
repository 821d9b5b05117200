"""Learners with their networks, rules that try options, and runs on the compiled kernels."""
