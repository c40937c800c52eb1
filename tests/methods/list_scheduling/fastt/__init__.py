"""Tests of FastT's methods."""
