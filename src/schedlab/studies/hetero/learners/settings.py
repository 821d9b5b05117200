"""Typed settings of the learners, in a module without torch, so that checking a configuration does not import it."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from schedlab.config.errors import did_you_mean
from schedlab.config.schema import Settings, setting
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS
from schedlab.studies.hetero.rules import EVERY_PAIR, RESERVE
from schedlab.studies.hetero.scenario import CHOICES_OF_CORES, DRAWN_NOWHERE


class PolicyGradientSettings(Settings):
    """Learners of HDeepRM's agents."""

    critic: bool = setting(False, doc="true: advantage actor-critic; false: REINFORCE")
    hidden: int = setting(16, doc="units of each hidden layer; larger networks need more episodes", ge=1)
    head: Literal["actions", "parts"] = setting(
        "actions",
        doc="logits: one for each action (published), or the sum of one for its job policy and one for its core policy",
    )
    learning_rate: float = setting(
        0.005, doc="learning rate of Adam; larger values learn faster but converge to a bad action more often", gt=0
    )
    gamma: float = setting(0.99, doc="discount factor per decision", ge=0, le=1)
    episodes_per_update: int = setting(8, doc="episodes per gradient step (published: 1)", ge=1)
    standardise: Literal["update", "episode", "workload", "none"] = setting(
        "update",
        doc="returns are standardised over all decisions of an update, or of an episode (published); "
        "`workload`: all episodes of an update play the same workload, and their mean return at each "
        "date is subtracted first",
    )
    entropy: float = setting(0.0, doc="weight of the entropy bonus", unit="1/nat", ge=0)
    average: float = setting(
        0.0,
        doc="share of the last updates of a phase whose parameters are averaged; reduces the noise of "
        "the last workloads",
        ge=0,
        le=1,
    )
    compiled: bool = setting(
        False,
        doc="play episodes in a compiled kernel, tens of times as fast; only for the observation "
        "`heads` and the objective `avg_job_slowdown`, time-weighted, without void",
    )
    acting: Literal["greedy", "sample"] = setting(
        "greedy", doc="actions of the learned policy: greedy or sampled (published: sample)"
    )
    record_every: int = setting(1, doc="updates between points of the curves", ge=1)
    save_every: int = setting(50, doc="updates between saved states from which an interrupted job resumes", ge=1)


class ActorCriticSettings(PolicyGradientSettings):
    """Advantage actor-critic."""

    critic: bool = setting(True, doc="true: advantage actor-critic; false: REINFORCE")


class TrialSettings(Settings):
    """The learner `trials`: scores of options, from trials on copies of a run."""

    window: int = setting(10, doc="how many waiting jobs may be started: those with the smallest area", ge=1, le=1000)
    cores: tuple[Literal[DRAWN_NOWHERE], ...] = setting(  # type: ignore[valid-type]
        CHOICES_OF_CORES, doc="core policies that may place a job", min_length=1
    )
    hidden: int = setting(32, doc="units of each of the two hidden layers", ge=1)
    continued_by: str = setting(
        "",
        doc="who decides in the copies after the option that is tried: `reserve`, the rule with `longest` and `free`; "
        "a pair; or, if empty, the policy itself. With `reserve` or a pair, the policy imitates the best option tried",
    )
    longest: float = setting(
        10000.0, doc="with `reserve`: requested time up to which a job may use all free cores", unit="s", ge=0
    )
    free: float = setting(
        0.5, doc="with `reserve`: share of the cores that stay free when a longer job starts", ge=0, le=1
    )
    tried: float = setting(0.15, doc="share of the decisions whose options are tried", ge=0, le=1)
    options: int = setting(
        3, doc="options tried besides waiting, those with the highest scores; with `continued_by`: all", ge=1
    )
    episodes_per_update: int = setting(60, doc="episodes, each on another workload, before each fit", ge=1)
    keep_updates: int = setting(4, doc="updates whose trials are fitted together", ge=1)
    passes: int = setting(8, doc="passes over the trials in a fit", ge=1)
    minibatch: int = setting(256, doc="decisions of a gradient step", ge=1)
    learning_rate: float = setting(0.003, doc="learning rate of Adam", gt=0)
    average: float = setting(
        0.5,
        doc="weight of the earlier parameters in a moving average; the average is validated, and the best one kept",
        ge=0,
        lt=1,
    )
    validation: int = setting(
        100,
        doc="minimum number of workloads on which parameters are chosen; if the scenario has fewer for validation, "
        "more are drawn",
        ge=1,
    )
    save_every: int = setting(1, doc="updates between saved states from which an interrupted job resumes", ge=1)

    @field_validator("continued_by")
    @classmethod
    def _is_a_pair(cls, pair: str) -> str:
        known = (RESERVE, *EVERY_PAIR)
        if pair and pair not in known:
            raise ValueError(f"no rule or pair '{pair}'; {did_you_mean(pair, known)}")
        return pair


TRIAL_FIXED = frozenset({"window", "cores", "hidden", "validation"})  # the same in all phases of a policy
STOCK = ("ppo", "maskable_ppo", "a2c", "dqn")  # from Stable-Baselines3 and sb3-contrib
LEARNER_SETTINGS: dict[str, type[Settings]] = {
    "reinforce": PolicyGradientSettings,
    "actor_critic": ActorCriticSettings,
    "trials": TrialSettings,
    **{name: ALGORITHM_SETTINGS[name] for name in STOCK},
}
