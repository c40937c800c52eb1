"""Compiled: the time of one sample, kept up to date while nodes move, and annealing on it."""
