"""What a scheduler communicates with: the embedded simulator, PyBatsim in one process, a socket, or a real Batsim."""
