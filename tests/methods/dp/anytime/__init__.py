"""Tests of the anytime search for chains."""
