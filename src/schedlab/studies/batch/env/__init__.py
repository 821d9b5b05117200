"""The environments: observation layouts, rewards, single, vectorised and weight-choosing variants."""
