"""Examples of agents, each in a file to copy and change. `schedlab hetero launch -a reinforce` runs one of them
unchanged.
"""
