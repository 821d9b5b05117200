"""The event-driven simulator: clock, hosts, tasks in progress, network, power and energy."""
