"""The sub-commands of `schedlab ramp`."""
