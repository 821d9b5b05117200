"""The study `cloud`: how many GPUs, cores and gigabytes for a training job, under cost, time and service levels."""
