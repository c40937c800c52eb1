"""Tests of partitioner.testing."""
