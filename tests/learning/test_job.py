"""A learning job: killed at any update it ends with the same bytes, curve and budget; others' progress is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedlab.config.contract import Budget, LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.learning.checkpoints import Checkpoint, grouped, write_checkpoint
from schedlab.learning.job import LearningJob, Pace
from schedlab.stages.learn import CurveRecorder

PHASES = (Phase(("one",), 5), Phase(("two",), 4))


class Killed(BaseException):
    """Ends a job in the middle of an update."""


class Walk:
    """Adds a random number to its value in each update; each phase begins with another sum."""

    def __init__(self, job: LearningJob, killed_at: int = -1, save_every: int = 2) -> None:
        self.job, self.killed_at, self.save_every, self.made = job, killed_at, save_every, 0
        parent = job.parent()
        self.value = parent.group("walk")["value"] if parent else np.zeros(3)

    def begin(self, phase: int) -> Pace:
        self.sum = np.array(float(phase))
        self.job.budget.decisions += 100  # as a learner that plays before its first update does
        return Pace(self.job.spec.train_on[phase].steps, self.save_every)

    def step(self, phase: int, update: int) -> bool | None:
        drawn = generator(self.job.seed, phase, update).random(3)
        self.job.budget.decisions += 3
        self.value, self.sum = self.value + drawn, self.sum + drawn.sum()
        if self.made == self.killed_at:
            raise Killed
        self.made += 1
        self.job.budget.episodes += 1
        values = {"sum": float(self.sum), "value": float(self.value[0])}
        self.job.record(values, step=update + 1, update=update + 1, scenario=self.job.spec.train_on[phase].scenarios[0])

    def end(self, phase: int) -> None:
        self.value = self.value * (phase + 2)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"sum": float(self.sum)}, grouped({"walk": {"value": self.value}})

    def load(self, kept: Checkpoint) -> None:
        self.sum, self.value = np.array(kept.meta["sum"]), kept.group("walk")["value"]


def run(
    folder: Path, killed_at: int = -1, save_every: int = 2, values: Any = 1, kind: type[Walk] = Walk, **changed: Any
) -> tuple[Any, ...]:
    """Run a job; return the policy's bytes, the curve and the budget, and how many updates were made."""
    given = {"seed": 7, "phases": PHASES, "start": None, **changed}
    paths = LearnPaths(given["start"], folder / "policy.zip", folder / "progress")
    paths.progress.mkdir(parents=True, exist_ok=True)
    spec = PolicySpec("walk", "learned", "walk", train_on=given["phases"])
    with CurveRecorder(paths.progress / "curve.jsonl") as curve:
        job = LearningJob("walk", values, spec, given["seed"], paths, curve)
        walk = kind(job, killed_at, save_every)
        job.run(walk)
        write_checkpoint(paths.checkpoint, {"kind": "walk"}, grouped({"walk": {"value": walk.value}}))
    return paths.checkpoint.read_bytes(), curve.points(), job.budget, walk.made


def test_a_point_is_of_what_it_says_beside_its_place(tmp_path: Path) -> None:
    file = tmp_path / "curve.jsonl"
    with CurveRecorder(file) as curve:
        curve("chance", 0.5, step=1, of={"action": "up"})
        curve("chance", 0.5, step=1, of={"action": "down"})
        with pytest.raises(ValueError, match="that place already"):
            curve("chance", 0.25, step=1, of={"action": "up"})
    with CurveRecorder(file) as curve:
        curve("chance", 0.125, step=1, of={"action": "up"})
    assert [(row["of"]["action"], row["value"]) for row in curve.points()] == [("up", 0.125), ("down", 0.5)]


@pytest.mark.parametrize("save_every", [1, 2, 3, 100])
@pytest.mark.parametrize("at", range(9))
def test_a_job_killed_at_any_update_ends_with_the_same_bytes_curve_and_budget(
    tmp_path: Path, at: int, save_every: int
) -> None:
    whole = run(tmp_path / "whole", save_every=save_every)
    with pytest.raises(Killed):
        run(tmp_path / "cut", killed_at=at, save_every=save_every)
    with pytest.raises(Killed):
        run(tmp_path / "cut", killed_at=0, save_every=save_every)
    cut = run(tmp_path / "cut", save_every=save_every)
    assert cut[:3] == whole[:3]
    saved = at - at % save_every if at < 5 else 5 + (at - 5) - (at - 5) % save_every
    assert cut[3] == 9 - saved


