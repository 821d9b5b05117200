"""The optical cluster: topologies and the time of single messages and collectives."""
