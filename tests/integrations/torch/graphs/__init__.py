"""Tests of graphs of torch's models."""
