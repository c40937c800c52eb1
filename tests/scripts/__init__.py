"""Tests of the batch scripts."""
