"""Run files of the original (TOML) and their import."""
