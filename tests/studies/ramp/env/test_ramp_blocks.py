"""Degree and block as the action: in the simulation, the environment, and policies."""

import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from schedlab.config.errors import UserError
from schedlab.studies.ramp.env.env import RampEnv
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.scenario import published_scenario
from schedlab.studies.ramp.simulator.cluster import RunningJob

GRAPHS = read_graphs(find_graphs("resources/graphs/a100"))
BLOCKS = {1: 32, 2: 82, 4: 40, 6: 20, 8: 19, 16: 2}  # legal blocks of 4 x 4 x 2 servers


def problem(end=6e4, **management):
    values = {"illegal_degrees": "round_down", "whole_ops": "inside"} | management
    scenario = published_scenario("A", compat=False, management=values, episodes={"end": end, "test": 1})
    return RampProblem(scenario, GRAPHS)


def test_each_free_block_of_each_valid_degree_is_an_action():
    env = RampEnv(problem().simulation.twin(), fixed_episode=3, blocks=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)
    assert env.action_space.n == len(env.actions) == 1 + sum(BLOCKS.values())
    env.reset()
    largest = {degree: env.simulation.plan(degree).split.max_degree for degree in BLOCKS}
    for (degree, block), valid in zip(env.actions, env.action_masks(), strict=True):
        assert valid == (degree == 0 or block < BLOCKS[largest[degree]])  # nothing runs yet


def test_a_valid_block_is_the_one_that_the_job_takes():
    env, draws, accepted = RampEnv(problem().simulation.twin(), blocks=True), np.random.default_rng(0), 0
    env.reset(seed=1)
    done = False
    while not done:
        action = int(draws.choice(np.flatnonzero(env.action_masks())))
        degree, block = env.actions[action]
        _, _, done, _, _ = env.step(action)
        outcome = env.simulation.cluster.outcome
        if isinstance(outcome, RunningJob):
            legal = env.simulation.rules.blocks(outcome.plan.split.max_degree)
            assert outcome.plan.placement.mask == legal[block].mask
            accepted += 1
        elif degree:
            assert outcome.cause == "max_acceptable_jct_exceeded"
    assert accepted > 5


class OfBlocks:
    """Splits four ways, onto the first or the last of the free blocks, or where first fit says."""

    def __init__(self, which):
        self.which = which

    def reset(self, unit):
        del unit

    def decide(self, simulation, mask):
        free = simulation.free_blocks(4) if mask[4] else []
        if not free:
            return 0
        return 4 if self.which is None else (4, free[self.which])


@pytest.mark.parametrize("memory", [80e9, 12e9])
def test_a_policy_may_return_a_degree_and_a_block(memory):
    """First fit takes the first free block, with memory that decides, too."""
    values = {"illegal_degrees": "round_down", "whole_ops": "inside"}
    scenario = published_scenario(
        "A", compat=False, management=values, episodes={"end": 6e4, "test": 1}, cluster={"memory": memory}
    )
    played = RampProblem(scenario, GRAPHS)
    unit = played.units("test")[0]
    first, free, last = (played.rollout(OfBlocks(which), unit) for which in (None, 0, -1))
    assert first.scores == free.scores
    assert first.scores["blocking_rate"] < 1
    assert last.scores["blocking_rate"] < 1
    assert last.scores != first.scores


def test_a_block_that_is_taken_or_does_not_exist_blocks_the_job():
    simulation = problem().simulation.twin()
    simulation.reset(1)
    assert simulation.plan(4, block=40) == "op_placement"
    block = simulation.free_blocks(4)[0]
    simulation.act(4, block=block)
    assert simulation.plan(4, block=block) == "op_placement"
    assert block not in simulation.free_blocks(4)


def test_blocks_of_drawn_placements_are_no_choice():
    simulation = problem(shaper="random").simulation.twin()
    simulation.reset(1)
    with pytest.raises(UserError):
        simulation.free_blocks(4)
