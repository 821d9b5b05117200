"""The simulator behind a socket, with schedulers at the other end."""

from __future__ import annotations

import json
import threading
import time

import batsim.batsim
import numpy as np
import pytest
import zmq
from tiny_simulator import TinySimulator

from conformance.batsim_backend import Replay
from schedlab.batsim.backends.backend import message_text
from schedlab.batsim.backends.json_socket import JsonSocket, check_endpoint, serve
from schedlab.batsim.backends.pybatsim_bus import SchedulerFailed
from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.scheduler_loading import load_scheduler
from schedlab.config.errors import UserError

JOBS = [(1.0, 2, 10.0, 5.0), (2.0, 4, 10.0, 3.0), (3.0, 1, 10.0, 4.0)]


def free_endpoint():
    with JsonSocket("REP", "tcp://127.0.0.1:*", bind=True) as socket:
        return socket.endpoint


def in_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def test_pybatsim_with_its_own_socket_works_at_the_other_end():
    endpoint = free_endpoint()
    scheduler = load_scheduler("fcfs")
    thread = in_thread(lambda: batsim.batsim.Batsim(scheduler, endpoint, 5000).start())
    simulation = TinySimulator(4, JOBS)
    with JsonSocket("REQ", endpoint, bind=False) as socket:
        serve(simulation, socket, 10.0)
    thread.join(5)
    assert simulation.starts == {0: 1.0, 1: 6.0, 2: 9.0}


def test_a_scheduler_of_plain_zeromq_may_connect_where_we_bind():
    with JsonSocket("REQ", "tcp://127.0.0.1:*", bind=True) as socket:
        thread = in_thread(execute_at_once, socket.endpoint, 4)
        simulation = TinySimulator(1, [(1.0, 1, 10.0, 5.0)])
        assert serve(simulation, socket, 10.0) == 4
        thread.join(5)
    assert simulation.ends == {0: 6.0}


def execute_at_once(endpoint, messages):
    rep = zmq.Context.instance().socket(zmq.REP)
    rep.linger = 0
    rep.connect(endpoint)
    for _ in range(messages):
        message = json.loads(rep.recv())
        jobs = [event["data"]["job_id"] for event in message["events"] if event["type"] == "JOB_SUBMITTED"]
        decisions = [
            {"timestamp": message["now"], "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": "0"}} for job in jobs
        ]
        rep.send_string(json.dumps({"now": message["now"], "events": decisions}))
    rep.close()


def test_numpy_numbers_can_be_sent_and_what_json_cannot_hold_is_told():
    assert message_text({"now": np.float64(1.5), "events": [np.int64(3)]}) == '{"now":1.5,"events":[3]}'
    for odd in ({1}, float("nan"), float("inf")):
        with pytest.raises(ProtocolError, match="cannot be sent"):
            message_text({"now": 0.0, "events": [odd]})


def test_a_scheduler_that_never_comes_is_told_after_the_limit():
    with (
        JsonSocket("REQ", free_endpoint(), bind=False) as socket,
        pytest.raises(SchedulerFailed, match=r"no scheduler answered.*0\.3 s"),
    ):
        serve(TinySimulator(1, JOBS[:1]), socket, 0.3)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"\xff\xfe", "not a JSON message"),
        (b"[1]", "not a message"),
        (b'{"now": 1}', "not a message"),
        (b'{"now": "1", "events": []}', "not a message"),
        (b'{"now": NaN, "events": []}', "NaN is no number of JSON"),
        (b"[" * 100000, "not a JSON message"),
        (b'{"now": 1, "events": [], "now": 2}', "twice"),
        (b'{"now": 1, "events": [{"type": "NOTIFY", "timestamp": 1, "data": {"type": "a", "type": "b"}}]}', "twice"),
        (b'{"now": 1e999, "events": []}', "not a JSON message"),
    ],
)
def test_an_answer_that_is_no_message_is_refused(answer, message):
    def answer_once(endpoint):
        rep = zmq.Context.instance().socket(zmq.REP)
        rep.connect(endpoint)
        rep.recv()
        rep.send(answer)
        rep.close()

    with JsonSocket("REQ", "tcp://127.0.0.1:*", bind=True) as socket:
        thread = in_thread(answer_once, socket.endpoint)
        with pytest.raises(ProtocolError, match=message):
            serve(Replay([{"now": 0.0, "events": []}]), socket, 5.0)
        thread.join(5)


def test_an_answer_of_several_parts_is_refused_at_once():
    def answer_once(endpoint):
        rep = zmq.Context.instance().socket(zmq.REP)
        rep.connect(endpoint)
        rep.recv()
        rep.send_multipart([b'{"now": 0,', b' "events": []}'])
        rep.close()

    with JsonSocket("REQ", "tcp://127.0.0.1:*", bind=True) as socket:
        thread = in_thread(answer_once, socket.endpoint)
        began = time.monotonic()
        with pytest.raises(ProtocolError, match="2 parts"):
            serve(Replay([{"now": 0.0, "events": []}]), socket, 20.0)
        assert time.monotonic() - began < 10
        thread.join(5)


@pytest.mark.parametrize("endpoint", ["tcp://localhost:28000", "tcp://127.0.0.1:*", "tcp://[::1]:5", "ipc:///tmp/x"])
def test_endpoints_of_this_machine_are_taken(endpoint):
    check_endpoint(endpoint, anywhere=False)


@pytest.mark.parametrize("endpoint", ["tcp://*:28000", "tcp://0.0.0.0:28000", "tcp://10.0.0.1:5", "tcp://node7:28000"])
def test_endpoints_that_others_reach_need_leave(endpoint):
    with pytest.raises(UserError, match=r"can be reached by other machines.*--anywhere"):
        check_endpoint(endpoint, anywhere=False)
    check_endpoint(endpoint, anywhere=True)


@pytest.mark.parametrize(
    "endpoint", ["localhost:28000", "tcp://localhost", "tcp://localhost:99999", "http://localhost:1", ""]
)
def test_what_is_no_endpoint_is_told(endpoint):
    with pytest.raises(UserError, match="is no endpoint"):
        check_endpoint(endpoint, anywhere=True)


def test_a_taken_port_is_told():
    with (
        JsonSocket("REP", "tcp://127.0.0.1:*", bind=True) as taken,
        pytest.raises(UserError, match=r"cannot bind tcp://127\.0\.0\.1:"),
    ):
        JsonSocket("REQ", taken.endpoint, bind=True)
