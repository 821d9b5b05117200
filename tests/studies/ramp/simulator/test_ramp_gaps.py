"""Random times between arrivals: laws by hand, traces, the day's course, bad settings, and streams by name."""

import math

import numpy as np
import pytest
from small_graphs import chain

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import JobSettings, published_scenario
from schedlab.studies.ramp.simulator.arrivals import JobPool
from schedlab.studies.ramp.simulator.gaps import GapSettings, gaps_of, trace_digest
from schedlab.studies.ramp.study import STUDY

DRAWS = 40_000
EVENING = [0.0] * 18 + [1.0, 3.0] + [0.0] * 4  # arrivals from 18 to 20 o'clock, three times as many after 19


def law(**values):
    (found,) = gaps_of(validate(GapSettings, values), 0)
    return found


def times(gaps, count, seed=0):
    """The first arrivals of an episode after that of time 0, s."""
    after, now, found = gaps.begin(generator(seed, "gaps")), 0.0, []
    for _ in range(count):
        now += after(now)
        found.append(now)
    return np.array(found)


@pytest.mark.parametrize(
    ("values", "mean", "deviation", "above"),
    [
        ({"kind": "exponential", "mean": 3.0}, 3.0, 3.0, math.exp(-1)),
        ({"kind": "gamma", "mean": 3.0, "variation": 1.0}, 3.0, 3.0, math.exp(-1)),
        # of shape 4: P(x > 4) for a sum of four exponential times of mean 1
        ({"kind": "gamma", "mean": 3.0, "variation": 0.5}, 3.0, 1.5, math.exp(-4) * (1 + 4 + 8 + 32 / 3)),
        ({"kind": "uniform", "low": 0.0, "high": 6.0, "decimals": 3}, 3.0, 6 / math.sqrt(12), 0.5),
    ],
)
def test_gaps_have_the_mean_the_deviation_and_the_tail_of_their_law(values, mean, deviation, above):
    gaps = law(**values)
    assert gaps.mean == pytest.approx(mean)
    for drawn in (gaps.sample(generator(1, "law"), DRAWS), np.diff(times(gaps, DRAWS), prepend=0.0)):
        assert drawn.mean() == pytest.approx(mean, abs=4 * deviation / math.sqrt(DRAWS))
        assert drawn.std() == pytest.approx(deviation, rel=0.03)
        assert (drawn > mean).mean() == pytest.approx(above, abs=2 / math.sqrt(DRAWS))


def trace(folder, text):
    (folder / "arrivals.txt").write_text(text)
    return str(folder / "arrivals.txt")


def test_a_trace_gives_its_gaps_in_order_from_a_drawn_one_on(tmp_path):
    path = trace(tmp_path, "# s\n100\n110 # the second\n\n130\n130\n200\n")
    gaps = law(kind="trace", path=path)
    assert gaps.mean == 25.0
    cycle = [10.0, 20.0, 0.0, 70.0]
    turns = [cycle[start:] + cycle[:start] for start in range(4)]
    begun = [np.diff(times(gaps, 8, seed), prepend=0.0).tolist() for seed in range(12)]
    assert all(any(gaps == turn * 2 for turn in turns) for gaps in begun)
    assert len({tuple(gaps) for gaps in begun}) > 1
    assert gaps.sample(generator(0, "rollouts"), 8).tolist() in [turn * 2 for turn in turns]
    assert law(kind="trace", path=path, mean=50.0).gaps.tolist() == [20.0, 40.0, 0.0, 140.0]


def test_the_bytes_of_a_trace_are_part_of_what_results_rest_on(tmp_path):
    settings = validate(GapSettings, {"kind": "trace", "path": trace(tmp_path, "0\n1\n")})
    before = trace_digest(settings)
    trace(tmp_path, "0\n2\n")
    assert before != trace_digest(settings)
    assert trace_digest(validate(GapSettings, {"kind": "trace", "path": str(tmp_path / "none.txt")})) == ""


def scenario_of(path):
    jobs = {"interarrival": {"kind": "trace", "path": path, "mean": 1000.0}}
    return published_scenario("A", compat=False, jobs=jobs, episodes={"end": 5e3})


