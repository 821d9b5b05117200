"""Computation graphs: files, cost models, generated and traced graphs, statistics."""
