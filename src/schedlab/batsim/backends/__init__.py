"""Back ends, with which schedulers communicate: their interface, PyBatsim in one process, sockets, a real Batsim."""
