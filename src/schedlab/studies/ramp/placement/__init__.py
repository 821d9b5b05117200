"""Partitioning of graphs, free blocks of servers, placers, and schedulers of operations."""
