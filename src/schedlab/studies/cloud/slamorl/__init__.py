"""Recorded cases of SLA-MORL's program (`schedlab cloud replay`), its settings, and a step of its environment."""
