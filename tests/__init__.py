"""Tests of the package; folders and files mirror it."""
