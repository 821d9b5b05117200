"""The commands of `schedlab adaptation`."""
