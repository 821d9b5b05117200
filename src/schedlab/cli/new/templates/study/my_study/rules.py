"""Policies that need no learning: a rule, an oracle, and a bound.

STUDY names functions that take a rule's values (`params` in the scenario's file), the problem and a seed, and return
the policy. `reset` begins a unit; `act` receives the observation and the mask of the study's environment and returns an
action.
"""

import numpy as np


class Smith:
    """Starts the waiting job with the largest ratio of weight to estimated run time (Smith 1956)."""

    def reset(self, unit):
        pass

    def act(self, observation, mask):
        ratios = np.log(observation[:, 1]) - observation[:, 0]
        return int(np.where(mask, ratios, -np.inf).argmax())


class Oracle:
    """Smith's rule with the true run times, which no policy can know."""

    def __init__(self, problem):
        self.problem = problem

    def reset(self, unit):
        env = self.problem.env(unit, unit.seed)
        self.ratios = env.weights / env.times

    def act(self, observation, mask):
        return int(np.where(mask, self.ratios, -np.inf).argmax())


class Bound:
    """Not a policy: the rollout recognises it and gives each unit `lower_bound` as its score."""


def lower_bound(times, weights, machines):
    """Return a lower bound on the weighted mean completion time of any schedule (Eastman, Even and Isaacs 1964)."""
    order = np.argsort(-weights / times)
    alone = (weights[order] * times[order].cumsum()).sum()  # the optimum for a single machine
    work = (weights * times).sum()
    return float((alone / machines + (machines - 1) / (2 * machines) * work) / weights.sum())


def smith(params, problem, seed):
    """Return the rule `smith`."""
    return Smith()


def oracle(params, problem, seed):
    """Return the rule `oracle`."""
    return Oracle(problem)


def bound(params, problem, seed):
    """Return the rule `bound`."""
    return Bound()
