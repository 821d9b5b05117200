"""The studies, one package each. Other code reaches a study only through its module `study`."""
