"""Training under a time budget: timings, trained trees, tables of outcomes, live runs."""
