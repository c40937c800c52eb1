"""Tests of the covering bound."""
