"""Decisions without learning: rules, planners, oracles, Bayesian search, Pareto fronts."""
