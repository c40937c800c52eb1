"""Tests of measured times and memory."""
