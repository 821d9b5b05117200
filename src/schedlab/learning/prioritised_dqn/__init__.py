"""DQN with prioritised replay and several actors (Ape-X): settings, learner, actors."""
