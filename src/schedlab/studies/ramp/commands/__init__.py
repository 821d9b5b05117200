"""The sub-commands replay, episode and graphs: their arguments and output."""