class Settled(Walk):
    """A walk whose phases end with their third update."""

    def step(self, phase: int, update: int) -> bool:
        super().step(phase, update)
        return update == 2


@pytest.mark.parametrize("at", range(6))
def test_a_step_may_end_its_phase(tmp_path: Path, at: int) -> None:
    whole = run(tmp_path / "whole", kind=Settled)
    with pytest.raises(Killed):
        run(tmp_path / "cut", killed_at=at, kind=Settled)
    assert run(tmp_path / "cut", kind=Settled)[:3] == whole[:3]
    assert whole[3] == 6 and [point["update"] for point in whole[1]][-1] == 3


def test_a_point_holds_its_place_and_the_budget_used_by_then(tmp_path: Path) -> None:
    _, points, budget, _ = run(tmp_path)
    assert budget == Budget(decisions=2 * 100 + 9 * 3, episodes=9)
    last = points[-1]
    assert (last["metric"], last["phase"], last["train_scenario"], last["update"]) == ("value", 1, "two", 4)
    assert (last["decisions"], last["episodes"], last["trainings"]) == (227, 9, 0)
    assert [point["decisions"] for point in points[::2]] == [100 + 3 * n for n in range(1, 6)] + [
        200 + 3 * n for n in range(6, 10)
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 8},
        {"values": 2},
        {"phases": (Phase(("one",), 6), PHASES[1])},
        {"phases": (Phase(("other",), 5), PHASES[1])},
        {"start": "parent"},
    ],
)
def test_progress_of_another_job_is_not_resumed(tmp_path: Path, changed: dict) -> None:
    if "start" in changed:
        run(tmp_path / "parent", phases=(Phase(("one",), 1),))
        changed = {"start": tmp_path / "parent/policy.zip"}
    with pytest.raises(Killed):
        run(tmp_path / "cut", killed_at=4, **changed)
    cut, whole = run(tmp_path / "cut"), run(tmp_path / "whole")
    assert (cut[0], cut[2], cut[3]) == (whole[0], whole[2], 9)


def test_damaged_progress_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(tmp_path, killed_at=4)
    file = tmp_path / "progress/learning.zip"
    file.write_bytes(file.read_bytes()[:-9])
    assert run(tmp_path)[3] == 9


def test_learning_starts_from_its_parent_and_refuses_another_kind(tmp_path: Path) -> None:
    first, *_ = run(tmp_path / "parent")
    child, *_ = run(tmp_path / "child", start=tmp_path / "parent/policy.zip")
    assert first != child != run(tmp_path / "alone")[0]
    write_checkpoint(tmp_path / "other.zip", {"kind": "run"})
    with pytest.raises(UserError, match=r"other\.zip"):
        run(tmp_path / "wrong", start=tmp_path / "other.zip")


def steps(folder: Path, killed_at: int = -1, values: Any = 1) -> tuple[list[float], Budget, int]:
    """Make four steps that draw from one stream; return what they draw, the budget, and how many were made."""
    job = LearningJob(
        "steps",
        values,
        PolicySpec("s", "learned", "s"),
        0,
        LearnPaths(None, folder / "policy.zip", folder),
        lambda *_, **__: None,
    )
    random, made = np.random.default_rng(0), 0

    def make() -> dict[str, np.ndarray]:
        nonlocal made
        job.budget.decisions += 10
        if made == killed_at:
            raise Killed
        made += 1
        return {"drawn": random.random(2)}

    found = [job.once(random, f"step-{number}", make)["drawn"].sum() for number in range(4)]
    return found, job.budget, made


@pytest.mark.parametrize("at", range(4))
def test_steps_that_were_made_are_not_made_again(tmp_path: Path, at: int) -> None:
    whole = steps(tmp_path / "whole")
    with pytest.raises(Killed):
        steps(tmp_path / "cut", killed_at=at)
    cut = steps(tmp_path / "cut")
    assert cut[:2] == whole[:2] and cut[2] == 4 - at
    assert whole[1] == Budget(decisions=40)
    assert steps(tmp_path / "cut", values=2)[2] == 4
