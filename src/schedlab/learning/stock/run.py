"""A learning job with an algorithm of Stable-Baselines3: its phases, and the work between its updates."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv

from schedlab.config.contract import Problem
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module, module_arrays
from schedlab.learning.devices import device_or_processor
from schedlab.learning.episode_streams import EpisodeStream, Finished, StreamEnv, mask_of
from schedlab.learning.job import Learning, LearningJob, Pace
from schedlab.learning.stock.buffers import BUFFERS
from schedlab.learning.stock.policy import ALGORITHMS, MakePolicy, StockPolicy, policy_parts
from schedlab.learning.stock.settings import StockSettings
from schedlab.learning.stock.state import global_streams, put_state, put_streams, take_state
from schedlab.learning.validation import Validation, record_finished

_ON_POLICY = ("n_steps", "gamma", "gae_lambda", "ent_coef", "vf_coef", "max_grad_norm", "normalize_advantage")
_PPO = (*_ON_POLICY, "batch_size", "n_epochs", "clip_range_vf", "target_kl")
_OFF_POLICY = (
    "gamma",
    "buffer_size",
    "learning_starts",
    "tau",
    "train_freq",
    "gradient_steps",
    "batch_size",
    "n_steps",
)
_EXPLORATION = ("exploration_initial_eps", "exploration_final_eps", "exploration_fraction")
KEYWORDS = {
    "ppo": _PPO,
    "maskable_ppo": _PPO,
    "a2c": (*_ON_POLICY, "use_rms_prop", "rms_prop_eps"),
    "dqn": (*_OFF_POLICY, *_EXPLORATION, "target_update_interval", "max_grad_norm"),
    "ddpg": _OFF_POLICY,
}
METRICS = {  # the library's name -> our name, and the factor to our value
    "train/policy_gradient_loss": ("policy_loss", 1),
    "train/policy_loss": ("policy_loss", 1),
    "train/value_loss": ("value_loss", 1),
    "train/actor_loss": ("actor_loss", 1),
    "train/critic_loss": ("critic_loss", 1),
    "train/loss": ("loss", 1),
    "train/entropy_loss": ("entropy", -1),
    "train/approx_kl": ("approximate_kl", 1),
    "train/clip_fraction": ("clip_fraction", 1),
    "train/explained_variance": ("explained_variance", 1),
    "train/std": ("action_deviation", 1),
    "train/learning_rate": ("learning_rate", 1),
    "rollout/exploration_rate": ("exploration_rate", 1),
}


@dataclass(frozen=True)
class Setup:
    """The setup of a learning job.

    settings  values of each phase
    spaces    observations and actions of every scenario
    seen      (problem, settings of a phase) -> problem on which the phase learns
    first     initial parameters if there is no parent; empty: those drawn from the seed
    padding   padding of an observation; None: zeros
    """

    algorithm: str
    make_policy: MakePolicy
    settings: Sequence[StockSettings]
    problems: Mapping[str, Problem]
    spaces: tuple[gym.Space[Any], gym.Space[Any]]
    seen: Callable[[Problem, StockSettings], Problem]
    first: Callable[[], Mapping[str, np.ndarray]]
    padding: np.ndarray | None


class StockLearning(Learning):
    """The phases of a job. For the job, each phase is a single update, in which the algorithm runs and its Watch saves
    states.

    parameters  parameters kept so far, by name; empty before the first phase if there is no parent
    kept_step   the step of their phase at which they were kept
    """

    def __init__(self, job: LearningJob, setup: Setup) -> None:
        self.job, self.setup = job, setup
        parent = job.parent()
        self.parameters: dict[str, np.ndarray] = parent.group("policy") if parent else {}
        self.kept_step = 0
        self._kept: Checkpoint | None = None

    def begin(self, phase: int) -> Pace:
        """Treat the phase as one update; Watch saves states within it."""
        del phase
        return Pace(1, 2)

    def step(self, phase: int, update: int) -> None:
        """Run the algorithm through a phase with a new optimiser and buffer; select its last or best parameters."""
        del update
        job, setup, kept = self.job, self.setup, self._kept
        self._kept = None
        if kept is None and not self.parameters:
            self.parameters = dict(setup.first())
        seed, settings, of_phase = (
            derive_seed(job.seed, "phase", phase),
            setup.settings[phase],
            job.spec.train_on[phase],
        )
        with global_streams(seed):
            problems = {name: setup.seen(setup.problems[name], settings) for name in of_phase.scenarios}
            stream = EpisodeStream(problems, of_phase.scenarios, seed)
            model = self._model(settings, stream, seed)
            if self.parameters and kept is None:
                load_module(model.policy, self.parameters, job.paths.start or job.progress)
            watch = Watch(self, settings, stream, kept)
            if kept is not None:
                put_state(model, kept, kept.meta["at"]["model"])
            try:
                model.learn(of_phase.steps - model.num_timesteps, watch, log_interval=None, reset_num_timesteps=False)
            except ValueError:  # within an update, torch's distributions reject parameters that are not finite
                watch.require_finite()
                raise
        best = watch.validation if phase == len(setup.settings) - 1 else None
        self.parameters = best.best if best and best.best else module_arrays(model.policy)
        self.kept_step = best.best_step if best and best.best else model.num_timesteps

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the state between two phases."""
        return {"kept_step": self.kept_step, "at": None}, grouped({"policy": self.parameters})

    def load(self, kept: Checkpoint) -> None:
        """Restore a state between two phases, or one within a phase (saved by Watch)."""
        self.kept_step, self.parameters = kept.meta["kept_step"], kept.group("policy")
        self._kept = kept if kept.meta["at"] else None

    def _model(self, settings: StockSettings, stream: EpisodeStream, seed: int) -> BaseAlgorithm:
        """Return the algorithm with its environments. A warning of its constructor is raised as a UserError."""
        setup = self.setup
        observation_space, action_space = copy.deepcopy(setup.spaces)
        action_space.seed(derive_seed(seed, "exploration"))
        envs = [
            StreamEnv(stream, settings.reward_scale, (observation_space, action_space))
            for _ in range(settings.environments)
        ]
        vectorised = DummyVecEnv([lambda env=env: env for env in envs])
        own: Any = settings  # an algorithm's own settings have the fields that are read below
        keywords = {name: getattr(own, name) for name in KEYWORDS[setup.algorithm]}
        keywords["learning_rate"] = _schedule(settings.learning_rate, settings.learning_rate_schedule)
        if "clip_range_vf" in keywords:
            keywords["clip_range"] = _schedule(own.clip_range, own.clip_range_schedule)
        if setup.algorithm == "ddpg" and own.action_noise:
            size = int(np.prod(action_space.shape or ()))
            keywords["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, own.action_noise))
        if setup.algorithm in BUFFERS and isinstance(observation_space, gym.spaces.Box):
            keywords |= {
                "rollout_buffer_class": BUFFERS[setup.algorithm],
                "rollout_buffer_kwargs": {"padding": setup.padding},
            }
        policy, parts = policy_parts(setup.algorithm, setup.make_policy, settings, setup.spaces)
        device = device_or_processor(settings.device)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", UserWarning)
            model = ALGORITHMS[setup.algorithm](policy, vectorised, policy_kwargs=parts, device=device, **keywords)
        for warning in warned:
            if issubclass(warning.category, UserWarning):
                raise UserError(str(warning.message), where=f"{self.job.spec.name}.yaml: learner")
        model.set_logger(Logger(None, []))
        return model


class Watch(BaseCallback):
    """Called between updates: records metrics, validates, saves states, and raises an error for parameters that are not
    finite.
    """

    def __init__(
        self, learning: StockLearning, settings: StockSettings, stream: EpisodeStream, kept: Checkpoint | None
    ) -> None:
        super().__init__()
        self.learning, self.job, self.settings, self.stream, self.kept = learning, learning.job, settings, stream, kept
        self.step = self.update = self.recorded = self.validated = self.saved = 0
        self.validation = Validation(self.job, stream.problems, stream.scenarios, settings)
        self.begins: dict[str, tuple[Any, Any]] = {}
        if kept is not None:
            at = kept.meta["at"]
            self.step, self.update, self.recorded, self.validated, self.saved = at["watch"]
            stream.following, stream.ended = at["stream"]
            stream.finished = [Finished(*values) for values in at["finished"]]
            self.validation.load(at["validation"], kept.group("best"))
        self._counted = stream.ended

    def _on_training_start(self) -> None:
        if self.kept is not None:
            put_streams(self.kept, self.kept.meta["at"]["model"])
            self.kept = None

    def _on_rollout_start(self) -> None:
        self._between(over=False)

    def _on_training_end(self) -> None:
        if not self.stopped:
            self._between(over=True)
        elif self.recorded != self.step:
            self._record()

    def _on_step(self) -> bool:
        return not self.stopped

    @property
    def stopped(self) -> bool:
        """Whether the phase ends early. The algorithm notices this only after one more decision, which changes
        nothing.
        """
        return self.settings.stop_after is not None and self.validation.passed >= self.settings.stop_after

    def _between(self, over: bool) -> None:
        """Do the work that is due after an update; `over`: the phase has ended. Nothing is due at the start of a phase,
        or where a resumed job starts.
        """
        if self.model.num_timesteps != self.step:
            self.job.budget.decisions += self.model.num_timesteps - self.step
            self.job.budget.episodes += self.stream.ended - self._counted
            self.step, self.update, self._counted = self.model.num_timesteps, self.update + 1, self.stream.ended
            self.require_finite()
            if over or self.step - self.recorded >= self.settings.record_every:
                self._record()
            self.model.logger.name_to_value.clear()
            every = self.settings.validate_every
            if every and (over or self.step - self.validated >= every):
                self._validate()
            if not over and self.step - self.saved >= self.settings.save_every:
                self._save()

    def require_finite(self) -> None:
        """Raise UserError if learning has diverged."""
        with torch.no_grad():
            total = sum(parameter.sum() for parameter in self.model.policy.parameters())
        self.job.require_finite(float(total), "the parameters", self.model.num_timesteps)

    def _place(self) -> dict[str, Any]:
        return {"step": self.step, "episode": self.stream.ended, "update": self.update}

    def _policy(self, acting: str = "greedy") -> StockPolicy:
        return StockPolicy(self.learning.setup.algorithm, self.model.policy, acting)

    def _record(self) -> None:
        """Record the episodes that ended since the last point, and the values that the algorithm logged at its
        update.
        """
        finished, self.stream.finished = self.stream.finished, []
        record_finished(self.job, finished, self._place())
        for name, value in self.model.logger.name_to_value.items():
            if name in METRICS and math.isfinite(value):
                metric, factor = METRICS[name]
                self.job.point(metric, factor * float(value), **self._place())
        self._record_preferences()
        self.recorded = self.step

    def _record_preferences(self) -> None:
        """Record the present probabilities of the actions at the first decision of each scenario's first unit, if its
        environment names the actions.
        """
        policy = self._policy()
        for scenario in self.stream.scenarios:
            unit = self.stream.problems[scenario].units("train")[0]
            env = self.validation.env(scenario, unit)
            if env.has_wrapper_attr("action_names"):
                if scenario not in self.begins:
                    observation, _ = env.reset(seed=unit.seed)
                    self.begins[scenario] = observation, mask_of(env)
                chances = policy.probabilities(*self.begins[scenario])
                named = zip(env.get_wrapper_attr("action_names"), chances, strict=True)
                for name, chance in named:
                    self.job.point("probability", chance, scenario=scenario, **self._place(), of={"action": name})

    def _validate(self) -> None:
        policy = self._policy(getattr(self.settings, "acting", "greedy"))
        self.validation.judge(policy, lambda: module_arrays(self.model.policy), self._place())
        self.validated = self.step

    def _save(self) -> None:
        self.saved = self.step
        meta, arrays = take_state(self.model)
        at = {
            "model": meta,
            "watch": [self.step, self.update, self.recorded, self.validated, self.saved],
            "stream": [self.stream.following, self.stream.ended],
            "finished": [[episode.scenario, episode.total, episode.length] for episode in self.stream.finished],
            "validation": self.validation.state(),
        }
        best = grouped({"best": self.validation.best})
        self.job.save({"kept_step": self.learning.kept_step, "at": at}, arrays | best)


def _schedule(value: float, form: str) -> Any:
    """Return a value, or a function of the remaining fraction of the phase."""
    return value if form == "constant" else lambda left: value * left
