"""Policy-gradient learners, their networks, and the compiled episodes on which they learn."""
