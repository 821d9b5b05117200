"""Batsim: the embedded simulator with its files and protocol, schedulers, and the back ends that connect them."""
