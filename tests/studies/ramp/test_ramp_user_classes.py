"""Users' partitioners, placers, schedulers, topologies and arrivals in a scenario: what they decide, and mistakes."""

from pathlib import Path

import numpy as np
import pytest
from small_graphs import chain, graph

from schedlab.config.contract import PolicySpec
from schedlab.config.errors import UserError
from schedlab.stages.policies import make_rule
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import fixed
from schedlab.studies.ramp.scenario import published_scenario
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode
from schedlab.studies.ramp.study import STUDY

CLASSES = '''
import numpy as np

from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.network.torus import Torus


class Last:
    """The last free workers, the shards of all ops on the same ones."""

    def __init__(self, spare=0):
        self.spare = spare

    def place(self, cluster, job, split):
        free = cluster.free_workers()[::-1]
        if len(free) < split.max_degree + self.spare:
            return None
        return np.concatenate([free[: split.degrees[op]] for op in np.argsort(split.first_shard)])


class Drawn(Last):
    """Any workers."""

    def reset(self, random):
        self.random = random

    def place(self, cluster, job, split):
        return self.random.choice(cluster.free_workers(), split.num_shards)


class Taken(Last):
    def place(self, cluster, job, split):
        return np.zeros(split.num_shards, dtype=int)


class Short(Last):
    def place(self, cluster, job, split):
        return [0, 1, 2]


class Far(Last):
    def place(self, cluster, job, split):
        return np.full(split.num_shards, 99)


class Broken(Last):
    def place(self, cluster, job, split):
        return 1 / 0


class Halves:
    """Two shards of long ops."""

    def split(self, cluster, job, most):
        return {op: min(2, most) for op, cost in zip(job.graph.ids.tolist(), job.graph.cost) if cost > 1.0}


class Odd:
    def split(self, cluster, job, most):
        return [3] * job.graph.num_forward


class Many:
    def split(self, cluster, job, most):
        return [most + 2 - most % 2] * job.graph.num_forward


class Named:
    """Ops in the order of a list run first."""

    def __init__(self, first):
        self.first = first

    def priorities(self, cluster, job, split, workers):
        return [self.first.index(name) if name in self.first else -1 for name in split.shard_names]


class Largest:
    """The largest message first."""

    def priorities(self, cluster, job, split, workers):
        return split.dep_size


class Slow(Ramp):
    """RAMP of which each collective takes 5 s more."""

    def collective_time(self, spread, message):
        return super().collective_time(spread, message) + 5.0


class Ring(Torus):
    def __init__(self, groups, racks, servers, workers, **rates):
        super().__init__((groups * racks * servers, 1, 1), **rates)


class Nothing:
    pass


class Pairs:
    """Two arrivals at once, then none for a while."""

    def __init__(self, pause):
        self.mean, self.pause = pause / 2, pause

    def sample(self, rng, size):
        return np.resize([0.0, self.pause], size)

    def begin(self, rng):
        gaps = iter(np.resize([0.0, self.pause], 10_000).tolist())
        return lambda now: next(gaps)


class Backwards(Pairs):
    def begin(self, rng):
        return lambda now: -1.0


class Always:
    def reset(self, unit):
        self.unit = unit

    def decide(self, simulation, mask):
        return 2 if mask[2] and len(simulation.cluster.running) < 3 else 0
'''


ANY = {"beta": {"kind": "fixed", "value": 1.0}}  # a job may take as long as on one worker


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/parts.py").write_text(f"# {tmp_path}\n{CLASSES}")  # a file is loaded once for each content
    monkeypatch.chdir(tmp_path)


def scenario(beta="A", **changes):
    return published_scenario(beta, compat=False, episodes={"end": 20000.0, "test": 1}, **changes)


def own(name, form="mine/parts.py:{}", **params):
    return {"_target_": form.format(name), **params}


def masks(found, degree=4, forward=None):
    """The workers of each accepted job of an episode."""
    simulation = Simulation(found, [forward or chain(20.0, 30.0, name="long")])
    run_episode(simulation, fixed(degree), 5)
    record = simulation.cluster.record
    return [done.running.plan.placement.mask for done in record.completed], record, simulation


@pytest.mark.parametrize("form", ["mine/parts.py:{}", "mine.parts.{}"])
def test_a_users_placer_decides_which_workers_a_job_takes(form):
    (first, *_), record, simulation = masks(scenario(management={"placer": own("Last", form)}))
    assert first == 0b1111 << 28  # the last 4 of 32
    assert not [blocked for blocked in record.blocked if blocked.cause == "op_placement"]
    with pytest.raises(UserError, match="placer"):
        simulation.free_blocks(4)


