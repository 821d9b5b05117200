"""Values of afterstates: their search on the compiled cluster, and the policy that uses them."""
