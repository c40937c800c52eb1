"""Campaigns of random trials: limits of time, oracles, broken inputs, endurance."""
