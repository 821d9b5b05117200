"""The console script `hdeeprm-launch`, under the name that users of HDeepRM know: the same as `schedlab hetero
launch`.
"""

from __future__ import annotations

import sys

from schedlab.cli import main as command


def main() -> int:
    """Run `schedlab hetero launch` with the arguments of the process; returns its exit status."""
    return command.main(["hetero", "launch", *sys.argv[1:]])
