"""One learning job with an algorithm of Stable-Baselines3: its phases, its curves, its validation, and the file it can
go on from.
"""

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

from schedlab.config.contract import Curve, LearnPaths, PolicySpec, Problem, Unit
from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, file_hash
from schedlab.config.seeds import derive_seed
from schedlab.learning.checkpoints import Checkpoint, load_module, module_arrays, read_progress, write_checkpoint
from schedlab.learning.devices import device_or_processor
from schedlab.learning.episode_streams import EpisodeStream, Finished, StreamEnv, stepped
from schedlab.learning.stock.buffers import BUFFERS
from schedlab.learning.stock.policy import ALGORITHMS, MakePolicy, StockPolicy, policy_parts
from schedlab.learning.stock.settings import StockSettings
from schedlab.learning.stock.state import global_streams, put_state, put_streams, take_state

PROGRESS = "stable-baselines-progress-2"  # the form: progress of another one is begun anew
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
METRICS = {  # their name -> ours, and the factor to it
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
class Job:
    """What a learning job is given.

    settings  values of each phase          spaces  observations and actions of every scenario
    start     parameters to begin with, by name; empty: those of `first`
    seen      (problem, settings of a phase) -> what the phase learns on
    first     parameters where there are none; empty: those that the seed gives
    padding   what an observation is where it tells nothing; None: zeros
    """

    algorithm: str
    make_policy: MakePolicy
    settings: Sequence[StockSettings]
    problems: Mapping[str, Problem]
    spec: PolicySpec
    seed: int
    spaces: tuple[gym.Space, gym.Space]
    curve: Curve
    paths: LearnPaths
    start: Mapping[str, np.ndarray]
    seen: Callable[[Problem, StockSettings], Problem]
    first: Callable[[], Mapping[str, np.ndarray]]
    padding: np.ndarray | None

    def digest(self) -> str:
        """Hash of all that determines the job, so that progress of another one is not taken up; units and inputs are
        the stage's care.
        """
        phases = [[list(phase.scenarios), phase.steps] for phase in self.spec.train_on]
        values = [each.model_dump(mode="json") for each in self.settings]
        return content_hash(
            [self.algorithm, values, phases, self.seed, file_hash(self.paths.start) if self.paths.start else ""]
        )


class Run:
    """One learning job. `parameters`: those kept so far, by name; `kept_step`: the step of their phase that they come
    from.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.digest = job, job.digest()
        self.parameters, self.kept_step = dict(job.start), 0
        self.progress = job.paths.progress / "stable_baselines.zip"

    def learn(self) -> tuple[dict[str, np.ndarray], int]:
        """Go on from where an interrupted job of the same values was; return the parameters kept and the step they were
        kept at.
        """
        kept = self._read()
        first = 0
        if kept is not None:
            first, self.kept_step = kept.meta["phase"], kept.meta["kept_step"]
            self.parameters = kept.group("policy")
        elif not self.parameters:
            self.parameters = dict(self.job.first())
        for number in range(first, len(self.job.settings)):
            self._phase(number, kept if kept is not None and number == first and kept.meta["at"] else None)
        return self.parameters, self.kept_step

    def save(self, phase: int, at: Mapping[str, Any] | None, arrays: Mapping[str, np.ndarray]) -> None:
        """Write the state that an interrupted job goes on from; `at`: where in the phase, None before its begin."""
        meta = {"kind": PROGRESS, "digest": self.digest, "phase": phase, "kept_step": self.kept_step, "at": at}
        write_checkpoint(self.progress, meta, arrays)

    def _read(self) -> Checkpoint | None:
        return read_progress(self.progress, PROGRESS, self.digest)

    def _phase(self, number: int, kept: Checkpoint | None) -> None:
        phase, seed = self.job.spec.train_on[number], derive_seed(self.job.seed, "phase", number)
        with global_streams(seed):
            problems = {
                name: self.job.seen(self.job.problems[name], self.job.settings[number]) for name in phase.scenarios
            }
            stream = EpisodeStream(problems, phase.scenarios, seed)
            model = self._model(self.job.settings[number], stream, seed)
            if self.parameters and kept is None:
                load_module(model.policy, self.parameters, self.job.paths.start or self.progress)
            watch = Watch(self, number, stream, kept)
            if kept is not None:
                put_state(model, kept, kept.meta["at"]["model"])
            try:
                model.learn(phase.steps - model.num_timesteps, watch, log_interval=None, reset_num_timesteps=False)
            except ValueError:  # torch's distributions refuse parameters that are not finite, within an update
                watch.require_finite()
                raise
            last = number == len(self.job.settings) - 1
            self.parameters = watch.best if last and watch.best else module_arrays(model.policy)
            self.kept_step = watch.best_step if last and watch.best else model.num_timesteps
        self.save(number + 1, None, {f"policy/{name}": array for name, array in self.parameters.items()})

    def _model(self, settings: StockSettings, stream: EpisodeStream, seed: int) -> BaseAlgorithm:
        """The algorithm with its environments; what it would warn of is a UserError."""
        observation_space, action_space = copy.deepcopy(self.job.spaces)
        action_space.seed(derive_seed(seed, "exploration"))
        envs = [
            StreamEnv(stream, settings.reward_scale, observation_space, action_space)
            for _ in range(settings.environments)
        ]
        vectorised = DummyVecEnv([lambda env=env: env for env in envs])
        own: Any = settings  # the algorithm's own class, which has the fields that are read below
        keywords = {name: getattr(own, name) for name in KEYWORDS[self.job.algorithm]}
        keywords["learning_rate"] = _schedule(settings.learning_rate, settings.learning_rate_schedule)
        if "clip_range_vf" in keywords:
            keywords["clip_range"] = _schedule(own.clip_range, own.clip_range_schedule)
        if self.job.algorithm == "ddpg" and own.action_noise:
            size = int(np.prod(action_space.shape or ()))
            keywords["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, own.action_noise))
        if self.job.algorithm in BUFFERS and isinstance(observation_space, gym.spaces.Box):
            keywords |= {
                "rollout_buffer_class": BUFFERS[self.job.algorithm],
                "rollout_buffer_kwargs": {"padding": self.job.padding},
            }
        policy, parts = policy_parts(self.job.algorithm, self.job.make_policy, settings, self.job.spaces)
        device = device_or_processor(settings.device)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", UserWarning)
            model = ALGORITHMS[self.job.algorithm](policy, vectorised, policy_kwargs=parts, device=device, **keywords)
        for warning in warned:
            if issubclass(warning.category, UserWarning):
                raise UserError(str(warning.message), where=f"{self.job.spec.name}.yaml: learner")
        model.set_logger(Logger(None, []))
        return model


class Watch(BaseCallback):
    """Stands between updates: records, validates, saves, and refuses parameters that are not finite."""

    def __init__(self, run: Run, phase: int, stream: EpisodeStream, kept: Checkpoint | None) -> None:
        super().__init__()
        self.run, self.phase, self.stream, self.kept = run, phase, stream, kept
        self.settings = run.job.settings[phase]
        self.step = self.update = self.recorded = self.validated = self.saved = 0
        self.best: dict[str, np.ndarray] = {}
        self.best_score, self.best_step = -math.inf, 0
        self.without_best = 0  # validations since the best one
        self.envs: dict[tuple[str, str], gym.Env] = {}
        self.begins: dict[str, tuple[Any, Any]] = {}
        if kept is not None:
            at = kept.meta["at"]
            self.step, self.update, self.recorded, self.validated, self.saved = at["watch"]
            stream.following, stream.ended = at["stream"]
            stream.finished = [Finished(*values) for values in at["finished"]]
            self.best, (score, self.best_step) = kept.group("best"), at["best"]
            self.best_score = score if self.best else -math.inf
            self.without_best = at.get("without_best", 0)

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
        """Tell whether the phase ends before its steps do; a decision that is taken to notice it teaches nothing."""
        return self.settings.stop_after is not None and self.without_best >= self.settings.stop_after

    def _between(self, over: bool) -> None:
        """See to the job after an update; `over`: the phase has ended. Its begin, and where a resumed job begins, are
        no new update.
        """
        if self.model.num_timesteps != self.step:
            self.step, self.update = self.model.num_timesteps, self.update + 1
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
        """Raise UserError where learning has diverged."""
        with torch.no_grad():
            total = sum(parameter.sum() for parameter in self.model.policy.parameters())
        if not math.isfinite(float(total)):
            raise UserError(
                f"the parameters are not finite after {self.model.num_timesteps} steps",
                where=f"{self.run.job.spec.name}.yaml: learner.learning_rate",
                expected="learning that does not diverge",
                remedy="lower the learning rate or scale the rewards down",
            )

    def _place(self, scenario: str = "") -> dict[str, Any]:
        return {
            "step": self.step,
            "episode": self.stream.ended,
            "update": self.update,
            "phase": self.phase,
            "scenario": scenario,
        }

    def _record(self) -> None:
        """Give out the means of the episodes ended since the last point, and what the last update says of itself."""
        finished, self.stream.finished = self.stream.finished, []
        for scenario in dict.fromkeys(episode.scenario for episode in finished):
            mine = [episode for episode in finished if episode.scenario == scenario]
            self.run.job.curve("return", float(np.mean([episode.total for episode in mine])), **self._place(scenario))
            self.run.job.curve(
                "episode_length", float(np.mean([episode.length for episode in mine])), **self._place(scenario)
            )
        for name, value in self.model.logger.name_to_value.items():
            if name in METRICS and math.isfinite(value):
                metric, factor = METRICS[name]
                self.run.job.curve(metric, factor * float(value), **self._place())
        self._record_preferences()
        self.recorded = self.step

    def _record_preferences(self) -> None:
        """Give out how the first decision of each scenario's first unit would be taken now, where its environment names
        the actions.
        """
        policy = StockPolicy(self.run.job.algorithm, self.model.policy)
        for scenario in self.run.job.spec.train_on[self.phase].scenarios:
            unit = self.stream.problems[scenario].units("train")[0]
            env = self._env(scenario, unit)
            if env.has_wrapper_attr("action_names"):
                if scenario not in self.begins:
                    observation, _ = env.reset(seed=unit.seed)
                    self.begins[scenario] = observation, _mask(env)
                chances = policy.probabilities(*self.begins[scenario])
                for name, chance in zip(env.get_wrapper_attr("action_names"), chances, strict=True):
                    self.run.job.curve(f"probability {name}", float(chance), **self._place(scenario))

    def _validate(self) -> None:
        """Score the policy on validation units as it will act once learned; keep its parameters where it is better than
        before.
        """
        policy = StockPolicy(self.run.job.algorithm, self.model.policy, getattr(self.settings, "acting", "greedy"))
        scores = []
        for scenario in self.run.job.spec.train_on[self.phase].scenarios:
            totals = [self._total(policy, scenario, unit) for unit in self._validation_units(scenario)]
            scores.append(float(np.mean(totals)))
            self.run.job.curve("return", scores[-1], **self._place(scenario), split="validation")
        if (score := float(np.mean(scores))) > self.best_score:
            self.best, self.best_score, self.best_step, self.without_best = (
                module_arrays(self.model.policy),
                score,
                self.step,
                0,
            )
        else:
            self.without_best += 1
        self.validated = self.step

    def _validation_units(self, scenario: str) -> list[Unit]:
        units = list(self.stream.problems[scenario].units("validation"))
        if not units:
            where, remedy = f"{self.run.job.spec.name}.yaml: learner.validate_every", "set it to 0"
            raise UserError(f"scenario '{scenario}' has no validation units", where=where, remedy=remedy)
        count = min(self.settings.validation_units or len(units), len(units))
        return [units[place * len(units) // count] for place in range(count)]

    def _total(self, policy: StockPolicy, scenario: str, unit: Unit) -> float:
        """Sum of the rewards of an episode of the unit."""
        env = self._env(scenario, unit)
        policy.reset(unit)
        observation, _ = env.reset(seed=unit.seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy.act(observation, _mask(env)))
            total, over = total + float(reward), terminated or truncated
        return total

    def _env(self, scenario: str, unit: Unit) -> gym.Env:
        """An environment of the unit that no learning goes on in."""
        if (scenario, unit.id) not in self.envs:
            self.envs[scenario, unit.id] = stepped(self.stream.problems[scenario], unit, unit.seed)
        return self.envs[scenario, unit.id]

    def _save(self) -> None:
        self.saved = self.step
        meta, arrays = take_state(self.model)
        at = {
            "model": meta,
            "watch": [self.step, self.update, self.recorded, self.validated, self.saved],
            "stream": [self.stream.following, self.stream.ended],
            "finished": [[episode.scenario, episode.total, episode.length] for episode in self.stream.finished],
            "best": [self.best_score if self.best else 0.0, self.best_step],
            "without_best": self.without_best,
        }
        self.run.save(self.phase, at, arrays | {f"best/{name}": array for name, array in self.best.items()})


def _mask(env: gym.Env) -> np.ndarray | None:
    return env.get_wrapper_attr("action_masks")() if env.has_wrapper_attr("action_masks") else None


def _schedule(value: float, form: str) -> Any:
    """A value, or a function of the share of the phase that is left."""
    return value if form == "constant" else lambda left: value * left
