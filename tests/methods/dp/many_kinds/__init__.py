"""Tests of the search over many kinds of devices."""
