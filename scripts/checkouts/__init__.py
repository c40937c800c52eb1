"""Runs of two checkouts of the package, each in a process of its own."""
