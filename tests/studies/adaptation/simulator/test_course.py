"""The course of runs: epochs that fit, decisions, changes of resources."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scenarios import PUBLISHED_GROWTH, part, plan, scenario, short

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.simulator.course import Node, all_runs, one_run, trunk_run
from schedlab.studies.adaptation.simulator.timing import Timing


def runs_of(settings_):
    return {run.sequence: run for run in all_runs(*plan(settings_))}


def test_the_trunk_runs_to_the_end_of_the_budget():
    settings_ = scenario(budget=45.0, adapt_at=10.0)
    run = trunk_run(settings_, architecture(settings_.model), Timing(settings_.timing))
    assert [step.time_left for step in run.steps] == [45.0, 35.0, 25.0, 15.0]
    assert [step.node for step in run.steps] == [Node(1), Node(2), Node(3), Node(4)]
    assert not any(step.events or step.restart or step.action is not None for step in run.steps)


@pytest.mark.parametrize(("adapt_at", "epochs"), [(0.0, 0), (9.99, 0), (10.0, 1), (60.0, 6), (69.9, 6)])
def test_as_many_trunk_epochs_as_fit_in_front_of_the_adaptation_point(adapt_at, epochs):
    course, start = plan(scenario(adapt_at=adapt_at))
    assert start.node == Node(epochs)
    assert course.time_left_us(start) == round((240 - adapt_at) * 1e6)


def test_an_epoch_runs_if_and_only_if_its_full_charge_fits():
    runs = runs_of(scenario(adapt_at=190.0))
    assert [step.time_left for step in runs["000"].steps] == [50.0, 35.0]  # 15 s, 20 s; 25 s do not fit into 15 s
    assert [step.time_left for step in runs["333"].steps] == [50.0, 40.0, 30.0, 20.0, 10.0]  # the last fits exactly
    assert [step.time_left for step in runs["030"].steps] == [50.0, 35.0, 20.0]
    assert runs["000"].steps == runs["003"].steps


def test_sequences_come_in_lexicographic_order_each_once():
    sequences = [run.sequence for run in all_runs(*plan(scenario()))]
    assert sequences == sorted(sequences) and len(set(sequences)) == len(sequences) == 64
    assert (sequences[0], sequences[-1]) == ("000", "333")


def test_history_holds_growth_with_its_epochs_and_no_trace_of_doing_nothing():
    runs = runs_of(scenario())
    assert runs["313"].steps[-1].node.history == ((7, "deepen-1"),)
    assert runs["201"].steps[-1].node.history == ((6, "deepen-2"), (7, "deepen-0"), (8, "deepen-1"))
    assert runs["333"].steps[-1].node == Node(24)
    assert runs["313"].steps[-1].architecture.insertions == (0, 1, 0)
    assert runs["313"].steps[1].node.key == "0008 7:deepen-1"


def test_decisions_may_be_spread():
    runs = runs_of(scenario(decision_every=4))
    assert [step.action for step in runs["012"].steps][:10] == [0, None, None, None, 1, None, None, None, 2, None]
    assert runs["012"].steps[-1].node.history == ((6, "deepen-0"), (10, "deepen-1"), (14, "deepen-2"))


def test_only_growth_restarts_where_doing_nothing_continues():
    steps = runs_of(scenario())["303"].steps
    assert [step.restart for step in steps[:5]] == [False, True, False, False, False]


def test_every_epoch_restarts_as_published():
    steps = runs_of(scenario(growth=PUBLISHED_GROWTH))["333"].steps
    assert len(steps) == 18 and all(step.restart for step in steps)


def test_a_do_nothing_that_resets_does_so_where_it_is_decided():
    steps = runs_of(scenario(growth={"optimizer": "fresh", "noop": "reset"}, decision_every=2))["333"].steps
    assert [step.restart for step in steps[:7]] == [True, False, True, False, True, False, False]


def test_the_way_back_has_the_network_before_the_last_up_and_a_teacher():
    runs = runs_of(scenario(decisions=2, changes=[{"time": 118.0, "change": "down"}]))
    steps = runs["03"].steps  # 15 s an epoch from 60 s on: 60, 75, 90, then 105 + 15 is later than 118
    assert [step.time_left for step in steps] == [180.0, 165.0, 150.0, *(122.0 - 10 * epoch for epoch in range(12))]
    down = steps[3]
    assert down.events == ("down",) and down.restart and not down.plenty
    assert down.returns_to == Node(6) and down.teacher == down.parent == steps[2].node
    assert down.architecture.insertions == (0, 0, 0)
    assert down.node.history == ((6, "deepen-0"), (9, "down"))
    assert [step.epochs_down for step in steps[3:6]] == [0, 1, 2]
    assert {step.teacher for step in steps[3:]} == {steps[2].node}
    assert not any(step.restart for step in steps[4:])


def test_no_teacher_where_soft_targets_have_no_weight():
    runs = runs_of(scenario(changes=[{"time": 118.0, "change": "down"}], growth={"soft_target_weight": 0.0}))
    assert not any(step.teacher for run in runs.values() for step in run.steps)


def test_decisions_go_on_with_a_second_up():
    changes = [{"time": 80.0, "change": "down"}, {"time": 120.0, "change": "up"}, {"time": 200.0, "change": "down"}]
    steps = runs_of(scenario(decisions=3, changes=changes))["210"].steps
    assert [step.events for step in steps if step.events] == [
        ("deepen-2",), ("down",), ("up", "deepen-0"), ("down",)
    ]  # fmt: skip  # decision 1 was taken at 70.5 s for an epoch that 80 s interrupted
    first = next(step for step in steps if step.events == ("deepen-2",))
    assert first.time_left == 180.0  # 10.5 s; the next one would end at 81 s
    again = next(step for step in steps if "up" in step.events)
    assert again.time_left == 120.0 and again.teacher is None and again.returns_to is None
    last = [step for step in steps if step.events == ("down",)][1]
    assert last.returns_to == again.parent and last.architecture.insertions == (0, 0, 0)


def test_a_stretch_without_room_for_an_epoch_passes_without_effect():
    changes = [{"time": 100.0, "change": "down"}, {"time": 104.0, "change": "up"}]
    runs = runs_of(scenario(decisions=1, changes=changes))
    assert all("down" not in step.events and "up" not in step.events for run in runs.values() for step in run.steps)
    assert [step.time_left for step in runs["3"].steps][3:6] == [150.0, 136.0, 126.0]


def test_one_run_is_the_run_of_its_sequence():
    course, start = plan(scenario(decision_every=2))
    runs = {run.sequence: run for run in all_runs(course, start)}
    for sequence in ("000", "132", "333", "320"):
        assert (
            one_run(course, start, lambda _a, decision, _s, _t, sequence=sequence: int(sequence[decision]))
            == runs[sequence]
        )


def test_a_policy_is_told_architecture_decision_time_and_actions():
    told = []
    course, start = plan(scenario())
    one_run(course, start, lambda *values: told.append(values) or len(told) - 1)
    assert [(a.insertions, *rest) for a, *rest in told] == [
        ((0, 0, 0), 0, 180.0, ()), ((1, 0, 0), 1, 165.0, (0,)), ((1, 1, 0), 2, 148.5, (0, 1))
    ]  # fmt: skip


def test_decisions_that_are_never_due_are_written_as_doing_nothing():
    course, start = plan(short(decision_every=4))
    assert one_run(course, start, lambda *_: 2).sequence == "23"


def test_widening_needs_a_timing_with_a_price_for_it():
    with pytest.raises(UserError, match="timing"):
        plan(scenario(actions=["widen-0"]))
    course, _ = plan(scenario(actions=["widen-0", "deepen-1"], timing=part("gpu/flops.yaml")))
    assert course.actions == ("widen-0", "deepen-1")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"actions": ["deepen-7"]}, "deepen-7|7"),
        ({"actions": ["widen-1"], "timing": "flops", "changes": [{"time": 100.0, "change": "down"}]}, "changes"),
        ({"actions": ["grow-1"]}, "grow-1"),
        ({"actions": ["deepen-1", "deepen-1"]}, "actions"),
        ({"adapt_at": 240.0}, "adapt_at"),
        ({"changes": [{"time": 50.0, "change": "down"}]}, "changes"),
        ({"changes": [{"time": 150.0, "change": "up"}]}, "changes"),
        ({"growth": {"optimizer": "fresh_every_decision"}}, "growth"),
        ({"adapt_at": 228.0}, "adapt_at"),
        ({"jobs": [1, 1]}, "jobs"),
    ],
)
def test_impossible_scenarios_are_refused_with_a_reason(changes, match):
    if isinstance(changes.get("timing"), str):
        changes = changes | {"timing": part("gpu/flops.yaml")}
    with pytest.raises(UserError, match=match):
        all_runs(*plan(scenario(**changes)))


@settings(max_examples=12, deadline=None)
@given(
    adapt_at=st.integers(0, 150),
    decisions=st.integers(1, 3),
    every=st.integers(1, 4),
    times=st.lists(st.integers(1, 80), max_size=3),
)
def test_charges_stay_within_their_stretches(adapt_at, decisions, every, times):
    ends = [adapt_at + sum(times[: count + 1]) for count in range(len(times))]
    ends = [end for end in ends if end < 240]
    changes = [{"time": float(end), "change": ("down", "up")[number % 2]} for number, end in enumerate(ends)]
    settings_ = scenario(adapt_at=float(adapt_at), decisions=decisions, decision_every=every, changes=changes)
    limits = [*(float(end) for end in ends), 240.0]
    for run in all_runs(*plan(settings_)):
        clock, nodes = float(adapt_at), set()
        for step in run.steps:
            begin = 240.0 - step.time_left
            assert begin >= clock - 1e-9
            clock = begin + step.seconds.total
            stretch = next(number for number, limit in enumerate(limits) if begin < limit)
            assert clock <= limits[stretch] + 1e-9
            assert step.plenty == (stretch % 2 == 0)
            assert step.plenty or step.action is None
            nodes.add(step.node)
        assert len(nodes) == len(run.steps)
        taken = [step.action for step in run.steps if step.action is not None]
        assert len(taken) <= decisions
