"""Schedules, one file each; `registry.py` lists them by name."""
