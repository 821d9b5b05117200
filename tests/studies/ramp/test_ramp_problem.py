"""The door of the ramp study: units, scores, details, and what its check tells."""

import numpy as np
import pandas as pd
import pytest
from small_graphs import chain, graph, random_graph

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.legacy import REFERENCE
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS, RULES
from schedlab.studies.ramp.scenario import RampScenario, published_scenario
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode
from schedlab.studies.ramp.study import STUDY, problem_values

VALUES = {
    "name": "small",
    "seed": 3,
    "graphs": {"source": "generated"},
    "management": {"illegal_degrees": "round_down"},
    "episodes": {"end": 30000.0, "validation": 1, "test": 2},
}


@pytest.fixture(scope="module")
def problem():
    return RampProblem(validate(RampScenario, VALUES), (chain(2000.0, 3000.0, name="long"), random_graph(2)))


class Whole:
    """A user's own policy: one shard where that is valid."""

    def reset(self, unit):
        del unit
        self.seen = []

    def act(self, observation, mask):
        self.seen.append(observation)
        return int(mask[1])


class Wild(Whole):
    """Chooses what is not valid."""

    def act(self, observation, mask):
        del observation, mask
        return 3


def test_episodes_are_units_with_seeds_of_their_own(problem):
    assert [len(problem.units(split)) for split in ("train", "validation", "test")] == [0, 1, 2]
    assert len({unit.seed for split in ("validation", "test") for unit in problem.units(split)}) == 3


@pytest.mark.parametrize("name", sorted(RULE_MAKERS))
def test_rules_are_scored_by_every_metric(problem, name):
    policy = RULE_MAKERS[name]({"degree": 2} if name == "fixed" else {}, problem, 0)
    unit = problem.units("test")[0]
    outcome = problem.rollout(policy, unit)
    assert set(outcome.scores) <= {metric.name for metric in STUDY.metrics}
    assert 0 <= outcome.scores["blocking_rate"] <= 1
    table = outcome.details["jobs"]
    assert (table["cause"] != "").sum() == pytest.approx(outcome.scores["blocking_rate"] * 31)
    assert table.loc[table["cause"] == "", "jct"].notna().all()
    placed = table[table["cause"].isin(["", "max_acceptable_jct_exceeded"])]
    assert (placed["duration"] >= placed[["communication", "computation"]].max(axis=1) - 1e-9).all()
    assert (placed["duration"] <= placed["communication"] + placed["computation"] + 1e-9).all()
    assert ((table["action"] == 0) == (table["cause"] == "rejected_by_agent")).all()
    assert (table.loc[table["choices"] == 0, "action"] == 0).all()
    assert table.loc[table["cause"] == "op_placement", "duration"].isna().all()
    again = problem.rollout(policy, unit)
    assert again.scores == outcome.scores


def test_a_policy_sees_the_job_and_the_cluster(problem):
    policy = Whole()
    outcome = problem.rollout(policy, problem.units("test")[1])
    seen = policy.seen[-1]
    assert seen["graph_features"].shape == (17 + 17,)
    assert seen["graph_features"].dtype == np.float32
    assert ((seen["graph_features"] >= 0) & (seen["graph_features"] <= 1)).all()
    assert seen["node_features"].shape[1] == 5
    assert ((seen["node_features"] >= 0) & (seen["node_features"] <= 1)).all()
    assert outcome.details["jobs"]["degree"].dropna().eq(1).all()


def test_a_policy_sees_the_mask_that_it_has_to_keep_to():
    """In the vector as beside it, where the mask knows the free blocks."""
    scenario = validate(RampScenario, VALUES | {"management": {"illegal_degrees": "round_down", "mask": "blocks"}})
    simulation = RampProblem(scenario, (chain(2000.0, 3000.0, name="long"),)).simulation
    simulation.reset(0)
    simulation.cluster.taken = 0xFFFFFFFF & ~sum(
        1 << server for server in (0, 3, 13, 18, 22, 25, 28, 31)
    )  # free ones lie far apart
    seen = simulation.observation()
    assert seen["action_mask"].sum() < simulation.observer.mask(simulation.cluster.mounted_workers).sum()
    assert (seen["graph_features"][-17:] == seen["action_mask"]).all()


