"""Tests of what needs frameworks."""
