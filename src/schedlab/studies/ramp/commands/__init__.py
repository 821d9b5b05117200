"""The sub-commands replay, episode and graphs: their arguments, and what they print."""
