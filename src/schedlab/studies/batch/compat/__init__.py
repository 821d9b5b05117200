"""Defects of the published systems, repeated; outside of this room, only `legacy.py` names them."""
