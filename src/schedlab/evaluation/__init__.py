"""Evaluation, common to all studies: the common tables, statistics and uncertainty."""
