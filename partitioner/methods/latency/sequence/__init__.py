"""Blocks one after another, by dynamic programming over ideals, then with true start times."""
