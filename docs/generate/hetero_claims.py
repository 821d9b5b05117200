"""Our values of the claims of the hetero study: python docs/generate/hetero_claims.py [case] [platforms] [environment]
[learned]
"""

from __future__ import annotations

import sys
import tempfile
from itertools import product
from pathlib import Path

from claim_tables import FORMS, Values, both, joined, write_claims

from schedlab.config.contract import LearnPaths, Phase, PolicySpec, Unit
from schedlab.config.data_paths import CHECKOUT
from schedlab.config.readers import read_yaml
from schedlab.config.schema import validate
from schedlab.platforms.generate import hierarchy_of
from schedlab.platforms.settings import REFERENCE as PLATFORM_REFERENCE
from schedlab.platforms.settings import PlatformSettings
from schedlab.stages.learn import CurveRecorder
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.env.observation import Observer
from schedlab.studies.hetero.env.settings import REFERENCE, DecisionSettings, LegacySettings
from schedlab.studies.hetero.learners.policy_gradient import PolicyGradientLearner
from schedlab.studies.hetero.simulator.episode import Episode, learning_case, play
from schedlab.studies.hetero.simulator.resources import ResourceModel

PLATFORMS = ("learning", "das2", "gaia", "pik", "ricc", "mixed")
TOTALS = {"cores": "cores", "speed": "reference_speed_gflops", "power": "power_w"}
LIMITS = {"max_time": 1.0, "max_core": 1.0, "max_mem": 1.0, "max_mem_bw": 1.0}
JOB_ORDERS = ("shortest-high_gflops", "shortest-high_mem_bw", "shortest-low_power")
PAIRS = (*JOB_ORDERS, "first-high_gflops", "first-high_mem_bw")  # actions of the thesis on its learning case
LEARNERS = {"reinforce": False, "actor-critic": True}  # -> whether it learns a value
SEEDS, EPISODES = range(5), 1600


def case() -> Values:
    """Makespan, reward and energy of the learning case, both jobs by one core policy."""
    return joined(_case(form, pair) for form, pair in product(FORMS, JOB_ORDERS))


def _case(form: str, pair: str) -> Values:
    run = Episode(*learning_case(), _decisions(form, (pair,)), 0)
    scores = play(run)
    found = {"makespan": scores["makespan"], "reward": sum(run.history.rewards), "energy": scores["consumed_joules"]}
    core_policy = pair.partition("-")[2].replace("_", "-")
    if core_policy == "high-mem-bw":  # no processor is left without a job, and no defect shows
        del found["energy"]
    return {f"case-{kind}-{core_policy}": {form: value} for kind, value in found.items()}


def platforms() -> Values:
    """Cores, speed and power of the shipped platforms, and the power of a free core beside a busy one."""
    found = []
    for form, name in product(FORMS, PLATFORMS):
        totals = hierarchy_of(_platform(form, name)).totals()
        found.append({f"platform-{name}-{key}": {form: totals[column]} for key, column in TOTALS.items()})
    states = [_platform(form, "gaia").pstates.states()[2] for form in FORMS]
    powers = (f"{state.power:g} {state.model_power:g}" for state in states)
    return joined([*found, both("free-core-power", *powers)])


def environment() -> Values:
    """Sizes of the observations of gaia."""
    found = []
    for form, kind in product(FORMS, ("normal", "small", "minimal")):
        observer = Observer(ResourceModel(hierarchy_of(_platform(form, "gaia"))), kind, LIMITS, 0.05)
        found.append({f"observation-{kind}": {form: observer.size}})
    return joined(found)


def learned() -> Values:
    """Probability of the best pairs after learning on the learning case, the lowest of five seeds."""
    found = []
    for form, (name, critic) in product(FORMS, LEARNERS.items()):
        if not (FORMS[form] and critic):  # the published actor-critic calls a method that does not exist
            lowest = min(probability(form, critic, seed) for seed in SEEDS)
            found.append({f"case-learned-{name}": {form: lowest}})
    return joined(found)


class LearningCase:
    """The learning case as a problem of one workload."""

    def __init__(self, form: str) -> None:
        self.place, self.jobs = learning_case()
        self.settings = _decisions(form, PAIRS)

    def units(self, split: str) -> list[Unit]:
        """Return its one unit."""
        return [Unit("a", "workload", split, "a", 0)]

    def env(self, unit: Unit, seed: int) -> HeteroEnv:
        """Return its environment."""
        del unit
        return HeteroEnv(self.place, (self.jobs,), self.settings, seed)


def probability(form: str, critic: bool, seed: int, episodes: int = EPISODES) -> float:
    """Learn, and return the probability of the pairs with high_mem_bw at the first decision."""
    learner = read_yaml(CHECKOUT / f"conf/learner/hetero/{'reinforce_published' if FORMS[form] else 'reinforce'}.yaml")
    problem, params = LearningCase(form), {key: value for key, value in learner.items() if key != "name"}
    with tempfile.TemporaryDirectory() as folder, CurveRecorder(Path(folder, "curve.jsonl")) as curve:
        paths = LearnPaths(None, Path(folder, "policy.zip"), Path(folder))
        spec = PolicySpec(
            "agent", "learned", "policy_gradient", {**params, "critic": critic}, train_on=(Phase(("one",), episodes),)
        )
        PolicyGradientLearner().learn({"one": problem}, spec, seed, paths, curve)
        policy = PolicyGradientLearner().load(paths.checkpoint, problem)
    env = problem.env(problem.units("test")[0], 0)
    observation, _ = env.reset(seed=1)
    chances = zip(env.action_names, policy.probabilities(observation, env.action_masks()), strict=True)
    return float(sum(chance for name, chance in chances if name.endswith("high_mem_bw")))


def _decisions(form: str, selection: tuple[str, ...]) -> DecisionSettings:
    legacy = LegacySettings(**REFERENCE) if FORMS[form] else LegacySettings()
    return DecisionSettings(selection=selection, void=False, objective="makespan", observation="minimal", legacy=legacy)


def _platform(form: str, name: str) -> PlatformSettings:
    return validate(PlatformSettings, {"file": name, **(PLATFORM_REFERENCE if FORMS[form] else {})})


PARTS = {"case": case, "platforms": platforms, "environment": environment, "learned": learned}


if __name__ == "__main__":
    sys.exit(write_claims("hetero", PARTS))
