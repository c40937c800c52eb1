"""Tests of Baechi's placers."""
