"""Recorded cases of SLA-MORL's program (`schedlab cloud replay`), its settings and its step."""
