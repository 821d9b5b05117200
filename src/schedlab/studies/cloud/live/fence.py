"""The part of a run's limits that the kernel enforces, where this machine lets a user ask for it.

`process` watches every run. On Linux with unprivileged user namespaces, a run also has its own processes, `/proc`,
`/dev/shm` and `/tmp` (unshare of util-linux, user_namespaces(7)): it sees and signals no other process, all its
processes end with it, and files in memory are bounded. With a systemd that delegates control groups, a scope bounds the
memory of all its processes together, files in memory included (systemd-run, cgroups(7)).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OPTIONS = ("--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
SHARED_MEMORY, TEMPORARY = "/dev/shm", "/tmp"
OVERHEAD = 64 << 20  # bytes of the programs around the script
PATIENCE = 20  # s that a try may take


@dataclass(frozen=True)
class Fence:
    """What the kernel enforces beside what is watched.

    namespaces     own processes, `/proc`, `/dev/shm` and `/tmp`
    control_group  a bound on the memory of all processes together
    """

    namespaces: bool = False
    control_group: bool = False

    def words(self, memory_bytes: int | None) -> list[str]:
        """Return the words before a command that start it within the fence."""
        scope = scope_words(memory_bytes + OVERHEAD) if self.control_group and memory_bytes else []
        return [*scope, *(namespace_words() if self.namespaces else ())]

    def sentences(self) -> str:
        """Return who holds which limit, for the report."""
        memory = "the kernel (control group)" if self.control_group else "watching, ten times a second"
        if not self.namespaces:
            return f"Memory is limited by {memory}; processes are watched; /proc, /dev/shm and /tmp are the machine's."
        own = "processes, /proc and /dev/shm are the run's own (namespaces), and /tmp if the run needs no file there"
        return f"Memory is limited by {memory}; {own}."


@cache
def _program(name: str) -> str:
    """Return the path of a program. It is kept, because the environment of a script may have another PATH."""
    return shutil.which(name) or name


def namespace_words() -> list[str]:
    """Return the words that start a command in namespaces, in which it is root. setpriv ends unshare with this
    process.
    """
    return [_program("setpriv"), "--pdeathsig", "KILL", _program("unshare"), *OPTIONS]


def user_words() -> list[str]:
    """Return the words that give a process in namespaces the user's own number again, without rights over them."""
    return [_program("unshare"), "--user", f"--map-user={os.getuid()}", f"--map-group={os.getgid()}", "--"]


def scope_words(memory_bytes: int) -> list[str]:
    """Return the words that start a command in a control group of this size."""
    manager = ["--user"] if os.getuid() else []
    bounds = ["-p", f"MemoryMax={memory_bytes}", "-p", "MemorySwapMax=0"]
    return ["systemd-run", *manager, "--scope", "--quiet", "--collect", *bounds, "--"]


@cache
def available() -> Fence:
    """Return what works on this machine, by trying it once."""
    if sys.platform != "linux":
        return Fence()
    return Fence(_works([*namespace_words(), *user_words(), "true"]), _works([*scope_words(OVERHEAD), "true"]))


def _works(words: list[str]) -> bool:
    if shutil.which(words[0]) is None:
        return False
    try:
        return subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def private_places(memory_bytes: int | None, needed: Iterable[str | Path]) -> dict[str, int]:
    """Return folder -> bytes of the folders in memory that a run in namespaces has for itself.

    memory_bytes  their size; None: half of the machine's memory each, as the kernel takes by default (0)
    needed        words and paths of the run; `/tmp` stays the machine's if it holds one of them
    """
    size = memory_bytes or 0
    held = any(Path(word).is_relative_to(TEMPORARY) for word in map(str, needed) if word.startswith("/"))
    return {SHARED_MEMORY: size} if held else {SHARED_MEMORY: size, TEMPORARY: size}


def files_in_memory(pid: int) -> int:
    """Return the bytes of files in the `/dev/shm` that a process sees; 0 if it has ended."""
    try:
        space = os.statvfs(f"/proc/{pid}/root{SHARED_MEMORY}")
    except OSError:
        return 0
    return (space.f_blocks - space.f_bfree) * space.f_frsize
