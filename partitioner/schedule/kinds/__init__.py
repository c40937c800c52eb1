"""Schedules, one file each; `registry.py` knows them by name."""
