#!/usr/bin/env python3
"""Stands in for a `batsim` binary: takes its arguments, speaks a recorded conversation over ZeroMQ, writes its output
files.

Environment: STAND_IN_CASE a folder of a recorded case; STAND_IN_VERSION what --version prints; STAND_IN_CALL a file for
the arguments and the process id; STAND_IN_MODE: silent, garbage, odd_events, dies, deadlock, fails_at_end, no_files,
with_child (a child that ignores SIGTERM).
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import zmq

MODE = os.environ.get("STAND_IN_MODE", "")
if "--version" in sys.argv:
    print(os.environ.get("STAND_IN_VERSION", "v4.2.1"))
    sys.exit()

parser = argparse.ArgumentParser()
parser.add_argument("-p", required=True)
parser.add_argument("-w", action="append", required=True)
parser.add_argument("-e", required=True)
parser.add_argument("-s", required=True)
parser.add_argument("-m", default="master_host")
parser.add_argument("-r")
for flag in (
    "energy",
    "forward-unknown-events",
    "enable-dynamic-jobs",
    "acknowledge-dynamic-jobs",
    "enable-profile-reuse",
):
    parser.add_argument(f"--{flag}", action="store_true")
for flag in (
    "forward-profiles-on-submission",
    "enable-compute-sharing",
    "mmax-workload",
    "disable-schedule-tracing",
    "disable-storage-sharing",
):
    parser.add_argument(f"--{flag}", action="store_true")
for option in ("events", "mmax", "sched-cfg"):
    parser.add_argument(f"--{option}")
arguments = parser.parse_args()
child = None
if MODE == "with_child":
    child = subprocess.Popen(
        [sys.executable, "-c", "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"]
    )
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path(os.environ["STAND_IN_CALL"]).write_text(
    json.dumps({"arguments": vars(arguments), "pid": os.getpid(), "child": child.pid if child else None})
)
socket = zmq.Context().socket(zmq.REQ)
socket.linger = 0
socket.connect(arguments.s)
case = Path(os.environ["STAND_IN_CASE"])
lines = [json.loads(line) for line in (case / "protocol.jsonl").read_text().splitlines()]
said = [line["msg"] for line in lines if line["dir"] == "batsim->sched"]
for number, message in enumerate(said):
    if number == 3 and MODE in ("silent", "with_child"):
        time.sleep(600)
    if number == 3 and MODE == "dies":
        print("Batsim's last words", file=sys.stderr)
        os.abort()
    if number == 4 and MODE == "deadlock":
        print("[1.0] Deadlock detected", file=sys.stderr)
        sys.exit(1)
    odd = {"garbage": b"\x00\x01binary", "odd_events": b'{"now": 0, "events": [{"type": "JOB_SUBMITTED", "data": {}}]}'}
    socket.send(odd.get(MODE) or json.dumps(message).encode())
    json.loads(socket.recv())
if MODE != "no_files":
    for file in sorted(case.glob("out_*.csv")):
        shutil.copy(file, arguments.e + file.name.removeprefix("out"))
sys.exit(3 if MODE == "fails_at_end" else 0)
