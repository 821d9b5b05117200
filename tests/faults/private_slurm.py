"""A Slurm of one node for a test: everything below one folder, on loopback, with its own ports and munge key, ended by
its own pids.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "squeue", "sbatch", "srun", "scancel", "scontrol")

# No accounting: the executor asks squeue, so that finished jobs must stay visible (MinJobAge). DefMemPerCPU: without it
# a job that
# states no memory is given the node's. The node may pretend to have more cores than the machine (config_overrides).
CONFIGURATION = """\
ClusterName=schedlab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=60
InactiveLimit=0
KillWait=5
MinJobAge=3600
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/log/jobs.txt
DefMemPerCPU=256
NodeName={host} NodeAddr=127.0.0.1 NodeHostname={host} Port={node_port} CPUs={cores} RealMemory={memory} State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """What keeps a private Slurm from running here; "" where nothing does."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if absent:
        return f"no {', '.join(absent)} (Debian: apt-get install slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "a private Slurm needs root"


class PrivateSlurm:
    """Controller, node and munge below a folder (a short path: sockets have at most 107 characters)."""

    def __init__(self, folder: Path, cores: int = 2) -> None:
        self.folder, self.host = folder, socket.gethostname().split(".")[0]
        for name in ("munge", "state", "spool", "log", "bin"):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o711)
        (folder / "munge").chmod(0o711)
        key = folder / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        memory = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20 * 0.9)
        ports = _free_ports(2)
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(
            CONFIGURATION.format(
                folder=folder, host=self.host, cores=cores, memory=memory, controller_port=ports[0], node_port=ports[1]
            )
        )
        # A job step loses SLURM_CONF (the executor clears SLURM_*); its srun takes it from here.
        wrapper = folder / "bin/srun"
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={self.configuration} exec {shutil.which("srun")} "$@"\n')
        wrapper.chmod(0o755)
        self.environment = {"SLURM_CONF": str(self.configuration), "PATH": f"{folder / 'bin'}:{_path()}"}

    def start(self) -> None:
        munge = self.folder / "munge"
        self._daemon(
            "munged",
            f"--key-file={munge / 'key'}",
            f"--socket={munge / 'socket'}",
            f"--pid-file={munge / 'pid'}",
            f"--log-file={munge / 'log'}",
            f"--seed-file={munge / 'seed'}",
            "--num-threads=2",
            "--force",
        )
        self._daemon("slurmctld", "-c", "-f", str(self.configuration))
        self._daemon("slurmd", "-c", "-f", str(self.configuration), "-N", self.host)
        self._wait_until_idle()

    def restart_controller(self, pause: float = 2.0) -> None:
        """End the controller as an operator would, and start it again with the state that it saved."""
        self._end(self.folder / "slurmctld.pid")
        time.sleep(pause)
        self._daemon("slurmctld", "-f", str(self.configuration))

    def jobs(self) -> list[tuple[str, str]]:
        """Id and state of all jobs that the controller knows."""
        lines = self.ask("squeue", "--all", "--states=all", "--noheader", "--format=%A %T").splitlines()
        return [tuple(line.split()) for line in lines]

    def ask(self, *command: str) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **self.environment}, timeout=60, check=True
        )
        return done.stdout

    def stop(self) -> None:
        """End what was started, by its own pid files only, jobs first."""
        if (self.folder / "slurmctld.pid").exists():
            subprocess.run(["scancel", "--me"], env={**os.environ, **self.environment}, timeout=60, check=False)
        for name in ("slurmd.pid", "slurmctld.pid", "munge/pid"):
            self._end(self.folder / name)

    def _daemon(self, *command: str) -> None:
        """Start a program that goes to the background by itself."""
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **self.environment}, timeout=60, check=False
        )
        assert done.returncode == 0, (command[0], done.stderr)

    def _end(self, pid_file: Path, patience: float = 20.0) -> None:
        if not pid_file.exists() or not pid_file.read_text().strip():
            return
        pid = int(pid_file.read_text())
        for sent in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + patience
            try:
                os.kill(pid, sent)
                while time.monotonic() < deadline:
                    os.kill(pid, 0)
                    time.sleep(0.1)
            except ProcessLookupError:
                return

    def _wait_until_idle(self, patience: float = 60.0) -> None:
        deadline = time.monotonic() + patience
        state = ""
        while time.monotonic() < deadline:
            asked = subprocess.run(
                ["sinfo", "--noheader", "--format=%T"],
                capture_output=True,
                text=True,
                env={**os.environ, **self.environment},
                check=False,
            )
            state = asked.stdout.strip() or asked.stderr.strip()
            if state == "idle":
                return
            time.sleep(0.1)
        logs = "\n".join(path.read_text()[-1500:] for path in sorted((self.folder / "log").glob("*.log")))
        raise AssertionError(f"the node is '{state}', not idle:\n{logs}")


def _free_ports(count: int) -> list[int]:
    """Ports of loopback that nothing listens on now."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _path() -> str:
    """The daemons live where an ordinary user does not look."""
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"
