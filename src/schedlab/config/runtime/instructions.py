"""The processor instructions that numerical libraries may use: the same on every x86-64 processor with x86-64-v3.

PyTorch, MKL, oneDNN, OpenBLAS, NumPy and numba select code for the processor when a process starts. Such variants add
numbers in different orders and round differently, and a search diverges from the first digit that differs. Here each
library is restricted to AVX2 with fused multiply-add, or to less if AVX2 does not give the same bytes on processors of
all makers: MKL does so on Intel and AMD only in its mode COMPATIBLE. The C library also selects code by the processor.
Nothing pins this selection; it is the same only in so far as the processors have these instructions.

The restrictions are environment variables, which a library reads when it is loaded. So `pin` must be called before any
of these libraries is imported.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from schedlab.config.files import content_hash
from schedlab.config.runtime import fork_server

LEVEL = "x86-64-v3"
CPUINFO = Path("/proc/cpuinfo")
NEEDED = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}  # in Linux's spelling
_NUMBA = (
    "64bit avx avx2 bmi bmi2 cmov crc32 cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 "
    "ssse3 x87 xsave"
)
PINS: Mapping[str, str] = {
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own kernels
    "MKL_CBWR": "COMPATIBLE",  # PyTorch's matrix products
    "MKL_VML_DEBUG_CPU_TYPE": "7",  # PyTorch's square roots, exponentials and the like, unaffected by MKL_CBWR; 7: AVX2
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # PyTorch's convolutions
    "NPY_ENABLE_CPU_FEATURES": "X86_V3",
    "OPENBLAS_CORETYPE": "Haswell",  # matrix products and linear algebra of NumPy and SciPy
    "NUMBA_CPU_NAME": LEVEL,
    "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in _NUMBA.split()),
}
CLEARED = ("NPY_DISABLE_CPU_FEATURES", "GLIBC_TUNABLES")  # would disable pinned instructions
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def pin() -> None:
    """Restrict libraries to the pinned instructions, in this process (if they are not loaded yet) and in processes that
    it starts. Does nothing on a processor that lacks these instructions.
    """
    os.environ.update(pins())
    for name in CLEARED if pins() else ():
        os.environ.pop(name, None)


def one_thread() -> None:
    """Restrict numerical libraries that are not loaded yet to one thread, because jobs run in parallel and sums must
    always be taken in the same order.
    """
    os.environ.update(dict.fromkeys(THREADS, "1"))


def begin_job() -> None:
    """Call `pin` and `one_thread`, as every job does before it imports anything else. If the run has a fork server, the
    job goes on in its fork, and this process ends with it.
    """
    pin()
    one_thread()
    fork_server.hand_over()


@cache
def pins() -> Mapping[str, str]:
    """Return the environment variables that `pin` sets on this machine; empty if its processor lacks the level."""
    return PINS if platform.machine() == "x86_64" and _flags() >= NEEDED else {}


def pinned() -> str:
    """Return a name for the pins on this machine, which changes whenever a pin changes, or a name for the absence of
    pins.
    """
    return f"{LEVEL} {content_hash(dict(PINS), 8)}" if pins() else f"not pinned ({platform.machine()})"


def _flags() -> set[str]:
    """Return the instruction sets of the processor as Linux lists them; empty on other systems."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())
