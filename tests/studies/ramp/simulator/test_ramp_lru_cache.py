"""What the ramp study keeps: bounds, what is dropped first, and that nothing computed hangs from it."""

import pytest

from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.network import communication
from schedlab.studies.ramp.network.communication import CommunicationModel
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.rules import RULES
from schedlab.studies.ramp.scenario import ON_SHIPPED, SHIPPED, published_scenario
from schedlab.studies.ramp.simulator.lru_cache import LruCache
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode


def asked(kept, key, weight, made):
    """Ask for a key whose value is its weight; write down what was made."""
    return kept.get(key, lambda: made.append(key) or weight, lambda value: value)


def test_the_least_recently_used_goes_first_and_weights_stay_within_the_bound():
    kept, made = LruCache(10), []
    for key, weight in (("a", 4), ("b", 4), ("a", 4), ("c", 4)):  # a is used again, so that b goes
        assert asked(kept, key, weight, made) == weight
    assert made == ["a", "b", "c"]
    assert len(kept) == 2
    asked(kept, "a", 4, made)
    asked(kept, "c", 4, made)
    assert made == ["a", "b", "c"]
    asked(kept, "b", 4, made)
    assert made == ["a", "b", "c", "b"]


def test_a_heavy_value_drives_out_as_many_as_it_takes_and_is_kept_however_heavy():
    kept, made = LruCache(10), []
    for key in "abcde":
        asked(kept, key, 2, made)
    asked(kept, "f", 5, made)
    assert len(kept) == 3  # d, e and f: 9
    asked(kept, "d", 2, made)
    asked(kept, "g", 50, made)
    assert len(kept) == 1
    asked(kept, "g", 50, made)
    assert made == [*"abcdefg"]
    asked(kept, "a", 2, made)
    assert len(kept) == 1  # the heavy one is gone


def test_without_weights_values_are_counted():
    kept = LruCache(3)
    found = [kept.get(number, lambda n=number: n * n) for number in (1, 2, 3, 4)]
    assert (found, len(kept)) == ([1, 4, 9, 16], 3)


def test_pairs_of_servers_take_a_byte_each():
    topology = Ramp(16, 16, 2)
    model, servers = CommunicationModel(topology), tuple(range(0, 512, 4))
    codes, spreads = model._pair_spreads(servers)
    assert codes.nbytes == 128 * 128
    for row, column in ((0, 1), (5, 90), (127, 3)):
        assert spreads[codes[row, column]] == topology.spread((servers[row], servers[column]))


@pytest.mark.parametrize("most", [0, 3000])
def test_an_episode_hangs_from_nothing_that_is_kept(monkeypatch, most):
    def statistics():
        scenario = published_scenario("A", compat=False, **ON_SHIPPED, episodes={"end": 3e4})
        simulation = Simulation(scenario, read_graphs(find_graphs(SHIPPED)))
        found = run_episode(simulation, RULES["random"], 1)
        return found, simulation._times.communication

    expected, kept = statistics()
    monkeypatch.setattr(communication, "MOST_BYTES_KEPT", most)
    found, fewer = statistics()
    assert found == expected
    assert len(fewer._pairs) < len(kept._pairs)
    assert len(fewer._spreads) < len(kept._spreads)
