"""Baselines to compare with: PipeDream's planner, Scotch, METIS, and those of the paper."""
