"""What an environment may ask of numerical libraries, as for processors of three ages: runs have the same bytes under
each, since jobs hold the libraries to instructions of their own.

    python tests/processors.py SSE4.2 COMMAND ...      run a command in such an environment
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest import mock

from schedlab.config.runtime.instructions import PINS

_NAMES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
    "MKL_VML_DEBUG_CPU_TYPE",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
    "NUMBA_CPU_NAME",
    "NPY_DISABLE_CPU_FEATURES",
)
ASKED: Mapping[str, Mapping[str, str]] = {
    "AVX-512": dict(
        zip(_NAMES, ("avx512", "AVX512", "2", "AVX512_CORE", "SkylakeX", "skylake-avx512", ""), strict=True)
    ),
    "AVX2": dict(zip(_NAMES, ("avx2", "AVX2", "1", "AVX2", "Zen", "haswell", "X86_V4"), strict=True)),
    "SSE4.2": {
        **dict(zip(_NAMES, ("default", "SSE4_2", "3", "SSE41", "Nehalem", "generic", "X86_V3 X86_V4"), strict=True)),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4",
    },
}


@contextmanager
def requesting(processor: str) -> Iterator[None]:
    """Request the instructions of a processor from the libraries of jobs, and not those that are pinned here."""
    with mock.patch.dict(os.environ, ASKED[processor]):
        for name in set(PINS) - set(ASKED[processor]):
            os.environ.pop(name, None)
        yield


if __name__ == "__main__":
    with requesting(sys.argv[1]):
        sys.exit(subprocess.call(sys.argv[2:]))
