"""The simulator behind a ZeroMQ socket, as Batsim stands behind one: for schedulers in any language."""

from __future__ import annotations

from schedlab.batsim.backends.backend import Backend
from schedlab.batsim.backends.json_socket import JsonSocket, NoAnswer
from schedlab.batsim.backends.pybatsim_bus import SchedulerFailed


def serve(backend: Backend, socket: JsonSocket, answer_limit: float | None) -> int:
    """Say the back end's messages on a REQ socket and hand the answers over, until SIMULATION_ENDS was answered.

    answer_limit   wall-clock seconds for each answer, the first included, for which the scheduler must also be started;
                   None: no limit

    Returns the number of messages. Raises SchedulerFailed where an answer does not come, ProtocolError where one breaks
    the rules.
    """
    count = 0
    while (message := backend.next_message()) is not None:
        try:
            socket.send(message, answer_limit)
            answer = socket.receive(answer_limit)
        except NoAnswer:
            what = "no scheduler answered" if count == 0 else "the scheduler did not answer the message"
            raise SchedulerFailed(
                f"{what} at {message['now']:g} s within {answer_limit:g} s, at {socket.endpoint}"
            ) from None
        backend.answer(answer)
        count += 1
    return count
