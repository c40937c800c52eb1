"""The base of every other package: checks of arguments, time limits, interruption, compiled functions."""
