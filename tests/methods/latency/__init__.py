"""Tests of the methods for latency."""
