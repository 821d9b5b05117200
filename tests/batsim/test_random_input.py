"""Random decisions and random events files: a simulation that goes on or an error for people, never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_runs import platform, workload

from schedlab.batsim.backends.backend import message_text
from schedlab.batsim.files.workload import read_events
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.config.errors import UserError

PROFILES: dict[str, Any] = {
    "d": {"type": "delay", "delay": 2},
    "p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e3},
    "c": {"type": "composed", "seq": ["d", "p"], "repeat": 2},
    "r": {"type": "recv", "regex": "a.*", "success": "d", "failure": "", "timeout": ""},
}
JOBS = [
    {"profile": "d"},
    {"profile": "p", "res": 2, "walltime": 3},
    {"profile": "c", "subtime": 1},
    {"profile": "r", "walltime": 9},
]
POWER = '<prop id="wattage_per_state" value="9:9:20,5:5:10,1:1:1,3:3:3"/><prop id="sleep_pstates" value="2:3:3"/>'
STORAGE = '<host id="s" speed="1Gf"><prop id="role" value="storage"/></host>'

JOB_IDS = st.sampled_from(["w0!0", "w0!1", "w0!2", "w0!3", "n!1"])
HOSTS = st.sampled_from(["0", "1", "0-1", "2-3", "0-3", "4", ""])
NAMES = st.sampled_from(["d", "p", "c", "r", "q", "w0!d", "n!q", "n"])
atoms = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | HOSTS | NAMES | JOB_IDS
anything = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES | HOSTS, inner, max_size=2), max_leaves=4
)


def often(likely: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What belongs there or, less often, anything."""
    return st.integers(0, 9).flatmap(lambda digit: likely if digit else anything)


new_profiles = st.sampled_from(
    [{"type": "delay", "delay": 1}, {"type": "composed", "seq": ["q", "d"]}, {"type": "recv", "success": "x"}]
)
new_jobs = st.fixed_dictionaries(
    {"profile": NAMES, "res": st.integers(0, 3)}, optional={"walltime": st.sampled_from([-1, 1, 0])}
)
extra_io = st.fixed_dictionaries({"alloc": HOSTS, "profile_name": NAMES}, optional={"profile": new_profiles})
FIELDS = {
    "EXECUTE_JOB": {"job_id": JOB_IDS, "alloc": HOSTS},
    "REJECT_JOB": {"job_id": JOB_IDS},
    "KILL_JOB": {"job_ids": st.lists(JOB_IDS, max_size=2)},
    "CALL_ME_LATER": {"timestamp": st.floats(0, 20)},
    "SET_RESOURCE_STATE": {"resources": HOSTS, "state": st.sampled_from("01234")},
    "QUERY": {"requests": st.just({"consumed_energy": {}})},
    "REGISTER_PROFILE": {"workload_name": NAMES, "profile_name": NAMES, "profile": new_profiles},
    "REGISTER_JOB": {"job_id": JOB_IDS, "job": new_jobs},
    "NOTIFY": {"type": st.sampled_from(["registration_finished", "continue_registration"])},
    "SET_JOB_METADATA": {"job_id": JOB_IDS, "metadata": st.text(max_size=3)},
    "CHANGE_JOB_STATE": {"job_id": JOB_IDS, "job_state": st.sampled_from(["RUNNING", "REJECTED", "COMPLETED_KILLED"])},
    "TO_JOB_MSG": {"job_id": JOB_IDS, "msg": st.sampled_from(["a", "b"])},
}
MORE = {
    "EXECUTE_JOB": {
        "mapping": often(st.dictionaries(st.sampled_from("012"), st.integers(0, 1), max_size=2)),
        "storage_mapping": often(st.just({"a": 4})),
        "additional_io_job": often(extra_io),
    }
}


def data_of(kind: str) -> st.SearchStrategy[Any]:
    fields = st.fixed_dictionaries(
        {name: often(values) for name, values in FIELDS[kind].items()}, optional=MORE.get(kind, {})
    )
    return often(st.tuples(st.just(kind), fields))


decisions = st.sampled_from(sorted(FIELDS)).flatmap(data_of)
switches = ("energy", "dynamic_jobs", "acknowledge_dynamic_jobs", "profile_reuse", "compute_sharing", "control_latency")


@given(
    replies=st.lists(st.lists(decisions, max_size=3), max_size=8),
    options=st.fixed_dictionaries(dict.fromkeys(switches, st.booleans())),
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_decisions_are_carried_out_or_told(replies: list[list[Any]], options: dict[str, bool]) -> None:
    place = platform(4, POWER, speed="1Gf,0.5Gf,1f,0.5f", more=STORAGE)
    simulation = Simulation(place, [workload(JOBS, PROFILES)], Options(**options))
    said, last = iter(replies), 0.0
    try:
        while (message := simulation.next_message()) is not None:
            assert message["now"] >= last
            assert message_text(message)
            last = message["now"]
            events = [
                dict(zip(("type", "data"), drawn, strict=False)) if isinstance(drawn, tuple) else drawn
                for drawn in next(said, [])
            ]
            stamped = [{"timestamp": last, **event} if isinstance(event, dict) else event for event in events]
            simulation.answer({"now": last, "events": stamped})
    except UserError as error:
        assert str(error)


@given(
    lines=st.lists(
        often(st.fixed_dictionaries({"type": NAMES, "timestamp": st.floats(0, 9)})).map(json.dumps)
        | st.text(max_size=9)
    )
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_events_files_end_in_events_or_an_error_for_people(lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "events").write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    try:
        events = read_events(tmp_path / "events", 4, forward_unknown=True)
    except UserError as error:
        assert "events" in str(error)
    else:
        assert [event.timestamp for event in events] == sorted(event.timestamp for event in events)
