"""What a scheduler talks to: the embedded simulator, PyBatsim in one process, a socket, or a real Batsim."""
