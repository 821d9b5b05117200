"""The `schedlab` command."""
