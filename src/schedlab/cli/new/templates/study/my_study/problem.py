"""The problem: the jobs of each unit, the environment that a policy acts in, and the score of a policy."""

import json
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pandas as pd

from my_study.rules import Bound, lower_bound
from schedlab.config.contract import Outcome, Unit
from schedlab.config.files import write_json
from schedlab.config.seeds import generator


def draw_jobs(values, path):
    """Write split -> unit -> [true run times (s), estimated run times (s), weights] as JSON, for the prepare rule."""
    drawn = {}
    for split in ("train", "validation", "test"):
        rng = generator(values["seed"], "jobs", split)  # the names define a separate random stream
        shape = (values["units"], values["jobs"])
        times = rng.lognormal(0.0, 1.0, shape)
        estimates = times * rng.lognormal(0.0, values["error"], shape)
        drawn[split] = np.stack([times, estimates, rng.uniform(1.0, 10.0, shape)], axis=1).tolist()
    write_json(path, drawn)


class Queue(gym.Env):
    """One unit: each action starts a waiting job on the machine that is free first.

    Observation (jobs, 3): logarithm of the estimated run time; weight; 1 if the job waits, else 0. Action: number of a
    job. Reward: minus the time at which the job ends, times its share of all weights.
    """

    def __init__(self, jobs, machines):
        self.times, self.estimates, self.weights = jobs
        self.machines = machines
        self.observation_space = gym.spaces.Box(-100, 100, (len(self.times), 3), np.float32)
        self.action_space = gym.spaces.Discrete(len(self.times))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # seeds self.np_random, which this environment does not use
        self.waiting, self.free_at, self.starts = np.ones(len(self.times), bool), np.zeros(self.machines), []
        return self.observation(), {}

    def observation(self):
        return np.stack([np.log(self.estimates), self.weights, self.waiting], axis=1).astype(np.float32)

    def action_masks(self):
        """Return which jobs may be started, (jobs,) bool."""
        return self.waiting.copy()

    def step(self, action):
        if not self.waiting[action]:
            raise ValueError(f"job {action} does not wait")
        machine = int(self.free_at.argmin())
        start, end = self.free_at[machine], self.free_at[machine] + self.times[action]
        self.starts.append({"job": int(action), "machine": machine, "start": start, "end": end})
        self.waiting[action], self.free_at[machine] = False, end
        reward = -end * self.weights[action] / self.weights.sum()
        return self.observation(), float(reward), not self.waiting.any(), False, {}


@dataclass(frozen=True)
class QueueProblem:
    """One scenario with its inputs. jobs: split -> (units, 3, jobs), as written by `draw_jobs`."""

    machines: int
    jobs: dict[str, np.ndarray]

    def units(self, split):
        """Return the units of a split. Units with the same `block` are not independent of each other."""
        names = [f"{split}-{number}" for number in range(len(self.jobs[split]))]
        return [Unit(name, "queue", split, block=name, seed=number) for number, name in enumerate(names)]

    def env(self, unit, seed):
        """Return the environment of a unit. `unit.seed` selects the jobs; `seed` is for other random draws."""
        return Queue(self.jobs[unit.split][unit.seed], self.machines)

    def rollout(self, policy, unit):
        """Return the scores of a policy on a unit: here the sum of the costs of its decisions."""
        env = self.env(unit, unit.seed)
        if isinstance(policy, Bound):  # takes no decisions
            return Outcome({"weighted_completion": lower_bound(env.times, env.weights, self.machines)})
        observation, _ = env.reset(seed=unit.seed)
        policy.reset(unit)
        total, ended = 0.0, False
        while not ended:
            observation, reward, ended, _, _ = env.step(policy.act(observation, env.action_masks()))
            total -= reward
        return Outcome({"weighted_completion": total}, details={"starts": pd.DataFrame(env.starts)})


def load_problem(values, inputs):
    """Return the problem. values: result of the study's `problem_part`; inputs: name -> file, as in `inputs`."""
    drawn = json.loads(inputs["jobs"].read_text())
    return QueueProblem(values["machines"], {split: np.array(units) for split, units in drawn.items()})
