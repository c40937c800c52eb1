"""Factors between units, each defined once."""

MS_PER_SECOND = 1e3
