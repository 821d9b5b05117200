"""Policy-gradient learners, their networks, and the compiled episodes that they learn from."""
