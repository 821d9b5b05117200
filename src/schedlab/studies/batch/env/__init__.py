"""The environments: observation layouts and rewards; for one or several windows; weights as actions."""
