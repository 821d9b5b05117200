"""Gymnasium environment over a simulation table: one episode is one sequence of growth decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from schedlab.studies.adaptation.decisions import Decision
from schedlab.studies.adaptation.learners.encoders import LAYER_FEATURES, layer_features, time_code, time_columns
from schedlab.studies.adaptation.simulator.table import DIGITS

if TYPE_CHECKING:
    from schedlab.studies.adaptation.problem import AdaptationProblem

ENVIRONMENT = "schedlab/Adaptation-v0"
_CODE, _FREQUENCIES = "sine_cosine", 4
_BOUND = 32.0  # no feature is larger; the space has to be bounded


class AdaptationEnv(gym.Env[np.ndarray, int]):
    """An environment in which each step is one growth action, and the last step is rewarded with the table's outcome of
    the whole sequence.

    Observation: float32 vector of the time code (sines and cosines of 2 pi i t / T, i = 1..4, and t / T) and the
    features of each layer in order, with zeros after the last layer. Actions: the scenario's growth actions, then doing
    nothing; all are always valid. Reward: 0 before the last step, then that of the table (a log loss counts negative).
    An episode runs on one of `rows` (positions of units in the problem's view), drawn at reset. `info` contains the
    sequence so far and, at the end, the regret to the unit's best sequence.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(
        self,
        problem: AdaptationProblem,
        rows: Sequence[int] = (0,),
        seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.problem, self.rows, self.render_mode = problem, tuple(rows), render_mode
        self._seed = seed
        self._longest = max(len(architecture.layers) for architecture in problem.states)
        size = time_columns(_CODE, _FREQUENCIES) + self._longest * LAYER_FEATURES
        self.observation_space = gym.spaces.Box(-1.0, _BOUND, (size,), np.float32)
        self.action_space: gym.spaces.Space[Any] = gym.spaces.Discrete(problem.tree.actions)
        self._row, self._prefix = self.rows[0], ""

    @property
    def state(self) -> int:
        """Position of the prefix that the episode has reached."""
        return self.problem.tree.prefixes.index(self._prefix)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode on a unit drawn at random; without a seed, the first reset uses that of the constructor."""
        del options
        super().reset(seed=self._seed if seed is None else seed)
        self._seed = None
        self._row = self.rows[int(self.np_random.integers(len(self.rows)))]
        self._prefix = ""
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take an action. After the last one, the observation is that of the last decision."""
        tree = self.problem.tree
        if not self.action_space.contains(np.int64(action)):
            raise ValueError(f"action {action} is not one of 0 to {tree.actions - 1}")
        if len(self._prefix) >= tree.decisions:
            raise RuntimeError("the episode has ended: call reset")
        self._prefix += DIGITS[int(action)]
        if len(self._prefix) < tree.decisions:
            return self._observation(), 0.0, False, False, self._info()
        results = self.problem.view.reward[self._row]
        reward = float(results[tree.index(self._prefix)])
        return self._observation(), reward, True, False, self._info() | {"regret": float(results.max() - reward)}

    def action_masks(self) -> np.ndarray:
        """Return True for each action: all are always valid."""
        return np.ones(self.problem.tree.actions, dtype=bool)

    def render(self) -> str:
        """Return the unit, the actions so far and the seconds left as a line of text."""
        decision = self._decision()
        return f"unit {self._row}: '{self._prefix}', {decision.time_left:g} of {decision.total_time:g} s left"

    def _decision(self) -> Decision:
        state = self.problem.tree.prefixes.index(self._prefix[: self.problem.tree.decisions - 1])
        return self.problem.decisions(self._row)[state]

    def _observation(self) -> np.ndarray:
        decision = self._decision()
        vector = np.zeros(self.observation_space.shape or (), dtype=np.float32)
        code = time_code(np.array([decision.time_left]), np.array([decision.total_time]), _CODE, _FREQUENCIES)[0]
        layers = layer_features(decision.architecture).ravel()
        vector[: len(code)] = code
        vector[len(code) : len(code) + len(layers)] = layers
        return np.clip(vector, -1.0, _BOUND)

    def _info(self) -> dict[str, Any]:
        job, replicate = self.problem.view.units[self._row]
        return {"scenario": self.problem.name, "job": job, "replicate": replicate, "sequence": self._prefix}