def test_the_door_knows_a_scenarios_trace(tmp_path):
    path = trace(tmp_path, "0\n1\n3\n")
    scenario = scenario_of(path)
    assert list(STUDY.check(scenario)) == []
    assert path in [str(need.path) for need in STUDY.requires(scenario)]
    values = STUDY.problem_part(scenario)
    assert values["arrivals_sha256"] == trace_digest(scenario.jobs.interarrival)
    problem = STUDY.problem(values, {"graphs": find_graphs("resources/graphs/a100")})
    unit = problem.units("test")[0]
    assert (
        problem.rollout(RULE_MAKERS["para_max"]({}, problem, 0), unit).scores
        == problem.rollout(RULE_MAKERS["para_max"]({}, problem, 0), unit).scores
    )
    trace(tmp_path, "0\n1\n0.5\n")
    (mistake,) = STUDY.check(scenario)
    assert mistake.where == "jobs.interarrival.path"
    assert "line 3" in mistake.what


@pytest.mark.parametrize(
    ("text", "where"),
    [("0\nten\n", "line 2"), ("5\n\n4\n", "line 3"), ("0\ninf\n", "line 2"), ("7\n", ""), ("7\n7\n", ""), ("", "")],
)
def test_a_wrong_trace_is_refused_with_its_line(tmp_path, text, where):
    with pytest.raises(UserError) as error:
        law(kind="trace", path=trace(tmp_path, text))
    assert str(tmp_path / "arrivals.txt") in error.value.where
    assert where in error.value.where


def test_arrivals_follow_the_rates_of_the_hours():
    """A day of 24 s: 12 arrivals a day, all in two hours of 1 s, 3 of them in the first and 9 in the second."""
    gaps = law(kind="day", mean=2.0, rates=EVENING, day_length=24.0)
    hours = times(gaps, DRAWS) % 24.0
    assert (hours >= 18.0).all()
    assert (hours <= 20.0).all()
    assert (hours > 19.0).mean() == pytest.approx(0.75, abs=2 / math.sqrt(DRAWS))
    assert times(gaps, DRAWS)[-1] / DRAWS == pytest.approx(2.0, rel=0.03)
    assert gaps.sample(generator(0, "rollouts"), DRAWS).mean() == pytest.approx(2.0, rel=0.03)


def test_equal_rates_all_day_are_poisson_arrivals():
    day = times(law(kind="day", mean=5.0, rates=[7.0] * 24), 50)
    assert day == pytest.approx(times(law(kind="exponential", mean=5.0), 50))


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "exponential"},
        {"kind": "exponential", "mean": 0.0},
        {"kind": "exponential", "mean": -1.0},
        {"kind": "exponential", "mean": 1.0, "value": 1.0},
        {"kind": "exponential", "mean": 1.0, "variation": 2.0},
        {"kind": "fixed", "value": 1.0, "mean": 1.0},
        {"kind": "gamma", "mean": 1.0},
        {"kind": "gamma", "mean": 1.0, "variation": 0.0},
        {"kind": "trace"},
        {"kind": "trace", "path": "a.txt", "rates": [1.0] * 24},
        {"kind": "day", "mean": 1.0},
        {"kind": "day", "mean": 1.0, "rates": [1.0] * 23},
        {"kind": "day", "mean": 1.0, "rates": [0.0] * 24},
        {"kind": "day", "mean": 1.0, "rates": [-1.0] + [1.0] * 23},
        {"kind": "poisson", "mean": 1.0},
    ],
)
def test_settings_that_cannot_be_are_refused(values):
    with pytest.raises(UserError):
        validate(GapSettings, values)


@pytest.mark.parametrize(
    "values", [{"kind": "exponential", "mean": 9.0}, {"kind": "day", "mean": 9.0, "rates": EVENING}]
)
def test_a_seed_decides_the_gaps_and_gaps_change_no_other_draw(values):
    def drawn(interarrival, seed):
        settings = validate(
            JobSettings, {"beta": {"kind": "uniform", "low": 0.1, "high": 1.0}, "interarrival": interarrival}
        )
        source, now, found = JobPool([chain(1.0), chain(2.0, 3.0, name="other")], settings, 0).episode(seed), 0.0, []
        for index in range(40):
            job = source.draw(index)
            found.append((job.graph.name, job.beta, now))
            now = source.next_arrival(now)
        return found

    values = values | {"mean": 9.0}
    first = drawn(values, 1)
    assert first == drawn(values, 1)
    assert first != drawn(values, 2)
    fixed = drawn({"kind": "fixed", "value": 9.0}, 1)
    assert [job[:2] for job in first] == [job[:2] for job in fixed]
    assert [job[2] for job in first] != [job[2] for job in fixed]
