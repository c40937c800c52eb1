"""The time of one sample, updated while nodes move, and simulated annealing on it, compiled."""