def test_an_action_that_is_not_valid_is_told(problem):
    with pytest.raises(UserError, match="job 0"):
        problem.rollout(Wild(), problem.units("test")[0])


def test_a_frozen_part_makes_the_same_scenario():
    scenario = validate(RampScenario, VALUES)
    assert validate(RampScenario, problem_values(scenario)) == scenario


GAP = {"kind": "fixed", "value": 5.0}


def rule(target, **params):
    """A rule of a scenario with values of its own."""
    return {"name": "meant", "target": target, "params": params}


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"cluster": {"groups": 2, "racks": 3}}, "cluster"),
        ({"cluster": {"speeds": [1.0, 0.0]}}, "cluster.speeds"),
        ({"cluster": {"speeds": [1.0] * 33}}, "cluster.speeds"),
        ({"cluster": {"memories": [1e9, 0.0]}}, "cluster.memories"),
        ({"cluster": {"memories": [1e9] * 33}}, "cluster.memories"),
        ({"cluster": {"topology": "torus", "contending_racks": "racks"}}, "cluster.contending_racks"),
        ({"cluster": {"topology": "torus", "workers": 2}}, "cluster.workers"),
        ({"management": {"most": 64}}, "management.most"),
        ({"management": {"most": 15}}, "management.most"),
        ({"jobs": {"beta": {"kind": "fixed", "value": 2.0}}}, "jobs.beta"),
        ({"jobs": {"interarrival": {"kind": "fixed", "value": -2.0}}}, "jobs.interarrival"),
        ({"jobs": {"interarrival": {"kind": "fixed", "value": 0.0}}}, "jobs.interarrival"),
        ({"jobs": {"interarrival": {"kind": "pmf", "probabilities": {0.0: 1.0, 5.0: 0.0}}}}, "jobs.interarrival"),
        (
            {"jobs": {"interarrival": {"kind": "one_of", "choices": [GAP, {"kind": "fixed", "value": 0.0}]}}},
            "jobs.interarrival",
        ),
        ({"mode": "reference"}, "reference.legacy"),
        ({"rules": [rule("fixed", degree=3)]}, "rules.0.params.degree"),
        ({"rules": [rule("fixed", degree=12)]}, "rules.0.params.degree"),
        ({"rules": ["para_max", rule("sip_ml", cap=12)]}, "rules.1.params.cap"),
        ({"cluster": {"topology": "torus"}, "rules": [rule("fixed", degree=10)]}, "rules.0.params.degree"),
    ],
)
def test_the_check_names_the_key_of_what_types_cannot_see(changes, where):
    assert where in [error.where for error in STUDY.check(validate(RampScenario, VALUES | changes))]


def test_a_right_scenario_passes_the_check():
    assert list(STUDY.check(validate(RampScenario, VALUES))) == []
    assert list(STUDY.check(validate(RampScenario, VALUES | {"mode": "reference", "legacy": REFERENCE}))) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"management": {"most": 1}, "rules": [rule("fixed", degree=1)]},
        {
            "management": {"most": 12},
            "rules": ["sip_ml", rule("sip_ml", cap=12)],
        },  # beyond 8, the largest that is legal: as para_max
        {"rules": [rule("sip_ml", cap=8), rule("fixed", degree=6)]},
        {"jobs": {"interarrival": {"kind": "uniform", "low": 0.0, "high": 2.0, "decimals": 0}}},
    ],
)
def test_degrees_with_a_block_caps_beyond_all_and_gaps_of_which_some_are_0_pass_the_check(changes):
    assert list(STUDY.check(validate(RampScenario, VALUES | changes))) == []


@pytest.mark.parametrize(
    ("target", "params"), [("fixed", {"degree": 3}), ("sip_ml", {"cap": 12}), ("fixed", {"degree": 18})]
)
def test_a_rule_of_a_degree_without_a_block_is_not_made(problem, target, params):
    with pytest.raises(UserError, match=next(iter(params))):
        RULE_MAKERS[target](params, problem, 0)


def jobs_under(rule, graphs, cluster, **management):
    """The table of jobs of an episode on a cluster of another kind."""
    values = VALUES | {
        "cluster": {"groups": 2, "racks": 2, "servers": 1} | cluster,
        "management": {"most": 4} | management,
    }
    problem = RampProblem(validate(RampScenario, values), graphs)
    return problem.rollout(RULE_MAKERS[rule]({}, problem, 0), problem.units("test")[0]).details["jobs"]


