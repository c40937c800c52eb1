"""Tests of the exact search for makespans."""
