"""Tests of the estimates."""