def test_a_placer_without_room_blocks_the_job_by_its_placement():
    _, record, _ = masks(scenario(management={"placer": own("Last", spare=30)}))
    assert record.blocked and {blocked.cause for blocked in record.blocked} == {"op_placement"}


def test_what_a_placer_draws_depends_on_the_episode_and_not_on_how_often_it_is_asked():
    found = [masks(scenario(management={"placer": own("Drawn"), "mask": mask}))[0] for mask in ("degrees", "blocks")]
    assert found[0] == found[1] and len(set(found[0])) > 1


def test_a_users_partitioner_decides_the_shards_of_each_op():
    forward = chain(2.0, 0.5, name="uneven")  # backward passes take twice as long
    _, record, _ = masks(scenario(management={"partitioner": own("Halves")}), forward=forward)
    jobs = [done.running.plan.split for done in record.completed]
    assert jobs and {tuple(split.degrees.tolist()) for split in jobs} == {(2, 1, 2, 1)}


def one_step(forward, degree=1, **management):
    simulation = Simulation(scenario(management=management), [forward])
    simulation.reset(1)
    plan = simulation.plan(degree)
    return simulation.cluster.times.timing(plan.split, plan.placement).lookahead.time, plan


@pytest.mark.parametrize(("first", "seconds"), [(["2", "3"], 3.0), (["3", "2"], 3.0)])
def test_a_users_scheduler_orders_the_shards_of_a_worker(first, seconds):
    """Two branches on one worker: the ranks are those of the list, and of no list the shortest comes first."""
    forward = graph([(1, 2), (1, 3)], [0.0, 1.0, 2.0], np.zeros(3))
    time, plan = one_step(forward, op_scheduler=own("Named", first=first))
    ranks = dict(zip(plan.split.shard_names, plan.placement.ranks, strict=True))
    assert time == pytest.approx(seconds) and ranks[first[1]] > ranks[first[0]] > ranks["1"]


def test_a_users_scheduler_of_messages_decides_in_contention():
    """8 and 9 GB over one link; who gets the 9 GB computes for 1 s: .0225 s if they go first, else .0425 s."""
    sizes = np.array([8e9, 9e9, 0.0, 0.0])
    forward = graph([(1, 3), (2, 4)], [0.0, 0.0, 0.0, 1.0], np.zeros(4), activation=sizes, parameter=np.zeros(4))
    placer = "class Two:\n    def place(self, cluster, job, split):\n"
    placer += "        return [0 if name in '1278' else 1 for name in split.shard_names]\n"
    Path("two.py").write_text(placer)
    times = {}
    for scheduler in ("srpt", own("Largest")):
        management = {"placer": own("Two", "two.{}"), "dep_scheduler": scheduler, "contention": True}
        times[str(scheduler)] = one_step(forward, **management)[0]
    shortest, largest = times.values()
    assert shortest == pytest.approx(1 + 17e9 / 4e11, rel=1e-5)
    assert largest == pytest.approx(1 + 9e9 / 4e11, rel=1e-5)


def test_a_users_topology_decides_times_and_blocks():
    forward = graph([(1, 2)], [20.0, 20.0], activation=np.array([8e9, 0.0]))
    quick, slow = (
        masks(scenario(cluster={"topology": topology}, jobs=ANY), 2, forward)[1].completed[0].running.duration
        for topology in ("ramp", own("Slow"))
    )
    assert slow > quick + 50 * 5.0
    found = scenario(cluster={"topology": own("Ring"), "groups": 2, "racks": 1, "servers": 5}, management={"most": 4})
    (first, *_), _, simulation = masks(found)
    assert simulation.topology.num_workers == 10 and first == 0b1111
    facts = STUDY.facts(found)
    assert (facts["topology"], facts["workers"]) == ("Ring", 10)


