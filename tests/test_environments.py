"""The environments are found by Gymnasium, whichever way they are asked for, and importing the package costs no Gymnasium."""

from __future__ import annotations

import subprocess
import sys

import pytest

WAYS = {
    "usual imports": "import gymnasium, schedlab; gymnasium.make('schedlab/Adaptation-v0').reset(seed=0)",
    "no import": "import gymnasium; gymnasium.make('schedlab.environments:schedlab/Adaptation-v0').reset(seed=0)",
    "another study": "import gymnasium, schedlab; gymnasium.make('schedlab/Hetero-v0').reset(seed=0)",
    "package alone": "import sys, schedlab; assert 'gymnasium' not in sys.modules and 'torch' not in sys.modules",
    "without torch": (
        "import sys; sys.modules['torch'] = None; import gymnasium, schedlab; gymnasium.make('schedlab/Adaptation-v0').reset(seed=0)"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_environments_are_registered(way):
    done = subprocess.run([sys.executable, "-c", WAYS[way]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
