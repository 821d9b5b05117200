"""The performance model: allocations, step times, goodput, fits to logs, prices, machines."""
