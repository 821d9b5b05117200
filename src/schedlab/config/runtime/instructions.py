"""The instructions that numerical libraries may use, the same on every x86-64 processor that has x86-64-v3.

PyTorch, MKL, oneDNN, OpenBLAS, NumPy and numba look at the processor when a process starts and choose code for it. Such
codes sum in other orders and round otherwise, and a search takes another way from the first digit that differs. Here
each is held to AVX2 with fused multiply-add, or to less where it cannot be held to that on all makes: MKL gives equal
bytes on processors of Intel and AMD in its mode COMPATIBLE alone. The C library chooses by the processor too, and
nothing but that it has these instructions keeps its choice the same.

Environment variables hold them, which a library reads when it is loaded: `pin` comes before any import of one.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from schedlab.config.files import content_hash

LEVEL = "x86-64-v3"
CPUINFO = Path("/proc/cpuinfo")
NEEDED = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}  # as Linux names them
_NUMBA = (
    "64bit avx avx2 bmi bmi2 cmov crc32 cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 "
    "ssse3 x87 xsave"
)
PINS: Mapping[str, str] = {
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own kernels
    "MKL_CBWR": "COMPATIBLE",  # its matrix products
    "MKL_VML_DEBUG_CPU_TYPE": "7",  # its square roots, exponentials and the like, which MKL_CBWR leaves alone; AVX2
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # its convolutions
    "NPY_ENABLE_CPU_FEATURES": "X86_V3",
    "OPENBLAS_CORETYPE": "Haswell",  # matrix products and linear algebra of NumPy and SciPy
    "NUMBA_CPU_NAME": LEVEL,
    "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in _NUMBA.split()),
}
CLEARED = ("NPY_DISABLE_CPU_FEATURES", "GLIBC_TUNABLES")  # would turn off what is pinned
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def pin() -> None:
    """Restrict libraries to the pinned instructions, in this process (those not loaded yet) and in processes that it
    starts. Without effect on a processor that lacks these instructions.
    """
    os.environ.update(pins())
    for name in CLEARED if pins() else ():
        os.environ.pop(name, None)


def one_thread() -> None:
    """Restrict numerical libraries that are not loaded yet to one thread: jobs run side by side, and sums are always
    taken in the same order.
    """
    os.environ.update(dict.fromkeys(THREADS, "1"))


def begin_job() -> None:
    """What every job does before it imports anything else: `pin` and `one_thread`."""
    pin()
    one_thread()


@cache
def pins() -> Mapping[str, str]:
    """Return the environment variables that `pin` sets on this machine; none where its processor lacks the level."""
    return PINS if platform.machine() == "x86_64" and _flags() >= NEEDED else {}


def pinned() -> str:
    """Return a name of what is pinned on this machine, which changes whenever a pin changes, or a name that says that
    nothing is.
    """
    return f"{LEVEL} {content_hash(dict(PINS), 8)}" if pins() else f"not pinned ({platform.machine()})"


def _flags() -> set[str]:
    """The instructions that the processor offers, as Linux lists them; none elsewhere."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())
