"""Campaigns of random trials, a small share of each."""
