"""Traces and workloads: reading, cleaning, trimming, drawing from the Lublin-Feitelson model, and Batsim's workload
files.
"""
