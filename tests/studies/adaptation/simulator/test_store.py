"""The node store: round trips, damage, several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.simulator.store import NodeStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "family.sqlite"


def test_what_was_saved_is_read_again_by_another_store(path):
    NodeStore(path).save("0001", {"loss": 0.1 + 0.2, "accuracy": 1 / 3}, b"\0state\xff")
    store = NodeStore(path)
    summary = store.summaries()["0001"]
    assert summary.metrics == {"loss": 0.1 + 0.2, "accuracy": 1 / 3}
    assert (summary.has_state, summary.trained) == (True, 1)
    assert store.state("0001") == b"\0state\xff"
    assert store.state("0002") is None


def test_metrics_stay_when_states_are_dropped(path):
    store = NodeStore(path)
    for key in ("a", "b"):
        store.save(key, {"loss": 1.0}, b"state")
    store.drop_states(["a"])
    assert store.state("a") is None and store.state("b") == b"state"
    assert {key: summary.has_state for key, summary in store.summaries().items()} == {"a": False, "b": True}


def test_metrics_can_be_added_later(path):
    store = NodeStore(path)
    store.save("a", {"loss": 1.0}, b"state")
    store.update_metrics("a", {"loss": 1.0, "accuracy": 0.5})
    assert store.summaries()["a"].metrics == {"loss": 1.0, "accuracy": 0.5}
    assert store.state("a") == b"state" and store.trained() == {"a": 1}


def test_training_a_node_again_is_counted(path):
    store = NodeStore(path)
    store.save("a", {"loss": 1.0}, b"one")
    store.save("a", {"loss": 2.0}, b"two")
    assert store.trained() == {"a": 2}
    assert store.state("a") == b"two" and store.summaries()["a"].metrics == {"loss": 2.0}


@pytest.mark.parametrize(("column", "value"), [("state", b"statf"), ("metrics", '{"loss": 1.5}')])
def test_a_damaged_node_counts_as_absent_and_leaves_a_line(path, column, value):
    store = NodeStore(path)
    store.save("a", {"loss": 1.0}, b"state")
    store.save("b", {"loss": 1.0}, b"state")
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE nodes SET {column} = ? WHERE key = 'a'", (value,))
    connection.close()
    lines = []
    store = NodeStore(path, log=lines.append)
    if column == "state":
        assert store.state("a") is None and store.state("b") == b"state"
    else:
        assert set(store.summaries()) == {"b"}
    assert len(lines) == 1 and "node a" in lines[0] and column in lines[0]


def test_a_state_of_another_node_is_no_state_of_this_one(path):
    store = NodeStore(path)
    store.save("a", {}, b"one")
    store.save("b", {}, b"two")
    with sqlite3.connect(path) as connection:
        row = connection.execute("SELECT state, state_hash FROM nodes WHERE key = 'b'").fetchone()
        connection.execute("UPDATE nodes SET state = ?, state_hash = ? WHERE key = 'a'", row)
    connection.close()
    assert store.state("a") is None


def _fill(path, count=40, size=3000):
    store = NodeStore(path)
    for number in range(count):
        store.save(f"{number:04d}", {"loss": float(number)}, bytes([number]) * size)
    store.close()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.3, 0.6, 0.95, 0.999])
def test_a_truncated_file_is_moved_aside_or_its_nodes_are_intact(path, share):
    _fill(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    lines = []
    store = NodeStore(path, log=lines.append)
    kept = store.summaries()
    moved = path.with_name(path.name + ".damaged-1").exists()
    assert moved == any("damaged-1" in line for line in lines)
    assert (
        kept == {}
        if moved or share == 0.0
        else all(summary.metrics == {"loss": float(key)} for key, summary in kept.items())
    )
    assert moved or share == 0.0 or share > 0.95
    assert {store.state(key) for key in kept} <= {None, *(bytes([number]) * 3000 for number in range(40))}
    store.save("0000", {"loss": 5.0}, b"again")
    assert NodeStore(path).state("0000") == b"again"


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_random_damage_never_gives_wrong_values(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damage") / "family.sqlite"
    _fill(path, count=12, size=700)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(content) - 1))
        junk = data.draw(st.binary(min_size=1, max_size=300))
        content[begin : begin + len(junk)] = junk
    path.write_bytes(content)
    store = NodeStore(path)
    for number in range(12):
        key = f"{number:04d}"
        state = store.state(key)
        assert state in (None, bytes([number]) * 700)
    for key, summary in store.summaries().items():
        assert summary.metrics == {"loss": float(key)}
    store.save("0003", {"loss": 3.0}, b"new")
    assert store.state("0003") == b"new"


def test_a_file_that_is_no_database_is_moved_aside_each_time(path):
    for number in (1, 2):
        path.parent.mkdir(exist_ok=True)
        path.write_text("this is a text and not a database " * 50)
        NodeStore(path).save("a", {}, b"x")
        assert path.with_name(f"{path.name}.damaged-{number}").read_text().startswith("this is a text")


def test_damage_while_the_file_is_open_is_mended(path):
    _fill(path)
    lines = []
    store = NodeStore(path, log=lines.append)
    assert len(store.summaries()) == 40
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 3)
    store._connection.execute("PRAGMA cache_size = 0")
    for number in range(40):
        assert store.state(f"{number:04d}") in (None, bytes([number]) * 3000)
    store.save("new", {}, b"x")
    assert store.state("new") == b"x" and any("damaged" in line for line in lines)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "family.sqlite").mkdir()
    with pytest.raises(UserError, match=r"family\.sqlite"):
        NodeStore(tmp_path / "family.sqlite")


def _write_for_ever(path):
    store = NodeStore(path)
    number = len(store.summaries())
    while True:
        store.save(f"{number:05d}", {"loss": float(number)}, number.to_bytes(4, "big") * 500)
        number += 1


def test_a_killed_writer_leaves_whole_nodes(path):
    context = multiprocessing.get_context("fork")
    seen = 0
    for pause in (0.05, 0.11, 0.08, 0.13):
        process = context.Process(target=_write_for_ever, args=(path,))
        process.start()
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        lines = []
        store = NodeStore(path, log=lines.append)
        summaries = store.summaries()
        assert not lines and len(summaries) >= seen
        seen = len(summaries)
        for key, summary in summaries.items():
            assert summary.metrics == {"loss": float(key)} and summary.trained == 1
            assert store.state(key) == int(key).to_bytes(4, "big") * 500
        store.close()
    assert seen > 0


def _write_some(path, name, gate):
    gate.wait()
    store = NodeStore(path)
    for number in range(40):
        store.save(f"{name}{number}", {"loss": 1.0}, b"s" * 2000)


def test_processes_that_write_at_once_lose_nothing(path):
    context = multiprocessing.get_context("fork")
    gate = context.Event()
    processes = [context.Process(target=_write_some, args=(path, name, gate)) for name in "abc"]
    for process in processes:
        process.start()
    gate.set()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(NodeStore(path).summaries()) == 120


def _hold(path, held, release):
    with NodeStore(path).lock():
        held.set()
        release.wait()


def test_the_lock_is_for_one_process_and_dies_with_it(path):
    context = multiprocessing.get_context("fork")
    held, release = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(path, held, release))
    lines = []
    store = NodeStore(path, log=lines.append)
    holder.start()
    assert held.wait(10)
    waiter = context.Process(target=_hold, args=(path, context.Event(), context.Event()))
    waiter.start()
    time.sleep(0.3)
    assert waiter.is_alive()
    waiter.kill()
    waiter.join()
    holder.kill()  # not released: the system frees it
    holder.join()
    with store.lock():
        assert not lines
