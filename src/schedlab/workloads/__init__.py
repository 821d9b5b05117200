"""Traces and workloads: reading, cleaning, trimming, the Lublin-Feitelson model, files of Batsim."""
