"""The object STUDY, which names every part of the study, and the typed keys of its files in conf/."""

from my_study.problem import load_problem
from schedlab.config.contract import Metric, Part, Study
from schedlab.config.schema import Settings, setting
from schedlab.config.settings import ScenarioSettings, Seeds
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS, phase_mistakes


class Scenario(ScenarioSettings):
    """Keys of a file in conf/scenario/my_study/, beside those that every scenario has."""

    error: float = setting(doc="standard deviation of the logarithm of estimated over true run time", ge=0, le=10)
    units: int = setting(doc="units in each split", gt=0, le=10_000)
    jobs: int = setting(10, doc="jobs of a unit", gt=0, le=1000)
    machines: int = setting(2, doc="machines, all of the same speed", gt=0, le=100)


class Scale(Settings):
    """Keys under `sizes:` in conf/study/my_study.yaml: what depends on the scale of a run."""

    units: int = setting(doc="units in each split", gt=0, le=10_000)
    steps: int = setting(doc="decisions that a learner takes", gt=0)
    seeds: Seeds = setting(doc="learning seeds", min_length=1)


def job_values(scenario: Scenario) -> dict:
    """Return all values on which the jobs depend; the jobs are drawn again if one of these values changes."""
    return {name: getattr(scenario, name) for name in ("error", "units", "jobs", "seed")}


STUDY = Study(
    name="my_study",
    question="in which order should machines run jobs whose run times are only estimated?",
    results_version=1,
    scenario=Scenario,
    scale=Scale,
    metrics=(Metric("weighted_completion", "s", "lower", headline=True, label="weighted mean completion time"),),
    rules={name: f"my_study.rules:{name}" for name in ("smith", "oracle", "bound")},
    kinds={"oracle": "oracle", "bound": "bound"},  # all others are rules
    learners={name: f"schedlab.learning.stock.learner:LEARNERS[{name}]" for name in ("maskable_ppo", "dqn")},
    learner_settings={name: ALGORITHM_SETTINGS[name] for name in ("maskable_ppo", "dqn")},
    check_policy=lambda policy, learner: phase_mistakes(learner, policy.train_on),
    details={"starts": "when and on which machine each job ran"},
    figures={name: f"my_study.figures:draw_{name}" for name in ("scores", "schedule")},
    parts=lambda scenario: {"draw_jobs": Part(job_values(scenario), made_by="my_study.problem:draw_jobs")},
    inputs=lambda scenario: {"jobs": ("draw_jobs", "jobs.json")},
    problem_part=lambda scenario: {"machines": scenario.machines},
    problem=load_problem,
    requires=lambda scenario: (),  # no third-party data
)
