"""Drawing that knows no study: theme, helpers, files and their index."""
