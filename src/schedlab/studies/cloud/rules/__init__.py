"""Rules and everything that decides without learning: oracles, Bayesian search, Pareto fronts."""
