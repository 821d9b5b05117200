"""How far what was learned is from what it began with, for tests of learners."""

import numpy as np

from schedlab.learning.checkpoints import read_checkpoint


def changes(learned, first):
    """Largest change of each array of a checkpoint (path) against those of another: name -> float."""
    one, other = (read_checkpoint(path).arrays for path in (learned, first))
    assert one.keys() == other.keys()
    return {name: float(np.abs(one[name] - other[name]).max()) for name in one}
