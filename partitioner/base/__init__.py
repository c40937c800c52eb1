"""What every other package stands on: checks of arguments, time limits, interruption, compiled functions."""
