"""Drawing, common to all studies: theme, panels, captions, files and their index."""
