"""Training under a time budget: timings, prefix trees of trained epochs, tables of outcomes, live runs."""
