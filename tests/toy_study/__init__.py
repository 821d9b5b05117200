"""A sixth study in one folder: guess a hidden number. It shows what a study needs, and guards that it needs no more."""
