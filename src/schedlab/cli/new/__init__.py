"""`schedlab new`: begin a new study, or the file of a new scenario, policy or platform."""