def test_a_users_law_of_arrivals():
    gaps = own("Pairs", pause=3000.0, kind=None, value=None)
    found = scenario(jobs={"interarrival": gaps})
    _, record, simulation = masks(found)
    assert record.arrived == 14 and simulation.pool.mean_gap == 1500.0
    facts = STUDY.facts(found)
    assert (facts["interarrival"], facts["arrivals"]) == (None, "Pairs")
    backwards = scenario(jobs={"interarrival": own("Backwards", pause=10.0)})
    with pytest.raises(UserError, match=r"jobs.interarrival.*Backwards.*-1"):
        masks(backwards)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"management": {"placer": own("Last", "other/parts.py:{}")}}, ("management.placer", "other/parts.py")),
        ({"management": {"placer": own("Lats")}}, ("management.placer", "Lats", "Last")),
        ({"management": {"placer": own("Last", "no.such.module.{}")}}, ("management.placer", "no.such.module")),
        ({"management": {"placer": own("Last", "json.{}")}}, ("management.placer", "json", "Last")),
        ({"management": {"placer": own("Last", "{}")}}, ("management.placer", "MODULE.CLASS")),
        ({"management": {"placer": own("Nothing")}}, ("management.placer", "Nothing", "place")),
        ({"management": {"placer": own("JSONDecoder", "json.{}")}}, ("management.placer", "JSONDecoder", "place")),
        ({"management": {"placer": own("Last", spere=1)}}, ("management.placer", "spere")),
        ({"management": {"partitioner": own("Last")}}, ("management.partitioner", "Last", "split")),
        ({"management": {"op_scheduler": own("Named")}}, ("management.op_scheduler", "first")),
        ({"management": {"dep_scheduler": own("Nothing")}}, ("management.dep_scheduler", "priorities")),
        ({"management": {"placer": own("Last"), "whole_ops": "inside"}}, ("management.placer", "first_fit")),
        ({"management": {"placer": own("Last"), "shaper": "random"}}, ("management.shaper", "none")),
        ({"cluster": {"topology": own("Nothing")}}, ("cluster.topology", "Nothing", "spread")),
        ({"cluster": {"topology": own("Slow", racks=3)}}, ("cluster.topology", "racks")),
        ({"jobs": {"interarrival": own("Nothing")}}, ("jobs.interarrival", "Nothing", "begin")),
        ({"jobs": {"interarrival": own("Pairs", value=1000.0)}}, ("jobs.interarrival", "value", "null")),
    ],
)
def test_mistakes_are_named_with_key_class_and_remedy(changes, named):
    (error,) = STUDY.check(scenario(**changes))
    assert all(word in str(error) for word in named), str(error)


@pytest.mark.parametrize(
    ("part", "name", "named"),
    [
        ("placer", "Taken", "worker 0 holds another job"),
        ("placer", "Far", "no worker 99"),
        ("placer", "Short", "place returned"),
        ("placer", "Broken", r"mine/parts.py:\d+.*ZeroDivisionError"),
        ("partitioner", "Odd", "3 shards"),
        ("partitioner", "Many", "at most 4"),
    ],
)
def test_answers_that_cannot_be_are_refused(part, name, named):
    with pytest.raises(UserError, match=named):
        masks(scenario(management={part: own(name)}, jobs=ANY))


def test_the_content_of_a_class_counts_like_the_configuration(tmp_path):
    parts = STUDY.parts(scenario(management={"placer": own("Last", "mine.parts.{}")}))
    (part,) = parts.values()
    assert str(tmp_path / "mine/parts.py") in part.files
    (plain,) = STUDY.parts(scenario()).values()
    assert plain.files == ("graphs",)


def test_a_users_rule_may_look_at_the_simulation():
    problem = RampProblem(scenario(), [chain(20.0, 30.0, name="long")])
    spec = PolicySpec("mine", "rule", "mine/parts.py:Always", {}, (0,), (), None, "default")
    made = "    def __init__(self, params, problem, seed):\n        self.seed = seed\n"
    Path("mine/parts.py").write_text(Path("mine/parts.py").read_text() + made)
    outcome = problem.rollout(make_rule(STUDY, spec, problem, 0), problem.units("test")[0])
    assert set(outcome.details["jobs"]["action"].dropna()) <= {0, 2} and outcome.scores["blocking_rate"] > 0
    bad = PolicySpec("mine", "rule", "mine/parts.py:Nothing", {}, (0,), (), None, "default")
    with pytest.raises(UserError, match="reset"):
        make_rule(STUDY, bad, problem, 0)


def test_learning_on_tables_is_refused_where_a_users_class_decides():
    problem = RampProblem(scenario(management={"placer": own("Last")}), [chain(20.0, 30.0, name="long")])
    with pytest.raises(UserError, match=r"management\.placer"):
        _ = problem.compiled
