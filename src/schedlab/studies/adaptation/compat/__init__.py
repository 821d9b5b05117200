"""The files of the published system and their import."""
