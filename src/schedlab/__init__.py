"""schedlab: a reproducible experiment pipeline for learned resource management on clusters."""

__version__ = "0.1.0"
