"""Partitioning of graphs, blocks of servers, free links, placers, and schedulers of operations."""
