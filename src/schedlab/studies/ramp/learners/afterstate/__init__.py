"""Values of afterstates: policy search on the compiled cluster and its policy."""
