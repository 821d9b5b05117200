"""Batch queues of HPC clusters: in which order should the jobs run?"""