def test_whole_jobs_are_as_fast_as_their_workers():
    """Speeds are repeated over the workers; a job that stays whole sends nothing."""
    for speeds, expected in (([2.0], {2.0}), ([1.0, 4.0], {1.0, 4.0}), ([], {1.0})):
        jobs = jobs_under("sequential", (chain(20.0, 30.0),), {"speeds": speeds})
        assert set(jobs["duration"].dropna().rdiv(jobs["sequential_jct"]).dropna().round(9)) == expected


def test_jobs_stay_where_their_memory_is():
    """Of four servers those that are too small hold no job; where all are, none is placed."""
    forward = chain(50.0, activation=[40e9], parameter=[0.0])  # 80 GB, of both passes
    for memories, most in (([], 4), ([100e9], 4), ([100e9, 50e9], 2), ([50e9], 0)):
        jobs = jobs_under("sequential", (forward,), {"memories": memories})
        placed = jobs[jobs["cause"] != "op_placement"]
        assert (len(placed) > 0) == (most > 0)
        scenario = validate(
            RampScenario,
            VALUES
            | {"cluster": {"groups": 2, "racks": 2, "servers": 1, "memories": memories}, "management": {"most": 4}},
        )
        simulation = Simulation(scenario, (forward,))
        run_episode(simulation, RULES["sequential"], 0)
        taken = {
            running.plan.placement.mask for running in [done.running for done in simulation.cluster.record.completed]
        }
        assert len(taken) <= most
        assert all(mask in (0b0001, 0b0100) for mask in taken) or most == 4


@pytest.mark.parametrize("channels", [1, 2])
def test_two_workers_a_server_run_more_jobs_and_share_links(channels):
    cluster = {"workers": 2, "channels": channels}
    jobs = jobs_under("random", (chain(20.0, 30.0),), cluster)
    assert ("dep_placement" in set(jobs["cause"])) == (channels == 1)
    ends = jobs["time"].where(jobs["cause"] == "")
    held = [jobs.loc[(ends - jobs["jct"] <= now) & (now < ends), "workers"].sum() for now in ends.dropna() - 1e-3]
    assert 4 < max(held) <= 8  # more than a worker of each of the four servers


def test_messages_that_wait_for_each_other_make_jobs_longer():
    """Messages of two branches, from two shards of one op to the whole op behind them."""
    step = graph([(1, 2), (1, 3), (2, 4), (3, 4)], [10.0, 1e-3, 1e-3, 10.0], activation=[4e12] * 4, parameter=[0.0] * 4)
    free, waiting = (
        jobs_under("para_max", (step,), {"memory": 1e15}, contention=contention) for contention in (False, True)
    )
    both = pd.merge(free, waiting, on="job", suffixes=("", "_waiting")).dropna(subset=["duration", "duration_waiting"])
    assert len(both) > 2
    assert (both["duration_waiting"] > both["duration"]).all()


def test_scores_of_an_episode_do_not_hang_from_those_before_it():
    values = {
        "legacy": {"memo_by_degree": True},
        "episodes": {"end": 5e4, "test": 3},
        "management": {"illegal_degrees": "round_down"},
    }
    graphs = read_graphs(find_graphs("resources/graphs/a100"))
    scenario = validate(RampScenario, {"name": "memo", "seed": 0, "graphs": {"source": "generated"}, **values})
    mixed, alone = RampProblem(scenario, graphs), RampProblem(scenario, graphs)
    random = RULE_MAKERS["random"]({}, mixed, 0)
    for unit in mixed.units("test"):
        after_others = mixed.rollout(random, unit).details["jobs"]
    pd.testing.assert_frame_equal(
        after_others, alone.rollout(random, alone.units("test")[-1]).details["jobs"], check_exact=True
    )


def test_the_published_scenario_takes_limits_of_another_kind():
    beta = published_scenario("A", compat=False, jobs={"beta": {"kind": "fixed", "value": 1.0}}).jobs.beta
    assert (beta.kind, beta.value, beta.low) == ("fixed", 1.0, None)
    assert published_scenario("A", compat=False, jobs={"steps": 3}).jobs.beta.low == 0.1
