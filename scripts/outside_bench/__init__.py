"""Instances of other fields with known optima: how they are read, run and printed."""
