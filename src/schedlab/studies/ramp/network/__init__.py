"""The optical cluster: topology, free channels, and the time of collective communication."""
