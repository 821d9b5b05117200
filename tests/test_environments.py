"""The environments are found by Gymnasium, whichever way they are asked for, and importing the package costs no
Gymnasium.
"""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import pytest

import schedlab.environments  # noqa: F401  (registers the names)
from schedlab.config.errors import UserError

WAYS = {
    "usual imports": "import gymnasium, schedlab; gymnasium.make('schedlab/Adaptation-v0').reset(seed=0)",
    "no import": "import gymnasium; gymnasium.make('schedlab.environments:schedlab/Adaptation-v0').reset(seed=0)",
    "another study": "import gymnasium, schedlab; gymnasium.make('schedlab/Hetero-v0').reset(seed=0)",
    "package alone": "import sys, schedlab; assert 'gymnasium' not in sys.modules and 'torch' not in sys.modules",
    "without torch": (
        "import sys; sys.modules['torch'] = None; import gymnasium, schedlab; "
        "gymnasium.make('schedlab/Adaptation-v0').reset(seed=0)"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_environments_are_registered(way):
    done = subprocess.run([sys.executable, "-c", WAYS[way]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


WITH_SETTINGS = {  # an environment that takes settings, and a key of them with another value than the default's
    "schedlab/Batch-v0": ("reward", "direct"),
    "schedlab/BatchWeights-v0": ("reward", "direct"),
    "schedlab/Hetero-v0": ("selection", ("first-random",)),
    "schedlab/Ramp-v0": ("invalid", "raise"),
}


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_settings_may_be_a_mapping_and_mistakes_in_them_are_told(name):
    key, value = WITH_SETTINGS[name]
    made = gymnasium.make(name, settings={key: value}).unwrapped
    found = made.settings if hasattr(made, "settings") else made.task.settings
    assert getattr(found, key) == value != getattr(type(found)(), key)
    assert gymnasium.make(name, settings=found).unwrapped.observation_space == made.observation_space
    with pytest.raises(UserError, match=f"settings.*: unknown key '{key}s'; did you mean '{key}'"):
        gymnasium.make(name, settings={f"{key}s": value})
    with pytest.raises(
        UserError, match=rf"settings: 3 \(int\); expected {type(found).__name__} of schedlab.*, or a mapping"
    ):
        gymnasium.make(name, settings=3)


def test_settings_of_the_vector_form_may_be_a_mapping():
    made = gymnasium.make_vec("schedlab/Batch-v0", 2, "vector_entry_point", settings={"layout": "rlscheduler"})
    assert made.unwrapped.layout.name == "rlscheduler"
