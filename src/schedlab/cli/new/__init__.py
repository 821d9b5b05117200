"""`schedlab new`: begin a study of one's own, or a file of a scenario, policy or platform."""
