"""Drawing that knows no study: theme, panels, captions, files and their index."""
