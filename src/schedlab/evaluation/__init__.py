"""Evaluation that knows no study: the common tables, statistics and uncertainty."""
