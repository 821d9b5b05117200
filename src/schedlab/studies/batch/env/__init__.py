"""The environments: for one window or several, or with weights as actions; observation layouts and rewards."""
