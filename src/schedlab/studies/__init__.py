"""The studies: one package each, entered through its `study` module alone."""
