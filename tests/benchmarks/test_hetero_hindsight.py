"""The benchmark that tries every pair at every decision: its copies of a run go on as the simulator does."""

from __future__ import annotations

import pytest
from small_hetero import managed_scenario, prepared

from schedlab.studies.hetero.rules import PairRule

DECISIONS = {"observation": "heads", "objective": "avg_job_slowdown", "time_weighted": True, "void": False}


class Played:
    """Plays given actions, one at each decision."""

    def __init__(self, actions):
        self.actions = actions

    def reset(self, _unit):
        self.left = iter(self.actions)

    def act(self, _observation, _mask):
        return next(self.left)


def test_the_best_by_trying_is_no_worse_than_what_it_falls_back_on(repository, load_program, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(repository / "benchmarks"))
    script = load_program("benchmarks/hetero_hindsight")
    problem = prepared(
        managed_scenario(25, replicates={"train": 1, "validation": 2, "test": 1}, decisions=DECISIONS), tmp_path
    )
    changes = 0
    for unit in problem.units("validation"):
        base, names = problem.score(PairRule(script.BASE), unit, script.METRIC), problem.env(unit, 0).action_names
        for way, pairs in script.WAYS.items():
            reached, played = script.play(problem, unit, pairs)
            assert set(played) <= set(pairs) and reached <= base * (1 + 1e-6)
            simulated = problem.rollout(Played([names.index(pair) for pair in played]), unit).scores[script.METRIC]
            assert reached == pytest.approx(simulated, rel=1e-5), way
            changes += (played != script.BASE).sum()
    assert changes > 0
