"""The commands of `schedlab batch`."""
