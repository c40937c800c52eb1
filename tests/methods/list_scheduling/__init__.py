"""Tests of list scheduling."""
