"""Tests of models that run a plan."""
