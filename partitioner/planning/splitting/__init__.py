"""Splitting operations into parts: dimensions, data-parallel graphs, and the search for what to split."""
