"""Stock learners, DQN, graph networks and imitation."""
