"""schedlab: a reproducible experiment pipeline for learned resource management on clusters."""

import sys

__version__ = "0.1.0"

if "gymnasium" in sys.modules:  # an import of Gymnasium would cost every job of the workflow a fifth of a second
    import schedlab.environments  # noqa: F401
